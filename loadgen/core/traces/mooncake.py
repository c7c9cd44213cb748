"""Mooncake: JSON lines with `timestamp` (ms from the start), `input_length`, `output_length`, `hash_ids`.

A hash id names 512 tokens of the input; rows that begin with the same ids share that prefix.
"""

import msgspec

from loadgen.core.traces.json_rows import LengthLine, decode_row, time_ns, turn_of_lengths
from loadgen.core.traces.row import Reason, Row

BLOCK_TOKENS = 512


class MooncakeParser:
    """Rows of one file."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(LengthLine)

    def parse(self, data: bytes) -> Row | Reason:
        """One request; zero tokens are left out."""
        line = decode_row(self._decoder, data)
        turn = turn_of_lengths(line, BLOCK_TOKENS)
        if turn is None:
            return Reason.ZERO_TOKENS
        return Row(turns=(turn,), time_ns=time_ns(line.timestamp, per_second=1000))
