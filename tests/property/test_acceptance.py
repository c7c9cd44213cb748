"""Properties of acceptance over generated answers of a server whose every step is known."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.core.metrics.summary import Speculation
from loadgen.core.record import RequestRecord
from loadgen.core.request import Phase
from loadgen.core.server.sample import Counters
from loadgen.core.speculation.server_side import ServerSide
from tests.core.speculation.made import MadeServer, tallied

K = 4
steps = st.lists(st.none() | st.integers(0, K), min_size=1, max_size=20)


@st.composite
def answers(draw: st.DrawFn) -> tuple[MadeServer, list[RequestRecord]]:
    """A few answers, each cut anywhere in its last step, some of them warm-up, some of a category."""
    server = MadeServer(k=K)
    records = []
    for seq, accepted in enumerate(draw(st.lists(steps, min_size=1, max_size=6))):
        cut = draw(st.integers(0, accepted[-1] or 0))
        phase = draw(st.sampled_from((Phase.WARMUP, Phase.MEASURE, Phase.MEASURE)))
        category = draw(st.sampled_from((None, "code", "prose")))
        records.append(server.answer(seq, accepted, cut=cut, phase=phase, category=category))
    return server, records


def of(server: MadeServer, records: list[RequestRecord], **changes: Any) -> Speculation | None:
    counters: Counters = replace(server.counters(), **changes)
    return tallied(*records, server=ServerSide(window=counters, run=counters), method="ngram", draft_tokens=K)


@settings(deadline=None, max_examples=40)
@given(answers())
def test_answers_of_one_server_always_agree(made: tuple[MadeServer, list[RequestRecord]]) -> None:
    """Whatever drafted and wherever answers were cut: no difference is left that the definitions do not allow."""
    spec = of(*made)
    assert spec is not None
    assert spec.agreement
    assert all(one.agrees for one in spec.agreement)


@settings(deadline=None, max_examples=30)
@given(answers(), st.sampled_from(("drafts", "drafted_tokens", "accepted_tokens", "decode_steps")), st.integers(1, 3))
def test_a_counter_that_is_off_never_agrees(
    made: tuple[MadeServer, list[RequestRecord]], counter: str, off: int
) -> None:
    """One step or token that no answer accounts for shows, in either direction."""
    server, records = made
    right = getattr(server.counters(), counter)
    for wrong in (right + off, right - off):
        spec = of(server, records, **{counter: wrong})
        assert spec is not None
        assert any(one.agrees is False for one in spec.agreement)


@settings(deadline=None, max_examples=40)
@given(answers())
def test_length_is_one_more_than_the_sum_by_position(made: tuple[MadeServer, list[RequestRecord]]) -> None:
    """In every view; survival falls, is the product of the conditional shares, and no ratio leaves 0..1."""
    spec = of(*made)
    assert spec is not None
    for view in spec.views:
        if view.acceptance_length is None or view.by_position is None:
            continue
        assert view.acceptance_length == pytest.approx(1 + sum(view.by_position))
        assert list(view.by_position) == sorted(view.by_position, reverse=True)
        survival = 1.0
        for share, conditional in zip(view.by_position, view.conditional_by_position or (), strict=True):
            survival = 0.0 if conditional is None else survival * conditional
            assert share == pytest.approx(survival)
        assert view.acceptance_ratio is None or 0 <= view.acceptance_ratio <= 1
        assert view.coverage_ratio is None or 0 <= view.coverage_ratio <= 1


@settings(deadline=None, max_examples=30)
@given(answers(), st.randoms(use_true_random=False))
def test_the_order_of_records_changes_nothing(made: tuple[MadeServer, list[RequestRecord]], random: Any) -> None:
    """Every figure, bin, point and note is the same in whatever order requests ended."""
    server, records = made
    first = of(server, records)
    random.shuffle(records)
    assert of(server, records) == first


@settings(deadline=None, max_examples=30)
@given(answers())
def test_categories_and_positions_add_up_to_the_whole(made: tuple[MadeServer, list[RequestRecord]]) -> None:
    """The steps of all bins are the decode steps of measured requests, those of categories and the rest the blocks'."""
    server, records = made
    measured = [record for record in records if record.phase is Phase.MEASURE]
    spec = of(server, measured)
    assert spec is not None
    if not measured:
        return
    # Events after the first are the decode steps.
    events = sum(len(record.event_tokens or ()) - 1 for record in measured)
    assert sum(one.steps for one in spec.by_output_position) == events
    named = sum(one.steps or 0 for one in spec.by_category)
    unnamed = sum(record.speculation.steps or 0 for record in measured if record.speculation and not record.category)
    blocks = next(view for view in spec.views if view.origin == "per_request")
    assert named + unnamed == blocks.steps
