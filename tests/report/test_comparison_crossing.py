"""Up to which load an arm pays, in words and as a figure."""

import pytest

from loadgen.core.comparison.crossover import Crossover, NoCrossover
from loadgen.report.comparison.crossing import crossover_beside, crossover_figure, pays_text


def crossing(
    reason: NoCrossover | None,
    level: float | None = None,
    low: float | None = None,
    high: float | None = None,
    *,
    faster: tuple[float, ...] = (),
    slower: tuple[float, ...] = (),
    unclaimed: tuple[float, ...] = (),
) -> Crossover:
    return Crossover(level=level, low=low, high=high, reason=reason, faster=faster, slower=slower, unclaimed=unclaimed)


@pytest.mark.parametrize(
    ("found", "words", "figure"),
    [
        (
            crossing(None, 33.4, 23.6, 44.2, faster=(1, 16), slower=(64,)),
            "stops paying at about 33 concurrent requests [24, 44]",
            "33",
        ),
        (
            crossing(None, 33.4, 23.6, 44.2, faster=(1, 16), unclaimed=(64,)),
            "seems to stop paying at about 33 concurrent requests [24, 44]",
            "33",
        ),
        (
            crossing(None, 2.5, slower=(64,), unclaimed=(1, 16)),
            "seems to stop paying at about 2.5 concurrent requests [below the ladder, above 64]",
            "2.5",
        ),
        (crossing(NoCrossover.EVERYWHERE, low=64, faster=(1, 64)), "pays at every level measured", "> 64"),
        (
            crossing(NoCrossover.EVERYWHERE, low=64, faster=(1, 16), unclaimed=(64,)),
            "seems to pay at every level measured, for certain at 1 and 16",
            "> 64",
        ),
        (
            crossing(NoCrossover.EVERYWHERE, unclaimed=(1, 64)),
            "seems to pay at every level measured, for certain at none",
            "> 64",
        ),
        (crossing(NoCrossover.NOWHERE, high=1, slower=(1, 64)), "pays at no level measured", "—"),
        (
            crossing(NoCrossover.NOWHERE, slower=(1,), unclaimed=(64,)),
            "pays for certain at no level measured, and costs for certain at 1",
            "—",
        ),
        (crossing(NoCrossover.UNSEEN), "neither pays nor costs for certain at any level measured", "—"),
        (crossing(NoCrossover.RISES, faster=(64,), slower=(1,)), "pays at the higher levels only", "—"),
        (
            crossing(NoCrossover.RISES, faster=(64,), unclaimed=(1,)),
            "seems to pay at the higher levels only, for certain at 64",
            "—",
        ),
        (crossing(NoCrossover.RISES, slower=(1,)), "seems to pay at the higher levels only", "—"),
        (
            crossing(NoCrossover.SEVERAL, low=2, faster=(1, 16), slower=(4, 64)),
            "goes from gain to loss more than once, so there is no one load up to which it pays",
            "—",
        ),
        (
            crossing(NoCrossover.SEVERAL, low=2, faster=(1,), slower=(64,), unclaimed=(4, 16)),
            "pays for certain at 1 and costs for certain at 64, and elsewhere nothing is shown, so no one load is told"
            " up to which it pays",
            "—",
        ),
        (
            crossing(NoCrossover.SEVERAL, low=2, faster=(4,), unclaimed=(1, 16, 64)),
            "pays for certain at 4, and elsewhere nothing is shown, so no one load is told up to which it pays",
            "—",
        ),
    ],
)
def test_every_crossover_has_words(found: Crossover, words: str, figure: str) -> None:
    """With its bounds where there is one level, with the reason where there is none; what levels on both sides of it do
    not show for certain only seems so."""
    assert pays_text(found, "concurrency", top=64) == words
    assert crossover_figure(found, top=64) == figure


@pytest.mark.parametrize(
    ("found", "one_start", "beside"),
    [
        (crossing(None, 33.4, 23.6, 44.2, faster=(1, 16), slower=(64,)), False, "[24, 44]"),
        (crossing(None, 33.4, 23.6, 44.2, faster=(1, 16), slower=(64,)), True, "[24, 44], within this one start"),
        (crossing(None, 33.4, 23.6, 44.2, faster=(1, 16), unclaimed=(64,)), False, "[24, 44], not for certain"),
        (crossing(NoCrossover.NOWHERE, slower=(1, 64)), False, "pays at no level measured"),
    ],
)
def test_a_figure_says_how_far_it_may_be_believed(found: Crossover, one_start: bool, beside: str) -> None:
    """Its bounds, and that levels on either side of it do not show it, or one start of each arm alone."""
    assert crossover_beside(found, "concurrency", top=64, one_start=one_start) == beside


def test_rates_are_no_concurrent_requests() -> None:
    """The unit is that of the ladder."""
    found = crossing(None, 20, 15, 30, faster=(1,), slower=(64,))
    assert pays_text(found, "request_rate_rps", top=64).startswith("stops paying at about 20 requests/s")
