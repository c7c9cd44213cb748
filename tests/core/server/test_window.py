"""Differences of a server's counters over a window: exact where they can be, void and said so where they cannot."""

import pytest

from loadgen.core.server.sample import Counters
from loadgen.core.server.window import CounterWindow, Reset, counter_window, difference, whole_run
from tests.core.server.factory import S, page, sample, unread

COUNTED = Counters(
    prompt_tokens=1000,
    generation_tokens=510,
    first_tokens=10,
    drafts=100,
    drafted_tokens=300,
    accepted_tokens=180,
    accepted_by_position=(80, 60, 40),
    decode_steps=250,
    verify_steps=200,
    prefix_query_tokens=1000,
    prefix_hit_tokens=250,
    timed_requests=10,
    queue_s=1.0,
    prefill_s=2.0,
    decode_s=5.0,
    iterations=100,
    iteration_tokens=1260,
)


def window(counters: Counters) -> CounterWindow:
    return CounterWindow(counters=counters, processes=1, first_ns=0, last_ns=S)


def test_difference_is_taken_counter_by_counter() -> None:
    """Later minus earlier, arrays place by place; what neither has stays unknown."""
    earlier = sample(generation_tokens=10, drafts=2, accepted_by_position=(2, 1))
    later = sample(generation_tokens=25, drafts=5, accepted_by_position=(4, 1))
    assert difference(earlier, later) == Counters(generation_tokens=15, drafts=3, accepted_by_position=(2, 0))


def test_a_counter_that_comes_up_began_at_zero() -> None:
    """Series come with their first observation, positions of an array too."""
    later = sample(generation_tokens=10, drafts=3, accepted_by_position=(3, 2))
    assert difference(sample(generation_tokens=10), later) == Counters(
        generation_tokens=0, drafts=3, accepted_by_position=(3, 2)
    )
    assert difference(sample(accepted_by_position=(1,)), later) == Counters(
        generation_tokens=10, drafts=3, accepted_by_position=(2, 2)
    )


@pytest.mark.parametrize(
    ("earlier", "later", "names"),
    [
        (sample(generation_tokens=10), sample(generation_tokens=9), ("generation_tokens",)),
        (sample(drafts=10, iterations=1), sample(iterations=1), ("drafts",)),
        (sample(accepted_by_position=(5, 3)), sample(accepted_by_position=(6, 2)), ("accepted_by_position",)),
        (sample(accepted_by_position=(5, 3)), sample(accepted_by_position=(6,)), ("accepted_by_position",)),
        (sample(drafts=5, queue_s=1.0), sample(drafts=4, queue_s=0.5), ("drafts", "queue_s")),
        (sample(drafts=1, started=1.0), sample(drafts=2, started=9.0), ("started",)),
        (sample(drafts=1, started=9.0), sample(drafts=2, started=1.0), ("started",)),
    ],
)
def test_a_fall_a_loss_and_a_moved_start_are_resets(earlier, later, names) -> None:  # type: ignore[no-untyped-def]
    """No number is made of them, not even when every counter is higher after the restart."""
    assert difference(earlier, later) == Reset(names=names)


def test_a_start_that_is_unknown_on_one_side_is_no_reset() -> None:
    """A page that does not say when it started says nothing of a restart."""
    assert difference(sample(drafts=1, started=None), sample(drafts=2)) == Counters(drafts=1)


def test_a_start_that_moves_as_clocks_are_set_is_no_reset() -> None:
    """Linux tells its boot in whole seconds, which an exporter adds to anew at each reading: up and down by one."""
    scrapes = [page(at, sample(drafts=at, started=1000.0 + at % 2)) for at in range(5)]
    assert (whole_run(scrapes).counters.drafts, whole_run(scrapes).resets) == (4, ())
    creeping = [page(at, sample(drafts=at, started=1000.0 + at)) for at in range(5)]
    (said,) = whole_run(creeping).resets
    assert said.endswith("between 0.0 s and 4.0 s"), "from first to last it moved too far to be believed"
    assert whole_run(creeping).counters == Counters()


