"""The origins against one another: equal where they count the same, bounded where they may differ."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from loadgen.core.metrics.summary import Finding, Speculation
from loadgen.core.record import FailureKind, Outcome, RequestRecord, RequestSpeculation
from loadgen.core.request import Phase
from loadgen.core.server.sample import Counters
from tests.core.analysis.factory import S, answered, failed, findings, summarised, unsent
from tests.core.speculation.made import MadeServer, comparison, scrape

PAIRS = [
    ("counters", "per_request", "steps"),
    ("counters", "per_request", "drafted_tokens"),
    ("counters", "per_request", "accepted_tokens"),
    ("counters", "stream", "decode_steps"),
    ("counters", "stream", "tokens_per_step"),
    ("per_request", "stream", "accepted_tokens"),
    ("per_request", "stream", "steps"),
]
STEPS = (4, None, 0, 2, None, 1)


def some(server: MadeServer, n: int = 5, **changes: object) -> list[RequestRecord]:
    return [server.answer(seq, STEPS, **changes) for seq in range(n)]


def reconciled(
    made: MadeServer, records: list[RequestRecord], *, counted: dict[str, float] | None = None, **changes: object
) -> Speculation:
    found = summarised(records, scrapes=made.scrapes(**(counted or {})), **changes).speculation
    assert found is not None
    return found


def finding(server: MadeServer, records: list[RequestRecord], **counted: float) -> Finding | None:
    return findings(records, scrapes=server.scrapes(**counted)).get("acceptance_disagrees")


def test_complete_answers_agree_exactly() -> None:
    """Every pair is there; where both count the same steps nothing at all is allowed."""
    server = MadeServer()
    spec = reconciled(server, some(server))
    assert [(one.left, one.right, one.quantity) for one in spec.agreement] == PAIRS
    assert all(one.agrees for one in spec.agreement)
    for pair in PAIRS[:5]:
        one = comparison(spec, *pair)
        assert (one.difference, one.allowed) == (0.0, (0.0, 0.0))
    assert comparison(spec, *PAIRS[0]).left_value == comparison(spec, *PAIRS[0]).right_value == 20
    assert comparison(spec, *PAIRS[6]).difference == 20 - 30
    assert finding(server, some(MadeServer())) is None


@pytest.mark.parametrize("counter", ["drafts", "drafted_tokens", "accepted_tokens", "decode_steps"])
def test_one_step_too_many_is_no_agreement(counter: str) -> None:
    """A counter that is off by one in either direction disagrees."""
    server = MadeServer()
    records = some(server)
    right = getattr(server.counters(), counter)
    spec = reconciled(server, records, counted={counter: right + 1})
    assert any(one.agrees is False for one in spec.agreement)
    spec = reconciled(server, records, counted={counter: right - 1})
    assert any(one.agrees is False for one in spec.agreement)


def test_warm_up_is_part_of_the_comparison() -> None:
    """The counters hold the steps of warm-up requests, and so do the sums that they are compared with."""
    server = MadeServer()
    records = [replace(record, phase=Phase.WARMUP if record.seq < 2 else Phase.MEASURE) for record in some(server)]
    spec = reconciled(server, records)
    assert spec.steps == 12
    assert comparison(spec, *PAIRS[0]).right_value == 20
    assert all(one.agrees for one in spec.agreement)


def test_the_end_of_an_answer_cuts_at_most_one_draft_a_request() -> None:
    """Three tokens of each last step were counted and never arrived: allowed up to k a request, not more."""
    server = MadeServer()
    records = [server.answer(seq, (4, 4), cut=3) for seq in range(5)]
    accepted = comparison(reconciled(server, records), "per_request", "stream", "accepted_tokens")
    assert (accepted.difference, accepted.allowed, accepted.agrees) == (15.0, (0.0, 20.0), True)
    shown = [replace(record, event_tokens=(1, 1, 1), output_tokens=3) for record in records]
    accepted = comparison(reconciled(server, shown), "per_request", "stream", "accepted_tokens")
    assert (accepted.difference, accepted.agrees) == (40.0, False)


def test_merged_events_show_more_than_was_accepted() -> None:
    """Two steps in one event look like one more accepted draft: no definition allows it, and it is a finding."""
    server = MadeServer()
    records = [server.answer(seq, (1, 1, 0), event_tokens=(1, 4, 1)) for seq in range(5)]
    spec = reconciled(server, records)
    accepted = comparison(spec, "per_request", "stream", "accepted_tokens")
    assert (accepted.difference, accepted.agrees) == (-5.0, False)
    steps = comparison(spec, "per_request", "stream", "steps")
    assert (steps.difference, steps.allowed, steps.agrees) == (5.0, (-10.0, 0.0), False)
    assert comparison(spec, "counters", "stream", "decode_steps").agrees is False
    found = finding(server, records)
    assert found.severity == "warning"
    assert "accepted tokens are 10 by the answers' own accounts and 15 by the events" in found.evidence
    assert "Trust the server's own figures" in found.advice
    assert spec.tokens_per_step == pytest.approx(25 / 15)  # the counters', not 25 / 10 of the events


def test_a_merged_event_among_hundreds_of_steps_is_no_finding() -> None:
    """Where nothing was accepted, one event of two steps would be all of the acceptance; of the steps it is little."""
    server = MadeServer()
    records = [server.answer(0, (0,) * 200, event_tokens=(1, 2, *(1,) * 198))]
    assert comparison(reconciled(server, records), "per_request", "stream", "accepted_tokens").agrees is False
    assert finding(server, records) is None


def test_what_no_event_shows_as_a_step_is_allowed() -> None:
    """The first step came with the first token, the last one had no text: two steps that no event shows."""
    server = MadeServer()
    records = [server.answer(seq, (1, 2, 0), event_tokens=(3, 3)) for seq in range(5)]
    spec = reconciled(server, records)
    steps = comparison(spec, "counters", "stream", "decode_steps")
    assert (steps.difference, steps.allowed, steps.agrees) == (10.0, (0.0, 15.0), True)
    per_step = comparison(spec, "counters", "stream", "tokens_per_step")
    assert per_step.agrees
    assert per_step.allowed == pytest.approx((30 / 20 - 3, 30 / 5 - 3))
    assert comparison(spec, "per_request", "stream", "accepted_tokens").agrees
    assert finding(server, records) is None


def test_steps_without_text_of_their_own_hide_their_drafts() -> None:
    """Two steps of two tokens had no event: their drafts are allowed beside the one that the end may cut off."""
    server = MadeServer(k=1)
    spec = reconciled(server, [server.answer(0, (1, 1, 1), event_tokens=(1, 2))])
    accepted = comparison(spec, "per_request", "stream", "accepted_tokens")
    assert (accepted.difference, accepted.allowed, accepted.agrees) == (2.0, (0.0, 5.0), True)


def test_a_broken_answer_may_have_added_what_it_was_asked_for() -> None:
    """Cut off after 3 of 20 tokens: at most 19 steps, each with k drafts; the rest must still be equal."""
    server = MadeServer()
    records = some(server)
    broken = replace(
        server.answer(5, (1, 0)),
        outcome=Outcome.CANCELLED,
        speculation=None,
        output_tokens=None,
        event_tokens=(1, 2),
        planned_output_tokens=20,
    )
    spec = reconciled(server, [*records, broken])
    assert comparison(spec, *PAIRS[0]).allowed == (0.0, 19.0)
    assert comparison(spec, *PAIRS[1]).allowed == (0.0, 76.0)
    assert comparison(spec, *PAIRS[2]).allowed == (0.0, 23.0)
    assert comparison(spec, *PAIRS[3]).allowed == (0.0, 17.0)
    assert all(one.agrees for one in spec.agreement)
    spec = reconciled(server, [*records, broken], counted={"drafts": 20 + 20})
    assert comparison(spec, *PAIRS[0]).agrees is False


@pytest.mark.parametrize("asked", [None, 20])
def test_the_runs_own_bound_on_answers_counts_too(asked: int | None) -> None:
    """A request asked for 20 tokens, or for no number at all; none may be longer than the run allows."""
    server = MadeServer()
    broken = replace(server.answer(5, (1,)), outcome=Outcome.CANCELLED, speculation=None, planned_output_tokens=asked)
    spec = reconciled(server, [*some(server), broken], options={"max_tokens": 8})
    assert comparison(spec, *PAIRS[0]).allowed == (0.0, 7.0)


def test_nothing_bounds_an_answer_without_a_length() -> None:
    """A cancelled request of unknown length: no bound, no judgement, and the reason in words."""
    server = MadeServer()
    broken = replace(server.answer(5, (1,)), outcome=Outcome.CANCELLED, speculation=None)
    spec = reconciled(server, [*some(server), broken])
    for pair in PAIRS[:5]:
        one = comparison(spec, *pair)
        assert (one.allowed, one.agrees) == (None, None)
        assert "bounds" in one.why
    assert finding(server, [*some(MadeServer()), broken]) is None


def test_requests_that_the_server_never_took_in_add_nothing() -> None:
    """Dropped, refused, not connected: the counters still have to be equal."""
    server = MadeServer()
    others = [
        unsent(5),
        failed(6, kind=FailureKind.HTTP_4XX, status=400),
        failed(7, kind=FailureKind.CONNECT, status=None),
    ]
    spec = reconciled(server, [*some(server), *others])
    assert comparison(spec, *PAIRS[0]).allowed == (0.0, 0.0)
    assert all(one.agrees for one in spec.agreement)


def test_foreign_traffic_disagrees() -> None:
    """A tenth more steps than this client's answers had."""
    server = MadeServer()
    found = finding(server, some(server), drafts=22, drafted_tokens=88, decode_steps=33)
    assert found is not None
    assert "steps are 22 by the server's counters and 20 by the answers' own accounts" in found.evidence
    assert "other requests" in found.advice


