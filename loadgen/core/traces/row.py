"""One row of a data file, whatever its format, and the reasons why a row is not used."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from loadgen.core.request import Prompt

LARGEST_COUNT = 2**31 - 1
LARGEST_TIME_NS = 2**63 - 1


class Reason(StrEnum):
    """Why a row is not used. The first group is faults of the file, the second known traits of public data sets,
    the third the user's own selection.
    """

    NOT_JSON = "not_json"
    NOT_AN_OBJECT = "not_an_object"
    COLUMNS = "columns"
    MISSING_FIELD = "missing_field"
    BAD_VALUE = "bad_value"
    BLOCKS = "blocks"
    NO_TIME = "no_time"

    ZERO_TOKENS = "zero_tokens"
    NO_TURNS = "no_turns"
    BEGINS_WITH_ANSWER = "begins_with_answer"
    NOT_ALTERNATING = "not_alternating"

    OVER_CONTEXT = "over_context"
    OUTSIDE_WINDOW = "outside_window"
    THINNED = "thinned"
    OVER_LIMIT = "over_limit"


class BadRow(Exception):  # noqa: N818  a verdict on the file, mapped to TraceFormatError where path and line are known
    """A row that breaks its format: the field, and what was expected; the line where the reader does not know it."""

    def __init__(self, reason: Reason, message: str, *, field: str | None = None, line: int | None = None) -> None:
        self.reason, self.message, self.field, self.line = reason, message, field, line
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTurn:
    """One request of a row.

    `prompt` is None when the row tells lengths only. `blocks` name the pieces of `block_tokens` tokens that the input
    consists of, equal numbers for equal content; the last piece may be shorter. `answer` is the recorded one.
    """

    prompt: Prompt | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    blocks: tuple[int, ...] = ()
    block_tokens: int | None = None
    answer: str | None = None
    think_s: float | None = None
    continues_answers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row as read: times in ns on the file's own axis.

    Rows with the same `session` belong together. `parent` is set where a row names the row before it instead of its
    session: then `session` is the row's own name. `elapsed_ns` is from submission to the end of the recorded answer.
    """

    turns: tuple[RowTurn, ...]
    time_ns: int | None = None
    elapsed_ns: int | None = None
    session: str | None = None
    parent: str | None = None
    turn: int | None = None
    category: str | None = None
    id: str | None = None


class RowParser(Protocol):
    """Parses the rows of one format."""

    def parse(self, data: bytes) -> Row | Reason:
        """A row, or the reason why it is left out. Raises BadRow for one that breaks the format."""
        ...
