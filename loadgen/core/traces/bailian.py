"""Qwen-Bailian usage traces: JSON lines with `timestamp` (seconds, fractional), lengths, `chat_id`, `parent_chat_id`,
`turn`, `type` and `hash_ids` of 16 tokens each.

Each request has a `chat_id` of its own and names the turn before it by `parent_chat_id`, -1 for the first turn.
"""

import msgspec

from loadgen.core.traces.json_rows import Count, LengthLine, decode_row, time_ns, turn_of_lengths
from loadgen.core.traces.row import Reason, Row

BLOCK_TOKENS = 16
_NO_PARENT = "-1"


class _Line(LengthLine, kw_only=True):
    chat_id: int | str
    parent_chat_id: int | str | None = None
    type: str | None = None
    turn: Count | None = None


class BailianParser:
    """Rows of one file."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(_Line)

    def parse(self, data: bytes) -> Row | Reason:
        """One turn; zero tokens are left out."""
        line = decode_row(self._decoder, data)
        turn = turn_of_lengths(line, BLOCK_TOKENS)
        if turn is None:
            return Reason.ZERO_TOKENS
        parent = None if line.parent_chat_id is None else str(line.parent_chat_id)
        return Row(
            turns=(turn,),
            time_ns=time_ns(line.timestamp, per_second=1),
            session=str(line.chat_id),
            parent=None if parent == _NO_PARENT else parent,
            turn=line.turn,
            category=line.type,
        )