def test_a_difference_of_half_a_percent_is_no_finding() -> None:
    """201 steps and 200: said in the section, no warning; 203 is one."""
    server = MadeServer()
    records = some(server, n=50)
    assert reconciled(server, records, counted={"drafts": 201}).agreement[0].agrees is False
    assert finding(server, records, drafts=201) is None
    assert finding(server, records, drafts=203) is not None


def test_a_restart_leaves_nothing_to_compare() -> None:
    """Counters that fell: no value, no judgement, the reason in words; blocks and stream still agree."""
    server = MadeServer()
    records = some(server)
    scrapes = [*server.scrapes(), scrape(10_001 * S, MadeServer().counters())]
    spec = summarised(records, scrapes=scrapes).speculation
    steps = comparison(spec, "counters", "per_request", "steps")
    assert (steps.left_value, steps.right_value, steps.allowed, steps.agrees) == (None, 20, None, None)
    assert "started anew" in steps.why
    assert comparison(spec, "counters", "stream", "decode_steps").left_value is None
    assert comparison(spec, "per_request", "stream", "accepted_tokens").agrees


@pytest.mark.parametrize("span", [{"first_ns": 2 * S}, {"last_ns": 2 * S}])
def test_pages_that_do_not_hold_every_request_are_not_compared(span: dict[str, int]) -> None:
    """Read first after the first request, or last before the last one ended."""
    server = MadeServer()
    spec = summarised(some(server), scrapes=server.scrapes(**span)).speculation
    steps = comparison(spec, "counters", "per_request", "steps")
    assert (steps.left_value, steps.agrees) == (None, None)
    assert "does not hold every request" in steps.why


