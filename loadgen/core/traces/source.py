"""From rows to conversations: where data comes from, prompts for rows without one, histories, repeated passes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal, Protocol

from loadgen.core.errors import ConfigError, DataError
from loadgen.core.request import Conversation, JsonObject, Messages, Prompt, Text, Turn
from loadgen.core.traces.facts import TraceFacts
from loadgen.core.traces.row import Row, RowTurn
from loadgen.core.traces.texts import Texts, marked
from loadgen.core.units import nanoseconds, seconds

History = Literal["answers", "recorded"]
"""What a turn goes on from: the real answers of this run, or those that the data file holds."""


class Source(Protocol):
    """Data of a run."""

    @property
    def facts(self) -> TraceFacts:
        """What it holds."""
        ...

    def conversations(self, *, pass_number: int = 0, unique_repeats: bool = False) -> Iterator[Conversation]:
        """All conversations by first arrival, the same each time that it is called.

        Invented prompts are new in each pass. Others come again; with `unique_repeats` those of a pass after the first
        are marked at their beginning, so that a prefix cache does not answer for the server. Session names of a later
        pass end in `#2`, `#3` and so on.
        """
        ...


def cycle(source: Source, *, first_pass: int = 0, unique_repeats: bool = False) -> Iterator[tuple[int, Conversation]]:
    """Conversations without end, each with its pass number, from `first_pass` on.

    A caller that takes one with a higher number repeats data, and says so. Arrivals of the next pass go on one mean gap
    after the last of the pass before. Raises DataError when there is no conversation.
    """
    facts = source.facts
    period_s = 0.0
    if facts.span_s is not None:
        period_s = facts.span_s + (facts.span_s / (facts.used - 1) if facts.used > 1 else 1.0)
    for pass_number in count(first_pass):
        shift_ns, found = nanoseconds((pass_number - first_pass) * period_s), False
        for conversation in source.conversations(pass_number=pass_number, unique_repeats=unique_repeats):
            found = True
            yield pass_number, _shifted(conversation, shift_ns) if shift_ns else conversation
        if not found:
            raise DataError(f"{facts.name}: there is no conversation to repeat")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRow:
    """A row with its number in the file (from 0), its physical line, and its arrival after the first (ns, scaled)."""

    row: Row
    number: int
    line: int
    offset_ns: int | None


def conversation_of(
    rows: Sequence[PlacedRow],
    *,
    texts: Texts | None,
    history: History = "answers",
    speed: float = 1.0,
    pass_number: int = 0,
    unique_repeats: bool = False,
) -> Conversation:
    """The rows of one conversation, in turn order, as its turns.

    Turns that a row holds after its first have no arrival of their own. Raises ConfigError when a row has no text and
    there are no `texts`, or when an earlier answer is not recorded and `history` wants it.
    """
    turns: list[Turn] = []
    past: list[JsonObject] | None = []
    for index, placed in enumerate(rows):
        for place, row_turn in enumerate(placed.row.turns):
            prompt = row_turn.prompt
            continues = row_turn.continues_answers and bool(turns)
            invented = prompt is None and texts is not None and texts.kind == "invented"
            if prompt is None:
                prompt = _made(row_turn, placed, rows[0].number, texts, pass_number)
            elif history == "recorded":
                prompt, past = _recorded(row_turn, prompt, past, continues, placed.line)
                continues = False
            if unique_repeats and pass_number and not continues and not invented:
                prompt = marked(prompt, pass_number)
            think_s = row_turn.think_s
            if think_s is None and index and place == 0:
                think_s = think_after(rows[index - 1].row, placed.row)
            turns.append(
                Turn(
                    prompt=prompt,
                    input_tokens=row_turn.input_tokens,
                    output_tokens=row_turn.output_tokens,
                    offset_ns=placed.offset_ns if place == 0 else None,
                    think_s=None if think_s is None else think_s / speed,
                    continues_answers=continues,
                    source_line=placed.line,
                )
            )
    name = session_name(rows[0], len(turns))
    return Conversation(
        turns=tuple(turns),
        session_id=f"{name}#{pass_number + 1}" if name is not None and pass_number else name,
        category=rows[0].row.category,
    )


def session_name(first: PlacedRow, turns: int) -> str | None:
    """The name of a session: as recorded, else that of its row when it has several turns."""
    if first.row.session is not None or turns < 2:
        return first.row.session
    return first.row.id if first.row.id is not None else f"line-{first.line}"


def think_after(before: Row, row: Row) -> float | None:
    """Seconds from the end of the answer to `before` until `row` began; None when the recording does not tell.

    next start - previous end, never below zero: a turn that was sent before the answer had ended waited for nothing.
    """
    if before.time_ns is None or before.elapsed_ns is None or row.time_ns is None:
        return None
    return seconds(max(0, row.time_ns - before.time_ns - before.elapsed_ns))


def _made(turn: RowTurn, placed: PlacedRow, stream: int, texts: Texts | None, pass_number: int) -> Prompt:
    if texts is None or turn.input_tokens is None:
        raise ConfigError(f"line {placed.line} holds lengths and no text: say where its prompt is to come from")
    return texts.prompt(
        stream=stream,
        pass_number=pass_number,
        tokens=turn.input_tokens,
        blocks=turn.blocks,
        block_tokens=turn.block_tokens,
    )


def _recorded(
    turn: RowTurn, prompt: Prompt, past: list[JsonObject] | None, continues: bool, line: int
) -> tuple[Prompt, list[JsonObject] | None]:
    """The prompt behind the recorded history, and the history after it; None once an answer is missing."""
    added = _messages(prompt)
    if continues:
        if past is None or added is None:
            raise ConfigError(f"line {line}: an earlier answer is not recorded, so it cannot be the history")
        added = [*past, *added]
        prompt = Messages(messages=tuple(added))
    if added is None or turn.answer is None:
        return prompt, None
    return prompt, [*added, {"role": "assistant", "content": turn.answer}]


def _messages(prompt: Prompt) -> list[JsonObject] | None:
    match prompt:
        case Messages():
            return list(prompt.messages)
        case Text():
            return [{"role": "user", "content": prompt.text}]
        case _:
            return None


def _shifted(conversation: Conversation, shift_ns: int) -> Conversation:
    turns = (
        turn if turn.offset_ns is None else replace(turn, offset_ns=turn.offset_ns + shift_ns)
        for turn in conversation.turns
    )
    return replace(conversation, turns=tuple(turns))
