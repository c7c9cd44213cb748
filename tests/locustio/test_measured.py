"""What the levels of a ladder came to so far."""

import json
from dataclasses import replace

from loadgen.core.metrics.summary import Summary, Verdict
from loadgen.locustio.conductor.measured import Measured
from tests.report.made.ladders import level_summary, with_evidence


def ladder(*arms: str) -> Measured:
    return Measured(variable="concurrency", asked=(1, 2, 4), arms=arms, attainment=None)


def of_arm(arm: str, repeat: int, *, slower: float = 1.0) -> Summary:
    """A level of an arm whose TPOT is so many times as long."""
    base = with_evidence(level_summary(4), 4)
    tpot = base.latency.tpot_s
    assert tpot.p50 is not None
    latency = replace(base.latency, tpot_s=replace(tpot, p50=tpot.p50 * slower))
    return replace(base, latency=latency, labels={"arm": arm, "repeat": str(repeat)})


def test_a_level_adds_a_row_and_a_point_to_each_chart() -> None:
    """The rows hold what the summary does, in its units; everything is strict JSON."""
    measured = ladder()
    assert measured.as_json()["rows"] == []
    for level in (1, 2):
        measured.add(level_summary(level))
    shown = measured.as_json()
    json.dumps(shown, allow_nan=False)
    assert [row["level"] for row in shown["rows"]] == [1, 2]
    assert shown["rows"][0]["latency"]["tpot_s"]["p50"] == level_summary(1).latency.tpot_s.p50
    charts = {chart["id"]: chart for chart in shown["charts"]}
    assert {"ladder-throughput", "ladder-ttft_s", "ladder-tpot_s", "ladder-e2el_s"} <= set(charts)
    assert charts["ladder-tpot_s"]["x"] == (1, 2)
    assert shown["verdict"]["kind"] == "valid"


def test_an_invalid_level_is_named() -> None:
    """In the verdict, and in its row."""
    measured = ladder()
    measured.add(replace(level_summary(4), verdict=Verdict(valid=False)))
    shown = measured.as_json()
    assert (shown["verdict"]["kind"], shown["rows"][0]["verdict"]) == ("invalid", "invalid")
    assert "4" in shown["verdict"]["words"]


def test_arms_are_held_against_the_baseline_repeat_by_repeat() -> None:
    """The speedup is the baseline's TPOT over the arm's; of an arm without its baseline's repeat there is none yet."""
    measured = ladder("plain", "eagle3")
    measured.add(of_arm("eagle3", 1, slower=0.5))
    assert "arms-speedup" not in {chart["id"] for chart in measured.as_json()["charts"]}
    measured.add(of_arm("plain", 1))
    measured.add(of_arm("plain", 2, slower=2.0))
    measured.add(of_arm("eagle3", 2, slower=0.25))
    charts = {chart["id"]: chart for chart in measured.as_json()["charts"]}
    plain, eagle3 = charts["arms-speedup"]["lines"]
    assert (plain["values"], eagle3["label"]) == ((1.0,), "eagle3")
    assert abs(eagle3["values"][0] - 4.0) < 1e-9  # of twice and eight times as fast
    assert {"arms-tpot", "arms-ttft", "arms-tokens", "arms-acceptance"} <= set(charts)