def test_a_single_page_has_no_difference() -> None:
    """Two readings are needed, and that is said."""
    server = MadeServer()
    spec = summarised(some(server), scrapes=server.scrapes()[:1]).speculation
    assert "no difference" in comparison(spec, "counters", "per_request", "steps").why


@pytest.mark.parametrize("how", [{"interrupted": None}, {"planned": 6}])
def test_a_killed_run_is_not_held_against_counters(how: dict[str, object]) -> None:
    """What was in flight has no record and is in the counters: said, and no doubt of anyone."""
    server = MadeServer()
    records = [*some(server), server.answer(5, STEPS)][:5]
    spec = reconciled(server, records, **how)
    one = comparison(spec, "counters", "per_request", "steps")
    assert (one.left_value, one.agrees) == (None, None)
    assert "no record" in one.why
    assert "acceptance_disagrees" not in findings(records, scrapes=server.scrapes(), **how)


def test_without_pages_blocks_and_stream_are_compared_alone() -> None:
    """No page was read: the other pair is there, and nothing about counters."""
    spec = summarised(some(MadeServer())).speculation
    assert [(one.left, one.right, one.quantity) for one in spec.agreement] == PAIRS[5:]


def test_an_engine_of_verification_steps_is_compared_by_them() -> None:
    """Its verification steps are the blocks' steps and every decode step."""
    server = MadeServer()
    records = [server.answer(seq, (4, 0, 2)) for seq in range(4)]
    zero = Counters(generation_tokens=0.0, first_tokens=0.0, verify_steps=0.0)
    last = replace(zero, generation_tokens=float(server.generated), first_tokens=4.0, verify_steps=12.0)
    spec = summarised(records, scrapes=[scrape(-S, zero), scrape(10_000 * S, last)]).speculation
    assert comparison(spec, "counters", "per_request", "steps").agrees
    assert comparison(spec, "counters", "stream", "decode_steps").agrees
    assert comparison(spec, "counters", "stream", "tokens_per_step").agrees


