"""Which origin the headline stands on, and what each origin's view says."""

from dataclasses import replace

import pytest

from loadgen.core.record import Outcome, RequestSpeculation
from loadgen.core.request import Phase
from loadgen.core.server.sample import Counters, Gauges
from loadgen.core.speculation.server_side import ServerSide
from loadgen.core.speculation.views import gauge_view
from tests.core.analysis.factory import S, answered, failed, summarised
from tests.core.speculation.made import MadeServer, scrape, tallied, view

VERIFYING = Counters(verify_steps=100.0, generation_tokens=310.0, first_tokens=10.0)
"""An engine that counts verification steps: 300 tokens in 100 steps."""


def test_every_origin_has_its_view_and_names_what_it_counted() -> None:
    """Three of five steps drafted: blocks and counters count three, the stream five, each under its own name."""
    server = MadeServer()
    record = server.answer(0, (4, None, 0, None, 2))
    spec = tallied(record, server=ServerSide(window=server.counters()))
    found = {one.origin: (one.population, one.scope, one.steps, one.acceptance_length) for one in spec.views}
    assert found == {
        "counters": ("drafting_steps", "window", 3, 3.0),
        "per_request": ("drafting_steps", "measured_requests", 3, 3.0),
        "stream": ("decode_steps", "measured_requests", 5, pytest.approx(11 / 5)),
    }
    for origin in ("counters", "per_request"):
        assert view(spec, origin).coverage_ratio == pytest.approx(3 / 5)
        assert view(spec, origin).tokens_per_step == pytest.approx(11 / 5)
        assert view(spec, origin).histogram == (1, 0, 1, 0, 1)
        assert view(spec, origin).by_position == pytest.approx((2 / 3, 2 / 3, 1 / 3, 1 / 3))
        assert view(spec, origin).conditional_by_position == pytest.approx((2 / 3, 1.0, 1 / 2, 1.0))
    assert (spec.origin, spec.population) == ("per_request", "drafting_steps")
    assert spec.tokens_per_step == pytest.approx(11 / 5)


def test_blocks_that_are_not_complete_give_way_to_counters() -> None:
    """One answer without an account: the counters have its steps, the blocks do not."""
    server = MadeServer()
    records = [server.answer(0, (4, 2)), server.answer(1, (0, 0, 0), speculation=None)]
    spec = tallied(*records, server=ServerSide(window=server.counters()))
    assert (spec.origin, spec.steps) == ("counters", 5)
    assert any("every request that it served" in note for note in spec.notes)
    without_server = tallied(*records)
    assert (without_server.origin, without_server.steps) == ("per_request", 2)


def test_an_answer_of_one_token_needs_no_block() -> None:
    """It has no decode step, so the blocks of the others are complete."""
    server = MadeServer()
    records = [server.answer(0, (4, 2)), answered(1, tokens=1, event_tokens=None)]
    assert tallied(*records, server=ServerSide(window=server.counters())).origin == "per_request"


def test_counters_win_over_the_stream() -> None:
    """Without blocks the server's own count of drafting steps is the headline, not every event."""
    server = MadeServer()
    record = server.answer(0, (4, None, 2), speculation=None)
    spec = tallied(record, server=ServerSide(window=server.counters()))
    assert (spec.origin, spec.steps, spec.coverage_ratio) == ("counters", 2, pytest.approx(2 / 3))


def test_more_drafting_than_decode_steps_are_no_coverage_above_one() -> None:
    """A step that was under way when its client left has a draft and no tokens: no share is made of that."""
    counted = replace(
        MadeServer().counters(), drafts=11.0, drafted_tokens=44.0, decode_steps=10.0, generation_tokens=30.0
    )
    spec = tallied(server=ServerSide(window=counted))
    assert (spec.steps, spec.coverage_ratio, spec.tokens_per_step) == (11, None, 3.0)


def test_an_engine_that_counts_verification_steps() -> None:
    """300 tokens in 100 steps: length 3 over decode steps, which are all that there are."""
    spec = tallied(server=ServerSide(window=VERIFYING))
    assert (spec.origin, spec.population, spec.steps, spec.accepted_tokens) == ("counters", "decode_steps", 100, 200)
    assert spec.acceptance_length == spec.tokens_per_step == pytest.approx(3.0)
    assert spec.acceptance_ratio is None


def test_a_server_that_counts_tokens_and_no_steps() -> None:
    """20 decoded tokens of which 12 were accepted took 8 steps; there is a ratio and no length."""
    told = RequestSpeculation(drafted_tokens=24, accepted_tokens=12)
    spec = tallied(answered(0, tokens=21, event_tokens=None, speculation=told))
    assert (spec.origin, spec.acceptance_length, spec.acceptance_ratio) == ("per_request", None, 0.5)
    assert spec.tokens_per_step == pytest.approx(20 / 8)
    assert spec.per_request.tokens_per_step.mean == pytest.approx(20 / 8)
    assert any("no steps" in note for note in spec.notes)


def test_tokens_and_drafts_alone_are_no_better_than_the_stream() -> None:
    """Counters without steps have no length: the stream, which has one, is the headline."""
    counted = Counters(drafted_tokens=30.0, accepted_tokens=15.0)
    streaming = answered(0, tokens=7, event_tokens=(1, 3, 1, 2))
    spec = tallied(streaming, server=ServerSide(window=counted))
    assert (spec.origin, spec.acceptance_length) == ("stream", 2.0)
    assert view(spec, "counters").acceptance_ratio == 0.5
    assert tallied(server=ServerSide(window=counted)).origin == "counters"


