"""Faults: what their texts mean, and which request suffers which."""

from collections import Counter

import pytest

from loadgen.core.errors import ConfigError
from loadgen.sim.server.faults import Fault, FaultKind, Restart, parse_faults


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("delay=0.5s", Fault(kind=FaultKind.DELAY, delay_s=0.5)),
        ("stall=5", Fault(kind=FaultKind.STALL, after_events=5)),
        ("reset", Fault(kind=FaultKind.RESET, after_events=0)),
        ("error=4", Fault(kind=FaultKind.ERROR_EVENT, after_events=4)),
        ("truncate=4", Fault(kind=FaultKind.TRUNCATED, after_events=4)),
        ("429", Fault(kind=FaultKind.RATE_LIMITED)),
        ("429=2s", Fault(kind=FaultKind.RATE_LIMITED, retry_after_s=2.0)),
        ("503=100ms", Fault(kind=FaultKind.UNAVAILABLE, retry_after_s=0.1)),
    ],
)
def test_a_text_is_a_fault_of_every_request_unless_it_has_a_share(text: str, fault: Fault) -> None:
    """The value belongs to the kind; the share follows @."""
    assert parse_faults([text]).shares == ((1.0, fault),)
    assert parse_faults([f"{text}@2.5%"]).shares == ((0.025, fault),)


def test_faults_of_the_whole_server() -> None:
    """A slow start, one restart with its down time, a verifier that changes tokens; nothing without texts."""
    faults = parse_faults(["slow-start=20s", "restart=30s:500ms", "lossy=5%"])
    assert (faults.slow_start_s, faults.restart, faults.lossy_ratio) == (20.0, Restart(at_s=30.0, down_s=0.5), 0.05)
    assert parse_faults(["restart=1m"]).restart == Restart(at_s=60.0, down_s=5.0)
    none = parse_faults([])
    assert (none.shares, none.slow_start_s, none.restart, none.lossy_ratio) == ((), 0.0, None, 0.0)
    assert none.for_request(1) is None


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["explode"], "--fault explode: expected one of delay, stall, reset, error, truncate, 429, 503, slow-start"),
        (["delay"], "--fault delay: expected a duration such as 500ms"),
        (["delay=soon@1%"], "--fault delay=soon@1%: expected a duration"),
        (["stall=a"], "--fault stall=a: expected a number of events, got 'a'"),
        (["stall="], "--fault stall=: expected a number of events, got ''"),
        (["reset=-1"], "expected a number of events, got '-1'"),
        (["reset@0.1"], "--fault reset@0.1: expected a share such as 5%, got '0.1'"),
        (["reset@0%"], "expected a share such as 5%, got '0%'"),
        (["reset@101%"], "expected a share such as 5%, got '101%'"),
        (["lossy=nan"], "--fault lossy=nan: expected a share such as 5%"),
        (["restart=30s@5%"], "--fault restart=30s@5%: this is the whole server's"),
        (["restart=1s", "restart=2s"], "--fault restart=2s: restart was given before"),
        (["delay=1s", "reset@10%"], "a request suffers one fault at most, but the shares come to 110%"),
    ],
)
def test_a_text_that_means_nothing_is_named_with_what_was_expected(texts: list[str], message: str) -> None:
    """No fault is dropped in silence."""
    with pytest.raises(ConfigError) as caught:
        parse_faults(texts)
    assert message in str(caught.value)


def test_each_fault_hits_its_share_and_no_request_twice() -> None:
    """Of 20,000 requests a tenth is delayed, a fifth reset (four standard errors); the rest suffers nothing."""
    faults = parse_faults(["delay=1s@10%", "reset=1@20%"], seed=3)
    kinds = Counter(None if fault is None else fault.kind for fault in map(faults.for_request, range(20_000)))
    assert kinds[FaultKind.DELAY] == pytest.approx(2_000, abs=170)
    assert kinds[FaultKind.RESET] == pytest.approx(4_000, abs=227)
    assert kinds.total() - kinds[None] == kinds[FaultKind.DELAY] + kinds[FaultKind.RESET]


def test_seed_and_number_decide_alone() -> None:
    """In any order of asking the same requests suffer; another seed picks others."""
    texts = ["reset@50%"]
    one, again, other = (parse_faults(texts, seed=seed) for seed in (1, 1, 2))
    drawn = [one.for_request(number) for number in range(64)]
    assert [again.for_request(number) for number in reversed(range(64))] == drawn[::-1]
    assert [other.for_request(number) for number in range(64)] != drawn


def test_shares_may_add_up_to_all_requests() -> None:
    """Ten tenths are one, whatever floating point makes of it, and then every request suffers."""
    faults = parse_faults(["reset=1@10%"] * 10)
    assert all(faults.for_request(number) is not None for number in range(1_000))
