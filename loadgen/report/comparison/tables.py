"""The tables of a comparison that a terminal and a page show alike."""

from collections.abc import Sequence

from loadgen.core.comparison.arms import ArmLadder, ArmLevel, ArmsComparison
from loadgen.core.comparison.choice import Choice
from loadgen.core.comparison.explanation import Explanation
from loadgen.core.comparison.trade_off import MAY_LOSE_FROM
from loadgen.core.simulation.prediction import Bounds
from loadgen.core.stats.bootstrap import Estimate
from loadgen.report.comparison.standing import uncompared_why
from loadgen.report.comparison.trade_offs import choice_cost, sure
from loadgen.report.comparison.words import choice_label, interval, p_value_text
from loadgen.report.tables import TextTable
from loadgen.report.words import DASH, asked, milliseconds, number, percent, printable, variable_text

_PLACE = "arm, level"
_ORIGINS = {"counters": "counters", "per_request": "responses", "stream": "stream", "gauge": "gauge"}


def choice_table(comparison: ArmsComparison) -> TextTable:
    """What to run at each level, and what it gives there."""
    ladders = {ladder.arm.name: ladder for ladder in comparison.ladders}
    rows = []
    for choice in comparison.choices:
        ladder = ladders[choice.arm]
        level = next(each for each in ladder.levels if each.level == choice.level)
        rows.append(
            (
                asked(choice.level),
                choice_label(ladder),
                DASH if choice.speedup is None else interval(choice.speedup),
                milliseconds(level.tpot_s),
                number(level.output_tokens_per_s),
                number(level.cost_per_million_tokens),
                _reserve(choice, comparison),
            )
        )
    claimed = sure(one_start=comparison.one_start)
    table = TextTable(
        caption=f"The fastest of the arms whose TPOT is faster {claimed} and that lose neither E2EL, output tokens/s"
        f" nor goodput {claimed}, nor seem to by {MAY_LOSE_FROM - 1:.0%}, and that answer as many requests at the same"
        " length; else the baseline.",
        titles=(
            variable_text(comparison.variable),
            "<run",
            "speedup",
            "TPOT, ms",
            "tokens/s",
            "price",
            "<but",
        ),
        rows=tuple(rows),
        spare=(5, 3, 4),
        about={
            "price": "of a million output tokens, in the currency of the price of an hour",
            "but": "arm over baseline of what gets worse there, what gains nothing, and where there is no comparison",
        },
    )
    return _without_empty(table)


def _reserve(choice: Choice, comparison: ArmsComparison) -> str:
    """What has to be known of a choice: what its arm costs, or that the baseline was held against nothing."""
    if choice.arm != comparison.baseline.arm.name:
        return choice_cost(choice, comparison)
    return uncompared_why(comparison, choice.level) or DASH


def explanations(comparison: ArmsComparison) -> list[tuple[str, TextTable]]:
    """The tables that explain, with their titles, as far as something was measured or told."""
    found = (
        ("Steps: what they emit, and have to", step_table(comparison)),
        ("Bounds of the speedup", bound_table(comparison)),
        ("Answers against the baseline's", losslessness_table(comparison)),
        ("Acceptance", acceptance_table(comparison)),
        ("In the server", server_table(comparison)),
    )
    return [(title, table) for title, table in found if table.rows]


def step_table(comparison: ArmsComparison) -> TextTable:
    """From what a step emits and has to emit by forced runs to the speedup, and what they leave unexplained."""
    rows = []
    for ladder in comparison.arms:
        for level in ladder.levels:
            needed = None if level.explanation is None else level.explanation.needed
            if needed is not None and level.gain is not None:
                rows.append(
                    (
                        _place(ladder, level),
                        number(level.tokens_per_step),
                        interval(needed.length),
                        number(needed.predicted_speedup),
                        interval(level.gain.verdict.speedup),
                        _times(needed.residual),
                    )
                )
    return TextTable(
        caption="Tokens per step, and the speedups that follow from them.",
        titles=(_PLACE, "emits", "has to emit", "by steps", "measured", "left"),
        rows=tuple(rows),
        spare=(3,),
        about={
            "has to emit": "to be as fast as the baseline; measured with no draft accepted, for steps that draft as"
            " often as the arm's",
            "by steps": "emits over has to emit: the speedup if steps were all",
            "left": "measured over by steps: what steps do not explain, such as the prompts of other requests",
        },
    )


def bound_table(comparison: ArmsComparison) -> TextTable:
    """Speedups that cannot be passed, of decoding and of whole requests."""
    table = TextTable(
        caption="Speedups over the baseline, as measured and at best: of TPOT, unless E2EL is named.",
        titles=(
            _PLACE,
            "TPOT",
            "perfect drafter",
            "perfect lengths",
            "free drafter",
            "combined",
            "E2EL",
            "E2EL by TPOT",
            "E2EL at best",
        ),
        rows=tuple(_bound_row(ladder, level) for ladder in comparison.arms for level in ladder.levels),
        spare=(5, 8, 4, 7),
        about={
            "TPOT": "as measured",
            "perfect drafter": "if every draft were accepted, as measured with acceptance forced",
            "perfect lengths": "if only tokens were drafted that will be accepted, by the measured cost of a step",
            "free drafter": "if drafting took no time, by the model of the server",
            "combined": "if each step took the longer of a lookup's and the drafter's drafts, by the model: charged for"
            " the lookup alone / for the drafter where it is used / for the drafter on every step",
            "E2EL": "as measured, of whole requests",
            "E2EL by TPOT": "what the speedup of TPOT alone makes of whole requests, the wait for the first token as"
            " before",
            "E2EL at best": "if decoding took no time, that wait as before: an arm that shortens it as well may pass"
            " this",
        },
    )
    return _without_empty(table)


