"""Schedules: what holds for every rate, burstiness, seed and number of requests."""

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.request import Conversation, Endpoint, Phase, RequestTemplate, Text, Turn
from loadgen.core.schedule.arrivals import constant_offsets, gamma_offsets
from loadgen.core.schedule.plan import plan

RATES = st.floats(min_value=1e-3, max_value=1e5)
SHAPES = st.one_of(st.floats(min_value=0.05, max_value=50.0), st.just(math.inf))
TEMPLATE = RequestTemplate(endpoint=Endpoint.CHAT, model="m")


@given(rate=RATES, count=st.integers(min_value=2, max_value=3000))
def test_constant_arrivals_lie_on_their_grid(rate: float, count: int) -> None:
    """Arrival i is within a nanosecond of i / rate, however far out: no error adds up."""
    for index, offset_ns in enumerate(itertools.islice(constant_offsets(rate), count)):
        assert abs(offset_ns - index * 1e9 / rate) <= 1 + index * 1e9 / rate * 1e-15


@given(rate=RATES, shape=SHAPES, seed=st.integers(min_value=0, max_value=2**63 - 1))
def test_drawn_arrivals_begin_at_zero_never_go_back_and_repeat_from_their_seed(
    rate: float, shape: float, seed: int
) -> None:
    """Offsets are whole nanoseconds from 0 on, non-decreasing, and the same again from the same seed."""
    first, again = (
        list(itertools.islice(gamma_offsets(rate, shape, np.random.default_rng(seed)), 1500)) for _ in range(2)
    )
    assert first == again
    assert first[0] == 0
    assert all(isinstance(offset_ns, int) for offset_ns in first)
    assert all(earlier <= later for earlier, later in itertools.pairwise(first))


@given(
    lengths=st.lists(st.integers(min_value=1, max_value=5), max_size=30),
    measured=st.integers(min_value=1, max_value=60),
    warmup=st.integers(min_value=0, max_value=20),
)
def test_a_plan_numbers_and_counts_whatever_its_conversations(lengths: list[int], measured: int, warmup: int) -> None:
    """Numbers run from 0 without a gap, warm-up comes first, counts are as asked for or what the data has."""
    conversations = (Conversation(turns=tuple(Turn(prompt=Text(text="x")) for _ in range(n))) for n in lengths)
    planned = plan(conversations, TEMPLATE, request_id_prefix="r", num_requests=measured, warmup_requests=warmup)
    requests = [request for conversation in planned for request in conversation.requests]
    assert [request.seq for request in requests] == list(range(len(requests)))
    assert len(requests) == min(sum(lengths), measured + warmup)
    phases = [request.phase for request in requests]
    assert phases == sorted(phases, key=[Phase.WARMUP, Phase.MEASURE].index)
    assert phases.count(Phase.WARMUP) == min(warmup, len(requests))
    assert len({request.request_id for request in requests}) == len(requests)
