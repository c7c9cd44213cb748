"""Properties of counter windows, of series, and of reading pages that may be anything."""

from contextlib import suppress
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.adapters.servers.dcgm_page import dcgm_samples
from loadgen.adapters.servers.pages import PAGE_ENGINES, samples
from loadgen.adapters.servers.tensorrt_llm_iterations import IterationTotals
from loadgen.core.server.sample import Counters
from loadgen.core.server.series import server_series
from loadgen.core.server.window import counter_window, whole_run
from tests.core.server.factory import S, page, sample

growth = st.lists(st.integers(0, 1000), min_size=1, max_size=20)
line = st.sampled_from(
    ["vllm:prompt_tokens_total", "sglang:num_running_reqs", "llamacpp:n_decode", "trtllm_x", "#", "up"]
)
junk = st.text(st.characters(codec="utf-8"), max_size=40)


@given(growth, st.integers(0, 100))
@settings(max_examples=50)
def test_windows_side_by_side_add_up_to_the_whole(steps: list[int], first: int) -> None:
    """Cut at any page, the two windows' tokens are those of the run, and the run's are the last minus the first."""
    counts = list(accumulate(steps, initial=first))
    scrapes = [page(at, sample(generation_tokens=count)) for at, count in enumerate(counts)]
    whole = whole_run(scrapes).counters.generation_tokens
    assert whole == counts[-1] - counts[0]
    for cut in range(1, len(scrapes) - 1):
        left = counter_window(scrapes, 0, cut * S).counters.generation_tokens
        right = counter_window(scrapes, cut * S, (len(scrapes) - 1) * S).counters.generation_tokens
        assert left is not None
        assert right is not None
        assert left + right == whole


@given(growth, st.data())
def test_one_fall_anywhere_voids_the_window(steps: list[int], data: st.DataObject) -> None:
    """However high the counter climbs again afterwards."""
    counts = list(accumulate(steps, initial=5))
    place = data.draw(st.integers(1, len(counts)))
    counts = counts[:place] + [4] + [each + 10**6 for each in counts[place:]]
    found = whole_run([page(at, sample(generation_tokens=count)) for at, count in enumerate(counts)])
    assert found.counters == Counters()
    assert found.resets


@given(growth, st.lists(st.integers(1, 5 * S), min_size=1, max_size=8))
def test_a_series_keeps_the_total(steps: list[int], widths: list[int]) -> None:
    """Rates times widths over bins that readings cover wholly are what was counted, whatever the bins."""
    counts = list(accumulate(steps, initial=0))
    scrapes = [page(at, sample(generation_tokens=count)) for at, count in enumerate(counts)]
    end = (len(counts) - 1) * S
    edges = sorted({0, end, *(edge for edge in accumulate(widths) if edge < end)})
    rates = server_series(scrapes, edges).generation_tokens_per_s
    widths_s = [(after - before) / S for before, after in pairwise(edges)]
    assert None not in rates
    assert sum(rate * width for rate, width in zip(rates, widths_s, strict=True) if rate is not None) == pytest.approx(
        counts[-1], abs=1e-6
    )


@given(st.lists(st.tuples(line, junk).map("".join), max_size=4).map("\n".join), st.sampled_from(sorted(PAGE_ENGINES)))
@settings(max_examples=150)
def test_any_text_is_read_or_refused(text: str, engine: str) -> None:
    """Samples or a ValueError, never another fault."""
    for read in (lambda: samples(engine, text + "\n", model="m"), lambda: dcgm_samples(text + "\n")):
        with suppress(ValueError):
            read()


@given(st.binary(max_size=60))
def test_any_bytes_are_iterations_or_refused(body: bytes) -> None:
    """A list of iterations or a ValueError."""
    with suppress(ValueError):
        IterationTotals().add(body)