def _bound_row(ladder: ArmLadder, level: ArmLevel) -> tuple[str, ...]:
    why: Explanation | None = level.explanation
    model: Bounds | None = None if level.expected is None else level.expected.bounds
    request = None if why is None else why.request
    combined = None if model is None else model.combined
    e2el = None if level.gain is None else level.gain.ratios.get("e2el_s.mean")
    return (
        _place(ladder, level),
        _times(None if level.gain is None else level.gain.verdict.speedup),
        _times(None if why is None else why.perfect_drafter),
        number(None if why is None else why.oracle_length),
        number(None if model is None else model.draft_free),
        DASH
        if combined is None
        else " / ".join(map(number, (combined.lookup_cost, combined.cost_where_used, combined.cost_every_step))),
        number(None if e2el is None else 1 / e2el.value),
        number(None if request is None else request.speedup),
        number(None if request is None else request.limit),
    )


def losslessness_table(comparison: ArmsComparison) -> TextTable:
    """How far the answers of each arm, and of the baseline's second start, are those of the baseline."""
    tested = [(ladder, ladder.losslessness) for ladder in comparison.arms if ladder.losslessness is not None]
    references = {found.reference: found for _, found in tested}
    rows = [(printable(ladder.arm.label), found.requests, found.arm, p_value_text(found)) for ladder, found in tested]
    rows += [
        (f"{printable(comparison.baseline.arm.label)}, itself", found.requests, reference, DASH)
        for reference, found in references.items()
    ]
    return TextTable(
        caption="Pairs of answers to the same request: the arm's with those of either start of the baseline; in the"
        " last row, those two with one another.",
        titles=("arm", "requests", "the same to the end", "shared words", "words to one difference", "p"),
        rows=tuple(
            (
                label,
                str(requests),
                percent(agreement.identical_ratio),
                number(agreement.shared_words),
                number(agreement.words_to_difference),
                p_value,
            )
            for label, requests, agreement, p_value in rows
        ),
        marked=tuple(place for place, (_, found) in enumerate(tested) if found.lossy),
        spare=(3, 1),
        about={
            "shared words": "from the beginning of two answers to their first difference, median",
            "p": "how often chance alone sets the arm so far apart from the baseline",
        },
    )


def acceptance_table(comparison: ArmsComparison) -> TextTable:
    """Acceptance length by who counted it, and acceptance by draft token."""
    ladders = [
        ladder for ladder in comparison.arms if any(level.told.acceptance_length_by_origin for level in ladder.levels)
    ]
    origins = dict.fromkeys(
        origin for ladder in ladders for level in ladder.levels for origin in level.told.acceptance_length_by_origin
    )
    rows = [
        (
            _place(ladder, level),
            *(number(level.told.acceptance_length_by_origin.get(origin)) for origin in origins),
            percent(level.told.coverage_ratio),
            " ".join(f"{share:.2f}" for share in level.told.acceptance_by_position or ()) or DASH,
        )
        for ladder in ladders
        for level in ladder.levels
    ]
    return TextTable(
        caption="Acceptance length, by who counts it.",
        titles=(_PLACE, *(_ORIGINS.get(origin, origin) for origin in origins), "drafted", "<accepted by draft token"),
        rows=tuple(rows),
        spare=(len(origins) + 2,),
        about={
            "counters": "by the server's counters, over steps that drafted",
            "responses": "by what the responses tell, over steps that drafted",
            "stream": "by the tokens of an event, over all steps",
            "gauge": "by the server's gauge",
            "drafted": "share of the steps that drafted",
            "accepted by draft token": "share of those steps that accepted the first token, the second and so on",
        },
    )


def server_table(comparison: ArmsComparison) -> TextTable:
    """Where the time of requests went in the server, and what speculation took of its memory."""
    rows = [
        (
            _place(ladder, level),
            percent(level.told.queue_ratio),
            percent(level.told.prefill_ratio),
            percent(level.told.decode_ratio),
            DASH if level.told.kv_blocks is None else f"{level.told.kv_blocks:.0f}",
            percent(level.told.kv_peak_ratio),
            number(level.told.preemptions),
        )
        for ladder in (comparison.baseline, *comparison.arms)
        for level in ladder.levels
    ]
    table = TextTable(
        caption="As the server tells.",
        titles=(_PLACE, "queue", "prefill", "decode", "KV blocks", "KV peak", "preempted"),
        rows=tuple(rows),
        spare=(5, 1),
        about={
            "queue": "share of a request's time; the same for prefill and decode",
            "KV blocks": "blocks that the KV cache has",
            "KV peak": "how full they were at most",
            "preempted": "requests, in the worst repeat",
        },
    )
    return _without_empty(table)


def _place(ladder: ArmLadder, level: ArmLevel) -> str:
    return f"{printable(ladder.arm.label)}, {asked(level.level)}"


def _times(estimate: Estimate | None) -> str:
    return DASH if estimate is None else f"{estimate.value:.2f}"


def _without_empty(table: TextTable) -> TextTable:
    """Without the columns in which no row has a value; no rows when none but the first column is left."""
    kept = [0, *(i for i in range(1, len(table.titles)) if any(row[i] != DASH for row in table.rows))]

    def of(values: Sequence[str]) -> tuple[str, ...]:
        return tuple(values[i] for i in kept)

    return TextTable(
        caption=table.caption,
        titles=of(table.titles),
        rows=tuple(map(of, table.rows)) if len(kept) > 1 else (),
        marked=table.marked,
        spare=tuple(kept.index(i) for i in table.spare if i in kept),
        about=table.about,
    )