def test_a_gauge_is_shown_and_never_the_headline() -> None:
    """The median of its readings in the window; an idle reading of 0 is none."""
    scrapes = [scrape(at * S, Counters(), Gauges(acceptance_length=length)) for at, length in enumerate((9, 2, 0, 3))]
    found = gauge_view(scrapes, S, 3 * S)
    assert (found.origin, found.acceptance_length, found.steps) == ("gauge", 2.5, None)
    assert gauge_view(scrapes, 10 * S, 11 * S) is None
    assert tallied(server=ServerSide(gauge=found)) is None


def test_a_server_set_up_for_drafts_that_made_none_is_no_baseline() -> None:
    """An n-gram lookup that never matched: steps 0, no ratio, and a note; the same numbers of a baseline are null."""
    nothing = MadeServer().counters()
    spec = tallied(answered(0), server=ServerSide(window=nothing), method="ngram", draft_tokens=4, forced=False)
    assert (spec.origin, spec.steps, spec.accepted_tokens) == ("counters", 0, 0)
    assert (spec.acceptance_length, spec.acceptance_ratio, spec.acceptance_by_position) == (None, None, None)
    assert spec.tokens_per_step == 1.0
    assert (spec.method, spec.draft_tokens, spec.forced) == ("ngram", 4, False)
    assert any("none was made" in note for note in spec.notes)
    assert tallied(answered(0), server=ServerSide(window=nothing)) is None


def test_the_setup_alone_makes_the_stream_an_account() -> None:
    """Set up for drafts, no pages, one token an event: every decode step is known, and each emitted one token."""
    spec = tallied(answered(0, tokens=10), method="ngram")
    assert (spec.origin, spec.population, spec.steps, spec.acceptance_length) == ("stream", "decode_steps", 9, 1.0)
    assert tallied(answered(0, tokens=10)) is None
    assert tallied(answered(0, tokens=10), method=None, draft_tokens=None) is None


def test_only_completed_measured_requests_are_in_the_views() -> None:
    """Warm-up and failures are compared with the server's counters, and in no figure of the section."""
    server = MadeServer()
    records = [
        server.answer(0, (0, 0, 0), phase=Phase.WARMUP),
        server.answer(1, (4, 4)),
        failed(2),
        server.answer(3, (0, 0), outcome=Outcome.CANCELLED),
    ]
    spec = tallied(*records)
    assert (spec.steps, spec.acceptance_length) == (2, 5.0)
    assert view(spec, "stream").steps == 2


def test_acceptance_by_category() -> None:
    """Each category pools its own requests, those with most requests first; data without categories has none."""
    server = MadeServer()
    spec = tallied(
        server.answer(0, (4, 4), category="code"),
        server.answer(1, (0, 2), category="prose"),
        server.answer(2, (0, 0, None), category="prose"),
        server.answer(3, (1,)),
    )
    found = [
        (one.category, one.requests, one.steps, one.acceptance_length, one.tokens_per_step) for one in spec.by_category
    ]
    assert found == [
        ("prose", 2, 4, 1.5, pytest.approx(7 / 5)),
        ("code", 1, 2, 5.0, 5.0),
    ]
    assert spec.steps == 7
    assert tallied(server.answer(0, (4, 4))).by_category == ()


def test_many_categories_are_cut_with_a_note() -> None:
    """A field that is different for each request is no category: the first fifty stand for it."""
    server = MadeServer()
    spec = tallied(*(server.answer(seq, (1,), category=f"c{seq:03}") for seq in range(60)))
    assert [one.category for one in spec.by_category] == [f"c{seq:03}" for seq in range(50)]
    assert any("Only the 50 categories" in note for note in spec.notes)


def test_an_event_of_half_an_answer_is_no_step_when_the_draft_length_is_unknown() -> None:
    """200 tokens at once make no histogram of 200 places, and no speculation."""
    assert tallied(answered(0, tokens=201, event_tokens=(1, 200))) is None
    spec = tallied(answered(0, tokens=206, event_tokens=(1, 200, 3, 2)))
    assert view(spec, "stream").histogram == (0, 1, 1)
    assert spec.oversize_events == 1


def test_merged_events_leave_tokens_per_step_to_the_server() -> None:
    """When events were merged the events that are left are no fair sample: the counters' figure is the headline's."""
    server = MadeServer(k=1)
    record = server.answer(0, (1, 1, 0, 0, 0, 0), event_tokens=(1, 2, 6))
    spec = tallied(record, server=ServerSide(window=server.counters()))
    assert spec.oversize_events == 1
    assert spec.tokens_per_step == pytest.approx(8 / 6)
    assert spec.per_request.tokens_per_step.missing == 1


def test_the_analysis_reads_the_servers_setup_and_pages() -> None:
    """Manifest and scrapes reach the section: the method, the window's counters, and every comparison."""
    server = MadeServer()
    records = [server.answer(seq, (4, None, 2)) for seq in range(3)]
    told = {"speculation": {"method": "eagle3", "draft_tokens": 4, "forced": True}}
    spec = summarised(records, scrapes=server.scrapes(), server=told).speculation
    assert (spec.method, spec.draft_tokens, spec.forced) == ("eagle3", 4, True)
    assert view(spec, "counters").steps == 6
    assert [one.agrees for one in spec.agreement] == [True] * len(spec.agreement)
    assert len(spec.agreement) == 7