def test_the_window_reaches_around_its_span() -> None:
    """From the last page at or before the start to the first at or after the end, with their instants."""
    scrapes = [page(at, sample(generation_tokens=10 * at)) for at in range(10)]
    found = counter_window(scrapes, round(2.5 * S), round(6.5 * S))
    assert (found.first_ns, found.last_ns) == (2 * S, 7 * S)
    assert found.counters == Counters(generation_tokens=50)
    exact = counter_window(scrapes, 2 * S, 6 * S)
    assert (exact.first_ns, exact.last_ns, exact.counters.generation_tokens) == (2 * S, 6 * S, 40)
    assert (found.resets, found.notes, found.failed_scrapes, found.processes) == ((), (), 0, 1)


def test_pages_may_come_in_any_order() -> None:
    """Scrapes of several pages are written as they end."""
    scrapes = [page(at, sample(generation_tokens=10 * at)) for at in (3, 0, 2, 1)]
    assert whole_run(scrapes).counters.generation_tokens == 30


def test_a_window_wider_than_the_pages_says_what_is_missing() -> None:
    """The nearest pages stand in, with the distance in a note."""
    scrapes = [page(at, sample(generation_tokens=10 * at)) for at in (3, 4, 5)]
    found = counter_window(scrapes, S, 7 * S)
    assert found.counters.generation_tokens == 20
    assert found.notes == (
        "page 0 was first read 2.0 s into the window",
        "page 0 was last read 2.0 s before the window's end",
    )


def test_a_restart_in_the_middle_is_found_though_counters_overtook_their_old_values() -> None:
    """100, then 5, then 300: not 200. The window is void and says where."""
    scrapes = [page(at, sample(started=None, generation_tokens=count)) for at, count in ((0, 100), (1, 5), (2, 300))]
    found = whole_run(scrapes)
    assert found.counters == Counters()
    (said,) = found.resets
    assert said.startswith("page 0, engine 0: generation_tokens fell or went")
    assert said.endswith("between 0.0 s and 1.0 s")


def test_a_moved_start_voids_a_window_in_which_nothing_fell() -> None:
    """The second process was faster than the first."""
    scrapes = [page(0, sample(started=1.0, drafts=1)), page(1, sample(started=9.0, drafts=5))]
    found = whole_run(scrapes)
    assert found.counters == Counters()
    assert found.resets == ("page 0, engine 0: the process was started anew between 0.0 s and 1.0 s",)


def test_a_counter_that_is_no_number_is_a_gap_and_no_restart() -> None:
    """In the middle it loses nothing, at an end its own difference alone; a fall behind it is found all the same."""
    counts = (10, None, 30)

    def read(*drafts: float | None) -> CounterWindow:
        return whole_run(
            page(at, sample(drafts=each, generation_tokens=5 * at, gaps=("drafts",) if each is None else ()))
            for at, each in enumerate(drafts)
        )

    found = read(*counts)
    assert (found.counters, found.resets) == (Counters(drafts=20, generation_tokens=10), ())
    assert found.notes == ("page 0, engine 0: no number in 1 of 3 readings: drafts",)
    for ends in ((None, 10, 30), (10, 30, None)):
        found = read(*ends)
        assert (found.counters, found.resets) == (Counters(generation_tokens=10), ())
        assert len(found.notes) == 1, "what could not be read did not come up when it could"
    (said,) = read(100, None, 5, 300).resets
    assert said.startswith("page 0, engine 0: drafts fell or went")
    assert said.endswith("between 1.0 s and 2.0 s")


def test_half_a_page_of_a_process_that_says_it_is_the_same_is_a_gap() -> None:
    """Its counters are on the next page again: they did not begin at zero, and nothing was started anew."""
    whole = [page(at, sample(drafts=10 + at, accepted_by_position=(5, 4))) for at in (0, 2)]
    found = whole_run([*whole, page(1, sample(accepted_by_position=(5,)))])
    assert (found.counters.drafts, found.counters.accepted_by_position, found.resets) == (2, (0, 0), ())
    cut_at_the_end = whole_run([*whole, page(3, sample(accepted_by_position=(5, 4)))])
    assert (cut_at_the_end.counters.drafts, cut_at_the_end.resets) == (None, ())
    silent = [page(at, sample(started=None, drafts=each)) for at, each in ((0, 5), (1, None), (2, 9))]
    assert whole_run(silent).resets, "one that does not say since when it runs may well be another"


