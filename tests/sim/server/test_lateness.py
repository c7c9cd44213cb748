"""Lateness: figures within their width, and few words."""

import pytest

from loadgen.sim.server.lateness import Lateness, LatenessReport

MS, S = 1_000_000, 1_000_000_000


def test_without_emissions_there_are_no_figures():
    """Unknown is None."""
    assert Lateness(print).report() == LatenessReport(emissions=0, late=0, missed=0, p50_s=None, p99_s=None, max_s=None)


def test_quantiles_are_upper_bounds_within_an_eighth():
    """Of any size: the true quantile is never more than the figure, which is at most an eighth more."""
    values = [round(1.37**power) for power in range(64)]
    lateness = Lateness(lambda _: None)
    for value in values:
        lateness.note([value], 0)
    report = lateness.report()
    assert report.max_s == values[-1] / S
    assert report.p99_s == values[-1] / S
    assert values[31] / S <= report.p50_s <= values[31] / S * 1.125
    assert report.late == sum(value > MS for value in values)


@pytest.mark.parametrize(
    ("bursts", "warnings"),
    [
        ([(0, [49 * MS])], 0),
        ([(0, [51 * MS, 80 * MS])], 1),
        ([(0, [0, 80 * MS])], 0),
        ([(t * S, [51 * MS]) for t in range(10)], 2),
        ([(0, [0] * 98 + [6 * MS] * 2), (S, [0])], 1),
        ([(0, [0] * 99 + [6 * MS]), (S, [0])], 0),
        ([(0, [6 * MS]), (S // 2, [6 * MS])], 0),
    ],
)
def test_it_warns_seldom_and_of_two_things(bursts, warnings):
    """Behind by more than 50 ms with everything, or by more than 5 ms with more than one in a hundred of a second's
    emissions; once in five seconds.
    """
    said: list[str] = []
    lateness = Lateness(said.append)
    for now_ns, late in bursts:
        lateness.note(late, now_ns)
    assert len(said) == warnings
