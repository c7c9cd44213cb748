"""What a comparison of arms comes to, in words and in the cells of its tables, alike on a terminal and on a page."""

import json
from collections.abc import Mapping
from itertools import groupby

from loadgen.core.comparison.arms import ArmLadder, ArmLevel, ArmsComparison, Uncompared
from loadgen.core.comparison.choice import Choice, Schedule
from loadgen.core.comparison.explanation import Cause
from loadgen.core.comparison.gain import Gain
from loadgen.core.comparison.losslessness import ROUNDING_RATIO, STATED_LOSS_RATIO, Agreement, Losslessness, Sampling
from loadgen.core.comparison.verdict import FAMILY_ERROR_RATIO, Claim
from loadgen.core.stats.bootstrap import Estimate
from loadgen.report.comparison.crossing import pays_text
from loadgen.report.comparison.standing import (
    LONE_START,
    noise_text,
    uncompared_levels,
    uncompared_text,
    uncompared_why,
)
from loadgen.report.comparison.trade_offs import (
    caveat,
    evidence_text,
    lengths_text,
    levels_text,
    listed,
    losses,
    shares_texts,
    sure,
)
from loadgen.report.words import DASH, asked, number, percent, printable, variable_text

CLAIM_MARKS = {Claim.FASTER: "✓", Claim.SLOWER: "✗", Claim.NO_DIFFERENCE: "~"}
TPOT = "tpot_s.mean"

_TOLD_NOTHING = (0.5, 2.0)  # an interval that holds half and twice the baseline's TPOT tells nothing of an arm
_COVERAGE_APART_RATIO = 0.05
_AS_BASELINE = "of its answers are the baseline's word for word"


def claim_legend(comparison: ArmsComparison) -> str:
    """What the marks of claims mean, and how far they may be believed."""
    marks = ", ".join(f"{mark} {claim}" for claim, mark in CLAIM_MARKS.items())
    if comparison.one_start:
        return f"{marks}; within this one start: how much starts differ is in no interval"
    return f"{marks}; at most {FAMILY_ERROR_RATIO:.0%} of such ladders hold a false claim"


def subtitle(comparison: ArmsComparison) -> str:
    """What was compared with what, over which levels, how often."""
    levels = ", ".join(asked(level.level) for level in comparison.baseline.levels)
    starts = "one start of each" if comparison.repeats == 1 else f"{comparison.repeats} starts of each"
    if not comparison.complete:
        starts = f"at most {starts} so far"
    arms = len(comparison.arms)
    return (
        f"{arms} arm{'' if arms == 1 else 's'} against {printable(comparison.baseline.arm.label)};"
        f" {variable_text(comparison.variable)} {levels}; {starts}"
    )


def conclusion(ladder: ArmLadder, variable: str, *, one_start: bool = False) -> str:
    """What one arm does to TPOT at the ends of its ladder, and up to which load it pays; reads on from its name.

    Of `one_start` of each arm nothing is said for certain.
    """
    valid = [(level, gain) for level, gain in ladder.gains.items() if gain.valid]
    compared = [(level, gain) for level, gain in valid if gain.same_work and not gain.one_start]
    other_length, fewer = lengths_text(ladder), listed(shares) if (shares := shares_texts(ladder)) else ""
    if ladder.gains and not valid:
        return "is not judged: at every level a measurement is invalid."
    if valid and not compared:
        return f"is not judged: {other_length or LONE_START}{f'. It {fewer}' if fewer else ''}."
    few, no_pair = (uncompared_levels(ladder, why) for why in Uncompared)
    if not compared or ladder.crossover is None:
        if no_pair and not few:
            return "is not compared yet: it has no run in a repeat in which the baseline has one."
        few_words = "cannot be compared: too few requests have a TPOT in both arms"
        return f"{few_words}. It {fewer}." if fewer else f"{few_words}."
    ends = [(_verb(gain), _change(gain, level)) for level, gain in (compared[0], compared[-1])[: len(compared)]]
    text = " ".join(ends[0])
    for verb, change in ends[1:]:
        text += f" and {change}" if verb == ends[0][0] else f" and {verb} {change}"
    left_out = (
        ([level for level, gain in ladder.gains.items() if not gain.valid], "a measurement is invalid"),
        ([level for level, gain in valid if not gain.same_work], other_length),
        ([level for level, gain in valid if gain.same_work and gain.one_start], LONE_START),
        (few, "too few requests can be compared"),
        (no_pair, "there is no pair of runs to compare"),
    )
    without = "".join(f"; without {levels_text(levels)}, where {why}" for levels, why in left_out if levels)
    pays = pays_text(ladder.crossover, variable, top=compared[-1][0], one_start=one_start)
    return f"{text}; it {pays}{caveat(ladder)}{without}."


def _verb(gain: Gain) -> str:
    if _tells_nothing(gain):
        return "is measured too loosely for anything to be told"
    if gain.verdict.claim is Claim.NO_DIFFERENCE:
        return "shows no certain difference"
    return "lowers TPOT" if gain.ratios[TPOT].value < 1 else "raises TPOT"


