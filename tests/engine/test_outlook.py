"""When a run is given up: by what one process has seen, and by what several have seen together."""

from loadgen.core.record import FailureKind, RequestRecord
from loadgen.engine.outlook import Outlook, reason_to_give_up
from tests.core.analysis.factory import S, answered, failed


def outlook(*records: RequestRecord) -> Outlook:
    """What a process sees whose requests end in this order."""
    made = Outlook()
    for record in records:
        made.observe(record)
    return made


def refused(count: int) -> list[RequestRecord]:
    return [failed(seq, kind=FailureKind.HTTP_4XX, status=401) for seq in range(count)]


def unconnected(from_s: float, to_s: float) -> list[RequestRecord]:
    """A request a second that finds nobody."""
    return [
        failed(round(at), sent_ms=1000 * at, kind=FailureKind.CONNECT, status=None)
        for at in (from_s + step for step in range(round(to_s - from_s) + 1))
    ]


def test_twenty_refusals_and_nothing_else_are_enough() -> None:
    """Of one process or of several together; nineteen are not, and one other answer of any process is hope."""
    assert reason_to_give_up([outlook(*refused(19))]) is None
    assert reason_to_give_up([outlook(*refused(20))]) == "refused"
    assert reason_to_give_up([outlook(*refused(9)), outlook(*refused(10))]) is None
    assert reason_to_give_up([outlook(*refused(9)), outlook(*refused(11))]) == "refused"
    assert reason_to_give_up([outlook(*refused(20)), outlook(answered(0))]) is None
    assert reason_to_give_up([outlook(answered(0), *refused(20)), outlook(*refused(20))]) is None


def test_half_a_minute_without_a_connection_is_enough() -> None:
    """From the first request that found nobody to the end of the latest one, in whichever processes."""
    assert reason_to_give_up([outlook(*unconnected(5, 34))]) is None
    assert reason_to_give_up([outlook(*unconnected(5, 35))]) == "unreachable"
    assert reason_to_give_up([outlook(*unconnected(5, 20)), outlook(*unconnected(21, 35))]) == "unreachable"
    assert reason_to_give_up([outlook(*unconnected(5, 20)), outlook()]) is None


def test_what_one_process_reaches_is_not_gone() -> None:
    """A connection of another process begins the half minute anew."""
    reached = outlook(answered(0, sent_ms=10_000))
    assert reached.connected_ns is not None
    assert reached.connected_ns < 11 * S
    assert reason_to_give_up([outlook(*unconnected(5, 39)), reached]) is None
    assert reason_to_give_up([outlook(*unconnected(5, 41)), reached]) == "unreachable"


def test_a_long_answer_is_no_silence() -> None:
    """A request that finds nobody, and then none that ends: nothing is known of the time since."""
    assert reason_to_give_up([outlook(*unconnected(5, 5)), outlook(answered(0))]) is None
