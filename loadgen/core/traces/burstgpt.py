"""BurstGPT: CSV with `Timestamp` (seconds from the first day), `Request tokens`, `Response tokens` and more.

Later files add `Session ID` and `Elapsed time` (seconds from submission to the full answer), which give the think time
between the turns of a session. A row with zero tokens is a request that failed for the recorded service: left out.
"""

from loadgen.core.traces.csv_rows import Columns, seconds_ns, token_count
from loadgen.core.traces.row import Reason, Row, RowTurn


class BurstGptParser:
    """Rows of one file, read by its header."""

    def __init__(self, header: bytes) -> None:
        """Raises BadRow when a column is missing."""
        self._columns = Columns(
            header, ("Timestamp", "Request tokens", "Response tokens"), ("Session ID", "Elapsed time", "Log Type")
        )

    def parse(self, data: bytes) -> Row | Reason:
        """One request; zero tokens are left out."""
        stamp, request, response, session, elapsed, log_type = self._columns.pick(data)
        time_ns = seconds_ns(stamp, "Timestamp")
        input_tokens = token_count(request, "Request tokens")
        output_tokens = token_count(response, "Response tokens")
        elapsed_ns = seconds_ns(elapsed, "Elapsed time")
        if not input_tokens or not output_tokens:
            return Reason.ZERO_TOKENS
        return Row(
            turns=(RowTurn(input_tokens=input_tokens, output_tokens=output_tokens),),
            time_ns=time_ns,
            elapsed_ns=elapsed_ns,
            session=session or None,
            category=log_type or None,
        )