@pytest.mark.parametrize("counted", [12.0, 13.0, 15.0])
def test_an_engine_that_counts_at_the_end_is_not_compared_over_requests_that_broke_off(counted: float) -> None:
    """Steps of a cancelled answer may be counted or not: no doubt either way, and no claim to agree."""
    server = MadeServer()
    records = [server.answer(seq, (4, 0, 2)) for seq in range(4)]
    generated = float(server.generated)
    records.append(server.answer(4, (4, 0, 2), outcome=Outcome.CANCELLED, speculation=None, planned_output_tokens=40))
    zero = Counters(generation_tokens=0.0, first_tokens=0.0, verify_steps=0.0)
    last = replace(zero, generation_tokens=generated, first_tokens=4.0, verify_steps=counted)
    spec = summarised(records, scrapes=[scrape(-S, zero), scrape(10_000 * S, last)]).speculation
    for quantity in ("decode_steps", "tokens_per_step"):
        one = comparison(spec, "counters", "stream", quantity)
        assert (one.allowed, one.agrees) == (None, None)
        assert "1 requests that broke off" in one.why
    assert comparison(spec, "counters", "per_request", "steps").agrees


def test_a_draft_length_that_nobody_told_bounds_nothing() -> None:
    """Without k what the end of an answer cut off is not bounded; steps are compared all the same."""
    server = MadeServer()
    records = [
        replace(record, speculation=replace(record.speculation, max_draft_tokens=None)) for record in some(server)
    ]
    spec = reconciled(server, records)
    accepted = comparison(spec, "per_request", "stream", "accepted_tokens")
    assert (accepted.allowed, accepted.agrees) == (None, None)
    assert comparison(spec, "per_request", "stream", "steps").agrees
    told = reconciled(server, records, server={"speculation": {"draft_tokens": 4}})
    assert comparison(told, "per_request", "stream", "accepted_tokens").agrees


ANSWERS = json.loads((Path(__file__).parents[2] / "golden" / "streams" / "answers.json").read_text())
RECORDED = sorted(name for name, one in ANSWERS.items() if name.startswith("vllm_ngram") and "speculation" in one)


@pytest.mark.parametrize("name", [name for name in RECORDED if "event_tokens" in ANSWERS[name]])
def test_recorded_answers_of_vllm_agree(name: str) -> None:
    """Real blocks and real events: the same drafts but for the cut end; logprobs in chat make one event of them all."""
    told = ANSWERS[name]
    block = msgspec.convert(told["speculation"], RequestSpeculation)
    events = tuple(told["event_tokens"])
    record = answered(0, tokens=told["usage"]["output_tokens"], event_tokens=events, speculation=block)
    spec = summarised([record]).speculation
    if "logprobs" in name and "chat" in name:
        assert (spec.oversize_events, spec.agreement) == (1, ())
        return
    assert spec.oversize_events == 0
    assert [one.agrees for one in spec.agreement] == [True, True]