def _change(gain: Gain, level: float) -> str:
    """`by 41% [39, 43] at 1`; without a claim from where to where the change may lie, if that says anything."""
    ratio = gain.ratios[TPOT]
    if _tells_nothing(gain):
        return f"at {asked(level)} (TPOT may be half the baseline's as well as twice)"
    value, *ends = ((each - 1) * 100 for each in (ratio.value, ratio.low, ratio.high))
    if gain.verdict.claim is Claim.NO_DIFFERENCE:
        return f"at {asked(level)} [{ends[0]:+.0f}%, {ends[1]:+.0f}%]{_unclaimed_why(gain)}"
    digits = 0 if abs(value) >= 9.95 else 1
    low, high = sorted(ends, key=abs)
    return f"by {abs(value):.{digits}f}% [{abs(low):.{digits}f}, {abs(high):.{digits}f}] at {asked(level)}"


def _tells_nothing(gain: Gain) -> bool:
    ratio, (low, high) = gain.ratios[TPOT], _TOLD_NOTHING
    return gain.verdict.claim is Claim.NO_DIFFERENCE and ratio.low <= low and ratio.high >= high


def _unclaimed_why(gain: Gain) -> str:
    """Why nothing is claimed although the interval leaves out no change; empty where it does not."""
    speedup, floor = gain.verdict.speedup, gain.verdict.noise_floor
    if speedup.low <= 1 <= speedup.high:
        return ""
    if floor is not None and max(speedup.value, 1 / speedup.value) <= floor:
        return f", no more than the baseline may differ from itself there ({percent(floor - 1)})"
    return ", too little to claim among all levels"


def advice(comparison: ArmsComparison) -> str:
    """What to run at which levels: `at 1 to 16 EAGLE-3; at 64 Baseline, since nothing is faster for certain`."""
    labels = {ladder.arm.name: choice_label(ladder) for ladder in comparison.ladders}
    parts = []
    for (name, why), group in groupby(comparison.choices, key=lambda each: (each.arm, _why(each, comparison, labels))):
        found: list[Choice] = list(group)
        first, last = asked(found[0].level), asked(found[-1].level)
        parts.append(f"at {first if first == last else f'{first} to {last}'} {labels[name]}{why}")
    return "; ".join(parts)


def _why(choice: Choice, comparison: ArmsComparison, labels: Mapping[str, str]) -> str:
    """Why it is the baseline, and what an arm costs beside its TPOT."""
    if choice.arm != comparison.baseline.arm.name:
        lost = losses(choice, comparison)
        return f", at the cost of {lost}" if lost else ""
    at_level = {
        ladder.arm.name: level.objections
        for ladder in comparison.arms
        for level in ladder.levels
        if level.level == choice.level
    }
    fewer = [name for name in choice.passed_over if any(each.certain for each in at_level[name])]
    costly = [name for name in choice.passed_over if name not in fewer]
    why = [f"{listed([labels[name] for name in fewer])} with the faster TPOT answers fewer requests"] if fewer else []
    if costly:
        why.append(f"the faster TPOT of {listed([labels[name] for name in costly])} costs whole answers or throughput")
    if choice.held_back:
        why.append(f"{listed([labels[name] for name in choice.held_back])} is held back by what is said above")
    if why:
        return f", since {listed(why)}"
    uncompared = uncompared_why(comparison, choice.level)
    if uncompared is not None:
        return f", since {uncompared} there"
    return f", since nothing is faster {sure(one_start=comparison.one_start)}"


def choice_label(ladder: ArmLadder) -> str:
    """An arm that may be run; one that is lossy is not offered without saying so."""
    lossy = ladder.losslessness is not None and ladder.losslessness.lossy
    return f"{printable(ladder.arm.label)}{' (lossy)' if lossy else ''}"


def fall_text(ladder: ArmLadder) -> str | None:
    """Why the speedup of an arm falls with the load; None where it does not for certain. Reads on from its name."""
    found = ladder.fall
    if found is None:
        return None
    emits, needs = f"{found.length_ratio:.2f}", f"{found.needed_ratio:.2f}"
    between = f"from {asked(found.low)} to {asked(found.high)}"
    if found.cause is Cause.STEPS:
        steps = ""
        if found.step_ratio is not None:
            steps = f", by forced runs {found.step_ratio:.2f} times for drafting and verifying alone"
        return (
            f"gains less {between} because its steps cost more there: a step has to emit {needs} times as many tokens"
            f" to pay{steps}, and emits {emits} times as many."
        )
    return (
        f"gains less {between} because fewer of its drafts are accepted: a step emits {emits} times as many tokens, and"
        f" has to emit {needs} times as many. That is the traffic, not the cost of steps."
    )


