"""What an arm gives up where its TPOT pays, in words: said in the same breath as that it pays."""

from collections.abc import Sequence

from loadgen.core.comparison.arms import ArmLadder, ArmsComparison
from loadgen.core.comparison.choice import Choice, Schedule
from loadgen.core.comparison.draft_length import Basis
from loadgen.core.comparison.objection import Against
from loadgen.core.comparison.trade_off import Effect, TradeOff
from loadgen.core.stats.bootstrap import Estimate
from loadgen.report.words import DASH, asked, percent, printable

METRIC_LABELS = {
    "tpot_s.mean": "TPOT",
    "e2el_s.mean": "E2EL",
    "ttft_s.mean": "TTFT",
    "output_tokens_per_s": "output tokens/s",
    "goodput_rps": "goodput",
}
_SHORT = METRIC_LABELS | {"output_tokens_per_s": "tokens/s"}
_MOST_LEVELS = 3
_WITHOUT_DRAFTER = frozenset({"ngram", "suffix", "mtp"})
"""Methods of vLLM whose configuration names no second model."""
_SHARES = {
    Against.FAILURES: ("fails more requests", "fail more requests"),
    Against.ATTAINMENT: ("meets the objectives of fewer requests", "meet the objectives of fewer requests"),
}


def sure(*, one_start: bool) -> str:
    """How far a claim reaches: one start of each arm does not tell what another would show."""
    return "within this one start" if one_start else "for certain"


def caveat(ladder: ArmLadder) -> str:
    """What the other metrics do where TPOT pays, and which requests are not answered; reads on from what TPOT does.
    Empty where they follow it.

    `, but loses output tokens/s and E2EL at 16 and 32 (at 32 × 0.91 [0.89, 0.93] and 1.10 [1.08, 1.12])`.
    """
    parts = shares_texts(ladder)
    for effect, words, more in (
        (Effect.LOSS, "loses", ""),
        (Effect.MAY_LOSE, "seems to cost", ": measure more"),
        (Effect.NO_GAIN, "shows no gain in", ""),
    ):
        by_metric: dict[str, list[TradeOff]] = {}
        for each in ladder.trade_offs:
            if each.effect is effect:
                by_metric.setdefault(each.metric, []).append(each)
        alike: dict[tuple[float, ...], list[list[TradeOff]]] = {}
        for found in by_metric.values():
            alike.setdefault(tuple(each.level for each in found), []).append(found)
        parts += [f"{words} {_listed_at(levels, found, more)}" for levels, found in alike.items()]
    return f", but {' and '.join(parts)}" if parts else ""


def shares_texts(ladder: ArmLadder) -> list[str]:
    """Where it answers fewer requests than the baseline, and by how much where that is worst."""
    parts = []
    for against, (does, seems) in _SHARES.items():
        for certain in (True, False):
            found = [each for each in ladder.objections if each.against is against and each.certain is certain]
            if found:
                worst = max(found, key=lambda each: abs(each.arm - each.baseline))
                where = "" if len(found) == 1 else f"at {asked(worst.level)} "
                parts.append(
                    f"{does if certain else f'seems to {seems}'} at {levels_text([each.level for each in found])}"
                    f" ({where}{percent(worst.arm)}, the baseline {percent(worst.baseline)}"
                    f"{'' if certain else ': measure more'})"
                )
    return parts


def lengths_text(ladder: ArmLadder) -> str | None:
    """That answers are longer or shorter than the baseline's, and where; None where they are not."""
    found = [each for each in ladder.objections if each.against is Against.LENGTHS]
    if not found:
        return None
    worst = max(found, key=lambda each: abs(each.arm - each.baseline))
    where = "" if len(found) == 1 else f" at {asked(worst.level)}"
    return (
        f"its answers have {worst.arm:.1f} tokens on average{where}, by its server's count, and the baseline's"
        f" {worst.baseline:.1f}: not the same work"
    )


