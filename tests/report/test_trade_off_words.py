"""What an arm gives up where its TPOT pays, as people read it."""

import re
from dataclasses import replace

import pytest

from loadgen.core.comparison.arms import Arm, ArmLadder, ArmRun, ArmsComparison
from loadgen.core.comparison.assembly import compare
from loadgen.core.comparison.draft_length import Basis, DraftLength
from loadgen.core.comparison.gates import parse_gate
from loadgen.core.comparison.trade_off import Effect, TradeOff
from loadgen.report.comparison import comparison_html, comparison_text
from loadgen.report.comparison.tables import choice_table
from loadgen.report.comparison.trade_offs import caveat, choice_cost, evidence_text, figure_caveat, levels_text
from loadgen.report.comparison.words import advice, conclusion, schedule_evidence, schedule_texts
from tests.core.comparison.gains import around
from tests.core.comparison.ladders import BASELINE, EAGLE, ladder

DRAFTING = replace(EAGLE, method="eagle3", draft_tokens=3, configuration={"model": "a-drafter"})
PAYS_MS = {1: 10.0, 4: 12.0, 16: 20.0}


def other(metric: str, level: float, ratio: float, effect: Effect = Effect.LOSS) -> TradeOff:
    return TradeOff(metric=metric, level=level, effect=effect, ratio=around(ratio, 1.02))


def with_trade_offs(comparison: ArmsComparison, *found: TradeOff) -> ArmsComparison:
    """The comparison, of whose first arm this is told beside its TPOT."""
    (arm, *others) = comparison.arms
    levels = []
    for level in arm.levels:
        assert level.gain is not None
        told = tuple(each for each in found if each.level == level.level)
        levels.append(replace(level, gain=replace(level.gain, trade_offs=told)))
    return replace(comparison, arms=(replace(arm, levels=tuple(levels)), *others))


def slower_answers(runs: list[ArmRun], levels: set[float], factor: float) -> list[ArmRun]:
    """At these levels answers take that much longer as a whole, and as much fewer tokens come in all."""
    made = []
    for run in runs:
        cell, times = run.cell, factor if run.cell.level in levels else 1.0
        columns = cell.columns | {"e2el_s": cell.columns["e2el_s"] * times}
        rates = {name: None if rate is None else rate / times for name, rate in cell.rates.items()}
        made.append(replace(run, cell=replace(cell, columns=columns, rates=rates)))
    return made


def compared(arm: list[ArmRun] | None = None, *gates: str) -> ArmsComparison:
    runs = {BASELINE: ladder(BASELINE, {1: 20.0, 4: 22.0, 16: 30.0}), DRAFTING: arm or ladder(DRAFTING, PAYS_MS)}
    chosen = [parse_gate(text) for text in gates]
    return compare("made", "concurrency", runs, baseline=BASELINE, expected={}, gates=chosen)


def invalid(run: ArmRun) -> ArmRun:
    return replace(run, summary=replace(run.summary, verdict=replace(run.summary.verdict, valid=False)))


def first(comparison: ArmsComparison) -> ArmLadder:
    return comparison.arms[0]


def test_the_headline_says_what_is_lost_in_the_same_breath() -> None:
    """Metric, levels, and the ratio with its interval where it is worst, before the sentence ends."""
    lossy = compared(slower_answers(ladder(DRAFTING, PAYS_MS), {4, 16}, 2.5))
    words = conclusion(first(lossy), "concurrency")
    assert "; it pays at every level measured, but loses E2EL and output tokens/s at 4 and 16 (at 16 × 1.77 [" in words
    assert words.count(".") - words.count("0.") == words.count("1.") + 1  # one sentence
    assert "but" not in conclusion(first(compared()), "concurrency")


def test_metrics_that_do_the_same_share_their_words() -> None:
    """Others have their own; what only stops gaining is not called a loss."""
    comparison = with_trade_offs(
        compared(),
        other("ttft_s.mean", 4, 1.2),
        other("ttft_s.mean", 16, 1.1),
        other("output_tokens_per_s", 16, 0.9),
        other("e2el_s.mean", 16, 1.0, Effect.NO_GAIN),
    )
    assert caveat(first(comparison)) == (
        ", but loses TTFT at 4 and 16 (at 4 × 1.20 [1.18, 1.22]) and loses output tokens/s at 16 (× 0.90 [0.88, 0.92])"
        " and shows no gain in E2EL at 16 (× 1.00 [0.98, 1.02])"
    )
    assert figure_caveat(first(comparison)) == "; loses TTFT and output tokens/s at 4 and 16; no gain in E2EL at 16"
    assert (caveat(first(compared())), figure_caveat(first(compared()))) == ("", "")


def test_the_table_does_not_recommend_what_loses_throughput() -> None:
    """It falls back to the baseline, and says of which arm the faster TPOT was passed over."""
    lossy = compared(slower_answers(ladder(DRAFTING, PAYS_MS), {16}, 2.5))
    assert [row[1] for row in choice_table(lossy).rows] == ["EAGLE-3 (k = 3)", "EAGLE-3 (k = 3)", "Baseline"]
    assert advice(lossy) == (
        "at 1 to 4 EAGLE-3 (k = 3); at 16 Baseline, since the faster TPOT of EAGLE-3 (k = 3) costs whole answers or"
        " throughput"
    )
    (pasted,) = schedule_texts(lossy)
    assert "[9, 16, 0]" in pasted
    assert schedule_evidence(lossy) == ["EAGLE-3 (k = 3) measured to pay at 1 and 4; measured to cost at 16, hence 0"]