def test_a_restart_outside_the_window_is_none_of_its_business() -> None:
    """Only the pages that the window stands on are compared."""
    scrapes = [page(at, sample(generation_tokens=count)) for at, count in ((0, 100), (1, 5), (2, 15), (3, 25))]
    assert counter_window(scrapes, S, 3 * S).counters.generation_tokens == 20


def test_failed_scrapes_in_the_middle_lose_nothing_and_are_counted() -> None:
    """A counter keeps counting while nobody reads it; a failure outside the window is not its."""
    scrapes = [
        unread(0, fault="too early"),
        page(1, sample(drafts=10)),
        unread(2),
        unread(3),
        page(4, sample(drafts=40)),
        unread(5),
    ]
    found = counter_window(scrapes, 1 * S, 4 * S)
    assert found.counters.drafts == 30
    assert (found.failed_scrapes, found.failed_example) == (2, "page 0 at 2.0 s: HTTP 503")
    whole = whole_run(scrapes)
    assert (whole.counters.drafts, whole.failed_scrapes) == (30, 4)


def test_processes_and_pages_add_up_and_a_counter_that_one_lacks_is_unknown() -> None:
    """Two engines of one page and one of another; drafts are not counted by all of them."""
    scrapes = [
        page(0, sample(drafts=0, generation_tokens=0), sample(engine="1", drafts=0, generation_tokens=5)),
        page(0, sample(generation_tokens=7, started=3.0), source="1"),
        page(9, sample(drafts=4, generation_tokens=10), sample(engine="1", drafts=2, generation_tokens=25)),
        page(9, sample(generation_tokens=107, started=3.0), source="1"),
    ]
    found = whole_run(scrapes)
    assert found.processes == 3
    assert found.counters == Counters(generation_tokens=130)


def test_the_span_is_what_every_page_covers() -> None:
    """One page was read later, the other not so long: only in between is all of the server known."""
    scrapes = [page(at, sample(drafts=at)) for at in (0, 5, 9)]
    scrapes += [page(at, sample(drafts=at, started=2.0), source="1") for at in (1, 5, 8)]
    found = whole_run(scrapes)
    assert (found.first_ns, found.last_ns) == (1 * S, 8 * S)


def test_arrays_of_different_length_add_up_place_by_place() -> None:
    """Engines with different draft lengths."""
    both = [
        page(0, sample(accepted_by_position=(0, 0)), sample(engine="1", accepted_by_position=(0, 0, 0))),
        page(1, sample(accepted_by_position=(5, 4)), sample(engine="1", accepted_by_position=(3, 2, 1))),
    ]
    assert whole_run(both).counters.accepted_by_position == (8, 6, 1)


def test_one_process_under_two_addresses_counts_once() -> None:
    """The pages were read apart under load and differ then; before or after it they are the very same."""
    first = [page(at, sample(generation_tokens=count, queue_s=0.1)) for at, count in ((0, 8), (1, 50), (2, 108))]
    second = [
        page(at + 0.3, sample(generation_tokens=count, queue_s=0.1), source="1")
        for at, count in ((0, 20), (1, 60), (2, 108))
    ]
    found = whole_run(first + second)
    assert (found.processes, found.counters.generation_tokens) == (1, 100)
    assert found.notes == ("pages 0 and 1 show the same process 0, which is counted once",)


