"""Mooncake: JSON lines with `timestamp` (ms from the start), `input_length`, `output_length`, `hash_ids`.

A hash id names 512 tokens of the input; rows that begin with the same ids share that prefix.
"""

import msgspec

from loadgen.core.traces.json_rows import Count, check_blocks, decode_row, time_ns
from loadgen.core.traces.row import Reason, Row, RowTurn

BLOCK_TOKENS = 512


class _Line(msgspec.Struct):
    input_length: Count
    output_length: Count
    timestamp: int | float | None = None
    hash_ids: tuple[int, ...] | None = None


class MooncakeParser:
    """Rows of one file."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(_Line)

    def parse(self, data: bytes) -> Row | Reason:
        """One request; zero tokens are left out. Without `hash_ids` its prompt shares nothing."""
        line = decode_row(self._decoder, data)
        if not line.input_length or not line.output_length:
            return Reason.ZERO_TOKENS
        if line.hash_ids is not None:
            check_blocks(line.hash_ids, BLOCK_TOKENS, line.input_length)
        turn = RowTurn(
            input_tokens=line.input_length,
            output_tokens=line.output_length,
            blocks=line.hash_ids or (),
            block_tokens=BLOCK_TOKENS if line.hash_ids else None,
        )
        return Row(turns=(turn,), time_ns=time_ns(line.timestamp, per_second=1000))