def _listed_at(levels: Sequence[float], found: Sequence[Sequence[TradeOff]], more: str) -> str:
    """Metrics that do the same at the same levels, with their ratios at the level where the first is worst."""
    worst = max(range(len(levels)), key=lambda place: _from_one(found[0][place].ratio))
    names = listed([METRIC_LABELS[each[0].metric] for each in found])
    ratios = listed([_interval(each[worst].ratio) for each in found])
    where = f"at {asked(levels[worst])} " if len(levels) > 1 else ""
    return f"{names} at {levels_text(levels)} ({where}× {ratios}{more})"


def figure_caveat(ladder: ArmLadder) -> str:
    """The same for a figure, shortest: which metrics, at which levels."""
    lost = [each for each in ladder.trade_offs if each.effect is Effect.LOSS]
    held = [each for each in ladder.trade_offs if each.effect is Effect.MAY_LOSE]
    flat = [each for each in ladder.trade_offs if each.effect is Effect.NO_GAIN]
    fewer = sorted({each.level for each in ladder.objections if each.against is not Against.LENGTHS})
    other = sorted({each.level for each in ladder.objections if each.against is Against.LENGTHS})
    parts = [
        f"{words} {listed(list(dict.fromkeys(METRIC_LABELS[each.metric] for each in found)))}"
        f" at {levels_text(sorted({each.level for each in found}))}"
        for found, words in ((lost, "loses"), (held, "seems to cost"), (flat, "no gain in"))
        if found
    ]
    parts = [*([f"answers fewer requests at {levels_text(fewer)}"] if fewer else []), *parts]
    parts += [f"answers of another length at {levels_text(other)}"] if other else []
    return "".join(f"; {part}" for part in parts)


def losses(choice: Choice, comparison: ArmsComparison) -> str:
    """What the arm of a level loses there for certain; empty where that is nothing."""
    gains = next(each.gains for each in comparison.arms if each.arm.name == choice.arm)
    found = gains[choice.level].trade_offs if choice.level in gains else ()
    lost = [METRIC_LABELS[each.metric] for each in found if each.effect is Effect.LOSS]
    return listed(lost) if lost else ""


def choice_cost(choice: Choice, comparison: ArmsComparison) -> str:
    """What the arm of a level does not do as well as its TPOT there: `TTFT × 1.35; no gain: E2EL`."""
    gains = next((each.gains for each in comparison.arms if each.arm.name == choice.arm), {})
    found = gains[choice.level].trade_offs if choice.level in gains else ()
    parts = [f"{_SHORT[each.metric]} × {each.ratio.value:.2f}" for each in found if each.effect is Effect.LOSS]
    flat = [_SHORT[each.metric] for each in found if each.effect is Effect.NO_GAIN]
    parts += [f"no gain: {', '.join(flat)}"] if flat else []
    return "; ".join(parts) or DASH


def evidence_text(schedule: Schedule) -> str:
    """Whose the entries of a table of draft lengths are, and what they rest on, level by level."""
    words = {
        Basis.PAYS: "measured to pay at {}",
        Basis.COSTS: "measured to cost at {}, hence 0",
        Basis.BETWEEN: "nothing shown at {}, as at the levels on either side",
        Basis.DEFAULT: "nothing shown at {}, hence 0 as without speculation: not a finding",
    }
    parts = []
    for basis, text in words.items():
        levels = [each.level for each in schedule.lengths if each.basis is basis]
        if levels:
            parts.append(text.format(levels_text(levels)))
    if schedule.not_run:
        parts.append(f"not run at {levels_text(schedule.not_run)}, which has no entry")
    if schedule.method not in _WITHOUT_DRAFTER and "model" not in schedule.configuration:
        parts.append('nobody told the name of its drafter: add it as "model"')
    return f"{listed([printable(label) for label in schedule.arms])} {'; '.join(parts)}"


def levels_text(levels: Sequence[float]) -> str:
    """`8`, `8 and 16`, or how many from where to where."""
    if len(levels) > _MOST_LEVELS:
        return f"{len(levels)} levels from {asked(levels[0])} to {asked(levels[-1])}"
    return listed([asked(level) for level in levels])


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _interval(ratio: Estimate) -> str:
    return f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def _from_one(ratio: Estimate) -> float:
    return max(ratio.value, 1 / ratio.value)