def test_two_processes_that_merely_look_alike_count_twice() -> None:
    """Fresh replicas are at zero, and even work proves nothing without a start or seconds, which tell two apart."""
    fresh = [page(0, sample(drafts=0)), page(0, sample(drafts=0), source="1")]
    ended = [page(1, sample(drafts=4, queue_s=0.25)), page(1, sample(drafts=4, queue_s=0.26), source="1")]
    assert whole_run(fresh + ended).counters.drafts == 8
    even = [page(at, sample(started=None, drafts=4 * at), source=source) for at in (0, 1) for source in ("0", "1")]
    assert whole_run(even).counters.drafts == 8
    others = [
        page(0, sample(drafts=1)),
        page(0, sample(drafts=1, started=5.0), source="1"),
        page(1, sample(drafts=4)),
        page(1, sample(drafts=4, started=5.0), source="1"),
    ]
    assert whole_run(others).counters.drafts == 6


def test_a_process_and_counters_that_come_up_count_from_zero_and_are_said() -> None:
    """A page that was empty before the first request, and an engine added while the others ran."""
    scrapes = [
        page(0, sample()),
        page(1, sample(drafts=5)),
        page(2, sample(drafts=9), sample(engine="1", drafts=7)),
    ]
    found = whole_run(scrapes)
    assert found.counters.drafts == 16
    assert found.notes == (
        "page 0, engine 0: came up in the window and counts from zero: drafts",
        "page 0, engine 1: came up in the window and counts from zero: all its counters",
    )


def test_a_process_that_goes_voids_the_window() -> None:
    """What it did before it went is not known."""
    scrapes = [page(0, sample(drafts=1), sample(engine="1", drafts=1)), page(1, sample(drafts=2))]
    found = whole_run(scrapes)
    assert found.counters == Counters()
    assert found.resets == ("page 0, engine 1 is gone from the page between 0.0 s and 1.0 s",)


@pytest.mark.parametrize("scrapes", [[], [unread(0), unread(1)], [page(0, sample(drafts=1)), unread(1)]])
def test_fewer_than_two_pages_make_no_difference(scrapes) -> None:  # type: ignore[no-untyped-def]
    """Nothing is known, and nothing is zero."""
    found = whole_run(scrapes)
    assert found.counters == Counters()
    assert (found.first_ns, found.last_ns) == (None, None)
    assert found.failed_scrapes == sum(scrape.fault is not None for scrape in scrapes)


def test_a_page_never_read_leaves_the_whole_unknown() -> None:
    """The sum over the pages that were read would pass for the whole."""
    scrapes = [page(0, sample(drafts=1)), page(1, sample(drafts=2)), unread(0, source="1"), unread(1, source="1")]
    found = whole_run(scrapes)
    assert found.counters == Counters()
    assert "page 1 was read 0 times, and a difference needs two" in found.notes


def test_derived_figures_follow_their_formulas() -> None:
    """The bonus token is in the length and not in the ratio; drafted steps and all decode steps are kept apart."""
    found = window(COUNTED)
    assert found.acceptance_length == 1 + 180 / 100
    assert found.acceptance_ratio == 180 / 300
    assert found.acceptance_by_position == (0.8, 0.6, 0.4)
    assert found.acceptance_length == pytest.approx(1 + sum(found.acceptance_by_position))
    assert found.coverage_ratio == 100 / 250
    assert found.tokens_per_step == (510 - 10) / 250
    assert found.prefix_hit_ratio == 0.25
    assert (found.mean_queue_s, found.mean_prefill_s, found.mean_decode_s) == (0.1, 0.2, 0.5)
    assert (found.queue_share_ratio, found.prefill_share_ratio, found.decode_share_ratio) == (0.125, 0.25, 0.625)
    assert found.tokens_per_iteration == 12.6


def test_a_baseline_has_no_acceptance_and_a_silent_drafter_no_ratio() -> None:
    """Neither counters that are not there nor zero drafts make a number."""
    for counters in (Counters(), Counters(drafts=0, drafted_tokens=0, accepted_tokens=0, accepted_by_position=(0, 0))):
        found = window(counters)
        assert found.acceptance_length is found.acceptance_ratio is found.acceptance_by_position is None
    assert window(Counters(drafts=0, decode_steps=5)).coverage_ratio == 0
    assert window(Counters(generation_tokens=5, decode_steps=5)).tokens_per_step is None