def test_the_table_says_what_its_choice_costs() -> None:
    """First tokens that come later, and whole answers that come no sooner; a column that is not there without."""
    comparison = with_trade_offs(
        compared(), other("ttft_s.mean", 4, 1.35), other("e2el_s.mean", 4, 1.0, Effect.NO_GAIN)
    )
    table = choice_table(comparison)
    assert table.titles[-1] == "<but"
    assert [row[-1] for row in table.rows] == ["—", "TTFT × 1.35; no gain: E2EL", "—"]
    assert advice(comparison).startswith("at 1 EAGLE-3 (k = 3); at 4 EAGLE-3 (k = 3), at the cost of TTFT; at 16")
    assert "<but" not in choice_table(compared()).titles
    assert choice_cost(compared().choices[0], compared()) == "—"


def test_entries_without_evidence_are_called_so() -> None:
    """Each basis has its words, and so has a level that no arm was run at; a table of which all rests on evidence says
    just that, and whose it is."""
    (schedule,) = compared().schedules
    lengths = tuple(
        DraftLength(level=level, draft_tokens=3, basis=basis) for level, basis in zip((1, 4, 8, 16), Basis, strict=True)
    )
    assert evidence_text(replace(schedule, lengths=lengths)) == (
        "EAGLE-3 (k = 3) measured to pay at 1; measured to cost at 4, hence 0; nothing shown at 8, as at the levels on"
        " either side; nothing shown at 16, hence 0 as without speculation: not a finding"
    )
    unnamed = replace(schedule, lengths=lengths[:1], configuration={})
    assert evidence_text(unnamed) == (
        'EAGLE-3 (k = 3) measured to pay at 1; nobody told the name of its drafter: add it as "model"'
    )
    assert evidence_text(replace(unnamed, method="ngram")) == "EAGLE-3 (k = 3) measured to pay at 1"
    part = replace(schedule, lengths=lengths[:1], not_run=(16.0,), arms=("A", "B"))
    assert evidence_text(part) == "A and B measured to pay at 1; not run at 16, which has no entry"
    text = " ".join(comparison_text(compared()).split())
    assert "Rests on EAGLE-3 (k = 3) measured to pay at 1, 4 and 16 " in text


def test_an_invalid_level_ends_no_headline() -> None:
    """The headline and its figure speak of the levels that may be believed."""
    runs = ladder(DRAFTING, PAYS_MS | {16: 60.0})
    comparison = compared([*runs[:-1], invalid(runs[-1])])
    assert conclusion(first(comparison), "concurrency") == (
        "lowers TPOT by 50% [50, 50] at 1 and by 45% [45, 46] at 4; it pays at every level measured; without 16,"
        " where a measurement is invalid."
    )
    assert "&gt; 4" in comparison_html(comparison)
    assert conclusion(first(compared([invalid(run) for run in runs])), "concurrency") == (
        "is not judged: at every level a measurement is invalid."
    )


def test_gates_that_fail_are_told_on_terminal_and_page() -> None:
    """Where, by how much, and how many were kept; without gates there is nothing of them."""
    gated = compared(slower_answers(ladder(DRAFTING, PAYS_MS), {16}, 2.5), "e2el_s.mean > 1.05x")
    text = " ".join(comparison_text(gated).split())
    assert "Failed EAGLE-3 (k = 3) at concurrency 16: e2el_s.mean is 1.77x of the baseline" in text
    assert "Kept 2 of 3, each gate at each level of each arm" in text
    assert "EAGLE-3 (k = 3) at concurrency 16: e2el_s.mean is 1.77x" in comparison_html(gated)
    assert "Gates" not in comparison_text(compared())


@pytest.mark.parametrize(
    ("levels", "words"),
    [([8], "8"), ([8, 16], "8 and 16"), ([1, 8, 16], "1, 8 and 16"), ([1, 2, 4, 8], "4 levels from 1 to 8")],
)
def test_many_levels_are_counted(levels: list[float], words: str) -> None:
    """Three are named."""
    assert levels_text(levels) == words


def test_labels_from_outside_stay_text() -> None:
    """Also where a gate names them."""
    odd = Arm(name="odd", label="\x1b[31m<b>")
    runs = {BASELINE: ladder(BASELINE, {1: 20.0}), odd: ladder(odd, {1: 10.0})}
    gates = [parse_gate("tpot_s.mean > 0.1x")]
    comparison = compare("made", "concurrency", runs, baseline=BASELINE, expected={}, gates=gates)
    assert "\x1b" not in comparison_text(comparison)
    assert set(re.findall(r"<b>(?!<bdi>).*?<", comparison_html(comparison))) == {"<b>Failed<", "<b>Kept<", "<b>So run<"}
