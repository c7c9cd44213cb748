"""A comparison of arms as text for a terminal of a given width."""

from collections.abc import Callable, Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from loadgen.core.comparison.arms import ArmLadder, ArmLevel, ArmsComparison
from loadgen.core.comparison.verdict import Claim
from loadgen.report import text_parts
from loadgen.report.comparison.doubts import doubts, headline
from loadgen.report.comparison.gates import gate_lines
from loadgen.report.comparison.tables import choice_table, explanations
from loadgen.report.comparison.words import (
    advice,
    claim_legend,
    expected_cell,
    length_cell,
    remarks,
    said_of,
    schedule_evidence,
    schedule_texts,
    speedup_cell,
    subtitle,
)
from loadgen.report.tables import TextTable
from loadgen.report.terminal import verdict_block
from loadgen.report.text_parts import INDENT
from loadgen.report.words import DASH, asked, milliseconds, number, printable, variable_text

_COLOURS = {Claim.FASTER: "green", Claim.SLOWER: "red", Claim.NO_DIFFERENCE: ""}


def comparison_text(comparison: ArmsComparison, *, width: int = 100, color: bool = False) -> str:
    """Whether it may be believed, what each arm comes to, then level by level: speedup, why, and absolute values."""
    room = width - INDENT
    arms, everyone = comparison.arms, comparison.ladders

    def table(ladders: Sequence[ArmLadder], cell: Callable[[ArmLevel], Text], note: str = "") -> RenderableType:
        return _by_level(comparison, ladders, cell, room, note)

    parts: list[RenderableType] = [
        verdict_block(headline(comparison), printable(comparison.name), doubts(comparison), subtitle(comparison)),
        *([text_parts.section("Does it pay", text_parts.facts(_conclusions(comparison)))] if arms else []),
        *([text_parts.section("Gates", text_parts.facts(gates))] if (gates := gate_lines(comparison)) else []),
        _table("What to run", choice_table(comparison), room),
        text_parts.section("Speedup of TPOT over the baseline", table(arms, _speedup, claim_legend(comparison))),
    ]
    if any(level.expected is not None for arm in arms for level in arm.levels):
        parts.append(
            text_parts.section("Speedup expected from the model", table(arms, lambda level: Text(expected_cell(level))))
        )
    parts += [
        text_parts.section("Tokens per step, and how many it takes to pay", table(arms, _length)),
        text_parts.section("TPOT, ms", table(everyone, lambda level: Text(milliseconds(level.tpot_s)))),
        text_parts.section("Output tokens/s", table(everyone, lambda level: Text(number(level.output_tokens_per_s)))),
        *_explanations(comparison, room),
        text_parts.section("Stands on", text_parts.facts(("Note", line) for line in remarks(comparison))),
    ]
    return text_parts.rendered(parts, width, color)


def _explanations(comparison: ArmsComparison, room: int) -> Iterable[RenderableType]:
    """What explains the speedups, as far as it was measured or told."""
    for title, table in explanations(comparison):
        yield _table(title, table, room)


def _table(title: str, table: TextTable, room: int) -> RenderableType:
    return text_parts.section(title, text_parts.text_table(table, room))


def _conclusions(comparison: ArmsComparison) -> Iterable[tuple[str, str]]:
    for ladder in comparison.arms:
        yield printable(ladder.arm.label), "\n".join(said_of(ladder, comparison))
    if comparison.arms:
        yield "So run", advice(comparison)
    for text, evidence in zip(schedule_texts(comparison), schedule_evidence(comparison), strict=True):
        yield "To paste", text
        yield "Rests on", evidence


def _by_level(
    comparison: ArmsComparison, ladders: Sequence[ArmLadder], cell: Callable[[ArmLevel], Text], room: int, note: str
) -> RenderableType:
    """A row a level and a column an arm; what does not fit goes from the right, and its name stands beneath."""
    titles = [variable_text(comparison.variable), *(printable(ladder.arm.label) for ladder in ladders)]
    by_level = [{level.level: level for level in ladder.levels} for ladder in ladders]
    rows = [
        [
            Text(asked(place.level)),
            *(cell(found[place.level]) if place.level in found else Text(DASH) for found in by_level),
        ]
        for place in comparison.baseline.levels
    ]
    drawn, left_out = text_parts.table(titles, rows, room, leave_out=range(len(ladders), 0, -1))
    lines = [note] if note else []
    if left_out:
        lines.append(text_parts.left_out_text(left_out))
    return Group(drawn, *(Text(line, style="dim") for line in lines))


def _speedup(level: ArmLevel) -> Text:
    style = "" if level.gain is None else _COLOURS[level.gain.verdict.claim]
    return Text(speedup_cell(level), style=style)


def _length(level: ArmLevel) -> Text:
    return Text(length_cell(level))