def losslessness_text(ladder: ArmLadder) -> str | None:
    """What texts say of an arm; None where they were not compared. Reads on from its name."""
    found = ladder.losslessness
    if found is None:
        return None
    if found.differs and not found.lossy:
        claim = (
            "leaves answers alone but for what rounding may do: they leave the baseline's more than those leave one"
            f" another, but not for certain in more than one word in {1 / ROUNDING_RATIO:.0f}"
        )
    elif found.cleared:
        claim = f"leaves answers alone as far as can be seen: one word changed in {1 / STATED_LOSS_RATIO:.0f} would be"
    elif not found.lossy:
        claim = (
            "has too few answers to tell whether it leaves them alone: one word changed in"
            f" {1 / STATED_LOSS_RATIO:.0f} could go unseen"
        )
    elif found.sampling is Sampling.SAMPLED and found.arm.identical_ratio > found.reference.identical_ratio:
        claim = "is lossy: its answers are more alike than the baseline's are"
    else:
        claim = "is lossy: its answers leave the baseline's more than those leave one another"
    p_value, left_out = p_value_text(found), ""
    if found.left_out_ratio:
        left_out = f". {percent(found.left_out_ratio)} of all answers are not compared: they failed, or call tools"
    return (
        f"{claim}. {_agreement_text(found.arm, _AS_BASELINE)}; between two starts of the baseline"
        f" {_agreement_text(found.reference, 'are')}"
        f" (p {p_value if p_value.startswith('<') else f'= {p_value}'}){left_out}."
    )


def _agreement_text(agreement: Agreement, what: str) -> str:
    text = f"{percent(agreement.identical_ratio)} {what}"
    if agreement.words_to_difference is None:
        return text
    return f"{text}, with a difference every {number(agreement.words_to_difference)} words"


def p_value_text(found: Losslessness) -> str:
    """To the digits that the permutations give."""
    return "< 0.001" if found.p_value < 0.001 else f"{found.p_value:.3f}"


def schedule_texts(comparison: ArmsComparison) -> list[str]:
    """Draft lengths by batch size as vLLM's speculative configuration takes them, of methods that pay somewhere."""
    return [
        json.dumps(
            {
                "method": schedule.method,
                **schedule.configuration,
                "num_speculative_tokens": max(tokens for _, _, tokens in schedule.draft_tokens_by_batch),
                "num_speculative_tokens_per_batch_size": schedule.draft_tokens_by_batch,
            }
        )
        for schedule in _paying(comparison)
    ]


def schedule_evidence(comparison: ArmsComparison) -> list[str]:
    """For each of those texts, which of its entries rest on evidence."""
    return [evidence_text(schedule) for schedule in _paying(comparison)]


def _paying(comparison: ArmsComparison) -> list[Schedule]:
    return [each for each in comparison.schedules if any(tokens for _, _, tokens in each.draft_tokens_by_batch)]


def forced_text(ladder: ArmLadder) -> str | None:
    """That what a step has to emit was worked out for steps that draft as often as the arm's, and from what."""
    for level in ladder.levels:
        own = level.told.coverage_ratio
        forced = None if level.explanation is None else level.explanation.forced_coverage_ratio
        if own is not None and forced is not None and abs(forced - own) > _COVERAGE_APART_RATIO:
            return (
                f"{printable(ladder.arm.label)} drafts on {percent(own)} of its steps at {asked(level.level)}, and with"
                f" its acceptance forced on {percent(forced)}: what a step has to emit is scaled to its own share"
            )
    return None


def said_of(ladder: ArmLadder, comparison: ArmsComparison) -> list[str]:
    """What is concluded of an arm, the first reading on from its name: its speed, why it falls, its answers."""
    speed = conclusion(ladder, comparison.variable, one_start=comparison.one_start)
    others = fall_text(ladder), losslessness_text(ladder)
    return [speed, *(f"It {each}" for each in others if each is not None)]


def interval(ratio: Estimate) -> str:
    """`1.47 [1.44, 1.50]`: ratios lie around 1, so all of them have two decimals."""
    return f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def speedup_cell(level: ArmLevel) -> str:
    """The speedup of mean TPOT with its interval and the mark of its claim."""
    if level.gain is None:
        return DASH
    verdict = level.gain.verdict
    return f"{interval(verdict.speedup)} {CLAIM_MARKS[verdict.claim]}"


def expected_cell(level: ArmLevel) -> str:
    """The speedup that the model expected."""
    return DASH if level.expected is None else f"{level.expected.speedup:.2f}"


def length_cell(level: ArmLevel) -> str:
    """Tokens per step, and how many it takes."""
    needed = None if level.gain is None else level.gain.break_even_length
    if level.tokens_per_step is None:
        return DASH
    return f"{number(level.tokens_per_step)}, needs {number(None if needed is None else needed.value)}"


def error_ratio_text(comparison: ArmsComparison) -> str | None:
    """How much of the requests is in no comparison, where that is something."""
    left_out = [level.gain.left_out_ratio for arm in comparison.arms for level in arm.levels if level.gain is not None]
    worst = max(left_out, default=0.0)
    return None if worst == 0 else f"up to {worst:.1%} of a level's requests lack a TPOT in some run and are left out"


def remarks(comparison: ArmsComparison) -> list[str]:
    """What the reader has to know, in whole lines."""
    found = (
        uncompared_text(comparison),
        error_ratio_text(comparison),
        noise_text(comparison),
        *map(forced_text, comparison.arms),
    )
    return [printable(note) for note in comparison.notes] + [each for each in found if each is not None]
