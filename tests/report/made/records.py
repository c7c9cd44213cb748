"""Records, one of each sort."""

from dataclasses import replace

from loadgen.core.record import Failure, FailureKind, Outcome, RequestRecord, RequestSpeculation, TokenSource
from loadgen.core.request import Phase


def made_records() -> list[RequestRecord]:
    """Six requests: a warm-up, three completed (one speculated, one of one token), one failed, one never sent."""
    ms = 1_000_000
    speculated = RequestRecord(
        seq=1,
        request_id="r-1",
        phase=Phase.MEASURE,
        session_id="s-1",
        turn=0,
        category="=cmd|'/c calc'!A0",
        due_ns=1000 * ms,
        sent_ns=1002 * ms,
        headers_ns=1010 * ms,
        first_ns=1052 * ms,
        first_output_ns=1052 * ms,
        last_ns=1132 * ms,
        closed_ns=1134 * ms,
        event_ns=(1052 * ms, 1092 * ms, 1132 * ms),
        event_tokens=(1, 4, 4),
        input_tokens=20,
        output_tokens=9,
        output_tokens_from=TokenSource.SERVER,
        finish_reason="stop",
        outcome=Outcome.COMPLETED,
        speculation=RequestSpeculation(steps=2, drafted_tokens=6, accepted_tokens=6, histogram=(0, 0, 0, 2)),
        http_status=200,
        streamed=True,
        cap_wait_ns=ms,
        notes=("no_done",),
    )
    one_token = replace(
        speculated,
        seq=2,
        request_id="r-2",
        category=None,
        due_ns=1100 * ms,
        sent_ns=1100 * ms,
        headers_ns=1110 * ms,
        first_ns=1150 * ms,
        first_output_ns=1150 * ms,
        last_ns=1150 * ms,
        closed_ns=1151 * ms,
        event_ns=(1150 * ms,),
        event_tokens=None,
        output_tokens=1,
        speculation=None,
        cap_wait_ns=0,
        notes=(),
    )
    later = replace(
        one_token,
        seq=3,
        request_id="r-3",
        due_ns=2000 * ms,
        sent_ns=2000 * ms,
        first_ns=2100 * ms,
        first_output_ns=2100 * ms,
        last_ns=2400 * ms,
        closed_ns=2401 * ms,
        event_ns=(2100 * ms, 2200 * ms, 2300 * ms, 2400 * ms),
        output_tokens=4,
    )
    failed = RequestRecord(
        seq=4,
        request_id="r-4",
        phase=Phase.MEASURE,
        due_ns=2100 * ms,
        sent_ns=2100 * ms,
        headers_ns=2110 * ms,
        closed_ns=2112 * ms,
        outcome=Outcome.FAILED,
        failure=Failure(kind=FailureKind.HTTP_5XX, http_status=503, message='a "quoted", message\r\non two lines'),
        http_status=503,
    )
    dropped = RequestRecord(
        seq=5, request_id="r-5", phase=Phase.MEASURE, due_ns=2200 * ms, outcome=Outcome.DROPPED, notes=("cap",)
    )
    warm = replace(later, seq=0, request_id="r-0", phase=Phase.WARMUP, due_ns=None, sent_ns=100 * ms)
    return [warm, speculated, one_token, failed, later, dropped]
