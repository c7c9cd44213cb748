"""Acceptance and the server in words and tables, on a terminal and on a page."""

import re
from dataclasses import replace

import pytest

from loadgen.core.metrics.summary import (
    AcceptanceView,
    Analysis,
    Comparison,
    Gauge,
    Gpus,
    RequestTimes,
    Server,
    Speculation,
    Summary,
    Sweep,
    TpotByAcceptance,
)
from loadgen.core.run import RunManifest
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration
from loadgen.core.stats.bootstrap import Estimate
from loadgen.report.html import run_html, sweep_html
from loadgen.report.ladder import server_levels
from loadgen.report.server import server_facts
from loadgen.report.speculation import (
    agreements,
    no_speculation_text,
    origins,
    positions,
    slope_text,
    speculation_facts,
    view_with_positions,
)
from loadgen.report.terminal import run_text, sweep_text


@pytest.fixture
def found(analysis: Analysis) -> Speculation:
    """Four origins, of which two differ."""
    assert analysis.summary.speculation is not None
    return analysis.summary.speculation


def with_summary(analysis: Analysis, **changes: object) -> Analysis:
    """The run with some fields of its summary changed."""
    return replace(analysis, summary=replace(analysis.summary, **changes))


def section(page: str, name: str) -> str:
    """One section of a page, without tags."""
    body = re.search(rf'<section aria-labelledby="{name}">(.*?)</section>', page, re.DOTALL)
    assert body is not None
    return re.sub(r"<[^>]+>", " ", body[1])


def text_section(text: str, name: str) -> list[str]:
    """The lines under a heading of a terminal report."""
    lines = text.splitlines()
    begin = lines.index(name) + 1
    end = next((i for i in range(begin, len(lines)) if lines[i] and not lines[i].startswith(" ")), len(lines))
    return [line.strip() for line in lines[begin:end] if line.strip()]


def test_a_baseline_is_one_line(analysis: Analysis, manifest: RunManifest) -> None:
    """No table and no chart of nothing; whether the server said so is told apart."""
    said = Server(configuration=ServerConfiguration(speculates=False))
    unsaid = Server(configuration=ServerConfiguration(dtype="bfloat16"))
    for server, words in (
        (said, "the server says that it makes no drafts"),
        (unsaid, "no origin shows a draft"),
        (Server(), "no origin shows a draft"),
    ):
        run = with_summary(analysis, speculation=None, server=server)
        assert words in no_speculation_text(run.summary)
        assert text_section(run_text(run), "Speculation") == [no_speculation_text(run.summary)]
        page = section(run_html(run, manifest), "speculation")
        assert page.split() == ["Speculative", "decoding", *no_speculation_text(run.summary).split()]


def test_the_headline_names_its_population(found: Speculation) -> None:
    """A length over drafting steps and one over all decode steps are not the same figure."""
    facts = dict(speculation_facts(found, None))
    assert facts["Acceptance length"] == "2.44 tokens over 49180 steps that drafted"
    assert facts["Tokens per step"] == "2.40 over all decode steps; 97.0% of them drafted"
    assert facts["Acceptance ratio"] == "48.0%: 70819 of 147540 drafted tokens accepted"
    streamed = replace(found, origin="stream", population="decode_steps", steps=50_700)
    facts = dict(speculation_facts(streamed, None))
    assert facts["Acceptance length"] == "2.44 tokens over 50700 decode steps, drafted or not"
    assert facts["Counted by"] == "the tokens of each event (stream)"


def test_what_is_not_known_of_acceptance_is_a_dash() -> None:
    """A server that was set up and never drafted has no zeros."""
    facts = dict(speculation_facts(Speculation(origin="counters", population="drafting_steps", steps=0), None))
    assert facts["Acceptance length"] == facts["Acceptance ratio"] == facts["Tokens per step"] == "\u2014"
    assert facts["Method"] == "the server does not tell"


def test_made_up_and_lossy_acceptance_stand_with_the_method(found: Speculation) -> None:
    """Nobody takes forced acceptance, or that of a loose verifier, for the drafter's."""
    told = SpeculationConfiguration(
        draft_model="tiny", forced=True, forced_acceptance_length=2.5, lossy=("sampler=fly",)
    )
    assert dict(speculation_facts(replace(found, forced=True), told))["Method"] == (
        "eagle3, 3 draft tokens, draft model tiny, acceptance made up to 2.50 tokens a step, lossy: sampler=fly"
    )


def test_origins_stand_beside_each_other_and_the_headline_s_is_marked(found: Speculation) -> None:
    """One row an origin in the order of the views, with the steps it counted; what one does not tell is a dash."""
    table = origins(found)
    assert [row[0] for row in table.rows] == ["counters", "per request", "stream", "gauge"]
    assert table.marked == (1,)
    assert table.rows[1][1:] == ("drafting", "requests", "49180", "147540", "70819", "2.44", "48.0%", "2.40", "97.0%")
    assert table.rows[2][1:3] == ("decode", "requests")
    assert table.rows[3][3:] == ("\u2014", "\u2014", "\u2014", "2.50", "\u2014", "\u2014", "\u2014")


def test_a_single_origin_needs_no_table(analysis: Analysis, found: Speculation, manifest: RunManifest) -> None:
    """Its figures are the headline; with two the table is there, and the headline's row stands out on the page."""
    alone = with_summary(analysis, speculation=replace(found, views=found.views[1:2], agreement=()))
    assert "steps counted" not in run_text(alone)
    assert "steps counted" not in run_html(alone, manifest)
    assert "steps counted" in run_text(analysis)
    assert '<tr class="marked"><th scope="row">per request</th>' in run_html(analysis, manifest)


def test_a_difference_is_said_with_its_bounds_and_its_reason(found: Speculation) -> None:
    """Equal counts need no reason; one out of bounds makes the pair differ; without bounds nothing is judged."""
    equal, apart, unbounded = agreements(found)
    assert (equal.pair, equal.agrees, equal.said, equal.reasons) == (
        "counters, per request",
        True,
        ("steps 50240 by both",),
        (),
    )
    assert apart.agrees is False
    assert apart.said == (
        "decode steps 52100 and 50900, 1200 apart where 0 to 40 may be",
        "tokens per step 2.40 by both",
    )
    assert apart.reasons == ("Every decode step is an event, but for steps of at most 40 tokens.",)
    assert unbounded.agrees is None
    assert unbounded.said == ("steps 49180 and 50700, -1520 apart with no bound to what may be",)


def test_what_cannot_be_compared_says_why(found: Speculation) -> None:
    """After a restart there is no difference, and the reason stands in its place."""
    lost = Comparison(
        left="counters",
        right="stream",
        quantity="decode_steps",
        left_value=None,
        right_value=100,
        difference=None,
        allowed=None,
        agrees=None,
        why="The server was started anew during the run.",
    )
    (one,) = agreements(replace(found, agreement=(lost,)))
    assert (one.agrees, one.said, one.reasons) == (
        None,
        ("decode steps not compared",),
        ("The server was started anew during the run.",),
    )


def test_agreement_reads_alike_on_both(analysis: Analysis, manifest: RunManifest) -> None:
    """A mark a pair on the terminal, a word on the page, the reason on both."""
    text = " ".join(run_text(analysis).split())
    assert "\u2713 counters, per request steps 50240 by both." in text
    assert "\u2717 counters, stream decode steps 52100 and 50900" in text
    assert "? per request, stream" in text
    page = " ".join(section(run_html(analysis, manifest), "speculation").split())
    assert "counters, per request agree steps 50240 by both." in page
    assert "counters, stream differ decode steps 52100 and 50900" in page
    assert "per request, stream not compared" in page
    for each in (text, page):
        assert "but for steps of at most 40 tokens." in each


def test_positions_end_with_the_last_that_was_accepted() -> None:
    """Draft tokens that no step reached are a remark, not rows; the shares are of the steps that they name."""
    view = AcceptanceView(
        origin="counters",
        population="drafting_steps",
        scope="window",
        by_position=(0.8, 0.4, 0.0, 0.0),
        conditional_by_position=(0.8, 0.5, 0.0, None),
    )
    table = positions(view)
    assert table.rows == (("1", "80.0%", "80.0%"), ("2", "40.0%", "50.0%"))
    assert table.caption.endswith("None beyond 2.")
    assert "steps that drafted (counters)" in table.caption


def test_where_no_draft_was_accepted_there_is_no_table_of_positions(
    analysis: Analysis, manifest: RunManifest, found: Speculation
) -> None:
    """Neither its head nor its caption, on a terminal and on a page; the rest of the section stands."""
    views = tuple(
        replace(one, by_position=(0.0, 0.0), conditional_by_position=(0.0, None))
        if one.by_position is not None
        else one
        for one in found.views
    )
    run = with_summary(analysis, speculation=replace(found, views=views))
    for text in (
        "\n".join(text_section(run_text(run), "Speculation")),
        section(run_html(run, manifest), "speculation"),
    ):
        assert "conditional" not in text
        assert "Acceptance length" in text


def test_positions_are_the_headline_s_where_it_has_them(found: Speculation) -> None:
    """Else those of the first origin that tells them, so that none are lost."""
    view = view_with_positions(found)
    assert view is not None
    assert view.origin == "per_request"
    bare = tuple(replace(one, by_position=None) if one.origin == "per_request" else one for one in found.views)
    view = view_with_positions(replace(found, views=bare))
    assert view is not None
    assert view.origin == "counters"
    assert view_with_positions(replace(found, views=())) is None


def slope(value: float, low: float, high: float) -> TpotByAcceptance:
    """A scatter of 200 requests with that slope."""
    estimate = Estimate(value=value, low=low, high=high, confidence_ratio=0.95, method="m", n=200)
    return TpotByAcceptance(n=200, slope=estimate, correlation=-0.9, points=())


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (slope(-0.95, -1.1, -0.8), ("48.2% lower", "which lies within the interval")),
        (slope(-0.5, -0.6, -0.4), ("29.3% lower", "steps that emit more take longer")),
        (slope(-1.5, -1.6, -1.4), ("64.6% lower", "have shorter steps")),
        (slope(0.2, 0.1, 0.3), ("14.9% higher", "steps that emit more take longer")),
        (TpotByAcceptance(n=7, slope=None, correlation=None, points=()), ("7 requests are too few",)),
    ],
)
def test_the_slope_is_told_as_what_twice_the_tokens_do(fit: TpotByAcceptance, words: tuple[str, ...]) -> None:
    """2 to the power of the slope; beside it what steps of equal time would give."""
    said = slope_text(fit)
    assert all(word in said for word in words), said


def test_the_server_s_figures_are_told_with_what_it_does_not_tell(analysis: Analysis) -> None:
    """Means and peaks, shares, whole counts; figures that it does not have are named, not shown as zero."""
    facts = dict(server_facts(analysis.summary.server))
    assert facts["Running"] == "18.2 on average, 29 at most"
    assert facts["KV cache"] == "40.0% on average, 61.0% at most"
    assert facts["Preemptions"] == "2"
    assert facts["A request's time"] == "11 ms waiting (1.1%), 28 ms in prefill (2.8%), 950 ms in decode (96.1%)"
    assert facts["GPUs"] == "2 GPUs, 1224 W on average, 61000 J by their counters, 0.537 J an output token"
    assert facts["Not told"] == "engine step"
    assert facts["Read"] == "62 readings, 2 engine processes; 1 failed: page 0 at 30.2 s: it took longer than 5 s"
    assert facts["Note"] == "page 0 was last read 0.4 s before the window's end"


def test_a_server_of_few_words() -> None:
    """Times that it does not split have no shares; a mean that is not known is a dash beside the peak."""
    server = Server(
        scrapes=3,
        processes=1,
        running_requests=Gauge(mean=None, peak=4.0),
        request_times=RequestTimes(queue_s=0.008),
        resets=("page 0, engine 0: drafts fell",),
    )
    facts = dict(server_facts(server))
    assert facts["Running"] == "\u2014 on average, 4 at most"
    assert facts["A request's time"] == "8 ms waiting"
    assert facts["Not told"] == "waiting, KV cache, preemptions, prefix cache, engine step"
    assert facts["Restarted"] == "page 0, engine 0: drafts fell"
    assert "Counters" not in facts
    assert "GPUs" not in facts


def test_gpus_that_were_asked_for_and_gave_nothing_are_not_passed_over() -> None:
    """No row would look as if nobody had asked; what is known of them has rows of its own."""
    unread = Server(
        scrapes=3, failed_scrapes=3, failed_example="page gpu at 0.0 s: HTTP 404", pages={"gpu": "http://g"}
    )
    facts = dict(server_facts(unread))
    assert facts["GPUs"] == "not read"
    assert "HTTP 404" in facts["Read"]
    used = Gpus(count=1, utilisation_ratio=Gauge(mean=0.5, peak=1.0), memory_used_bytes=Gauge(mean=2**30, peak=2**31))
    facts = dict(server_facts(replace(unread, gpus=used)))
    assert facts["GPUs"] == "1 GPU"
    assert facts["GPU use"] == "50.0% on average, 100% at most"
    assert facts["GPU memory"] == "1.00 GiB on average, 2.00 GiB at most"
    assert not {"GPU use", "GPU memory"} & dict(server_facts(replace(unread, gpus=Gpus(count=1)))).keys()


def test_a_server_that_was_not_read_is_one_line() -> None:
    """The reason, where there is one, and no row of dashes."""
    assert server_facts(Server()) == [("Not read", "no metrics page of the server was read")]
    assert server_facts(Server(notes=("--no-scrape",))) == [("Not read", "--no-scrape")]


def test_the_configuration_is_folded_away(analysis: Analysis, manifest: RunManifest) -> None:
    """What the server told of its set-up is there once, known values only; its whole page stays in the manifest."""
    page = run_html(analysis, manifest)
    assert "<details><summary>Its configuration, as it told</summary>" in page
    body = section(page, "server")
    assert "max_num_seqs" in body
    assert "quantization" not in body
    assert "eagle3-llama-8b" in body
    assert "a long page" not in page
    assert "configuration" not in section(page, "setting")


def test_levels_show_drafts_and_server(sweep: Sweep) -> None:
    """A row a level, dashes for the one that was not read; columns that no level has are left out."""
    table = server_levels(sweep)
    assert table is not None
    assert table.titles == (
        "level",
        "accept. length",
        "tok/step",
        "running",
        "waiting",
        "KV cache",
        "preempted",
        "prefix hits",
    )
    assert set(table.rows[0][1:]) == {"\u2014"}
    assert table.rows[6] == ("64", "2.37", "2.27", "16", "48", "64.0%", "2", "12.0%")
    assert "Drafts and server" in sweep_text(sweep)
    assert "accept. length" in section(sweep_html(sweep), "levels")


def test_levels_of_a_baseline_that_was_not_read_have_no_such_table(sweep: Sweep) -> None:
    """Nothing was told, nothing is shown."""
    plain = replace(sweep, levels=sweep.levels[:1])
    assert server_levels(plain) is None
    assert "Drafts and server" not in sweep_text(plain)
    assert "accept. length" not in sweep_html(plain)


def hostile_evidence(summary: Summary, text: str) -> Summary:
    """Every string that comes from the server or the data, replaced."""
    found = summary.speculation
    assert found is not None
    return replace(
        summary,
        speculation=replace(
            found,
            method=text,
            notes=(text,),
            by_category=tuple(replace(one, category=text) for one in found.by_category),
            agreement=tuple(replace(one, why=text) for one in found.agreement),
        ),
        server=replace(
            summary.server,
            notes=(text,),
            resets=(text,),
            failed_example=text,
            pages={text: text},
            configuration=ServerConfiguration(dtype=text),
            speculation=SpeculationConfiguration(draft_model=text, lossy=(text,)),
        ),
    )


def test_hostile_evidence_stays_text(analysis: Analysis, manifest: RunManifest, hostile_text: str) -> None:
    """A method, a category, a dtype or a reason makes no element and moves no cursor."""
    odd = replace(analysis, summary=hostile_evidence(analysis.summary, hostile_text))
    page, text = run_html(odd, manifest), run_text(odd)
    for each in (page, text):
        assert "\x1b" not in each
        assert "\u202e" not in each
    assert "<svg onload" not in page.split('<script type="application/json"')[0]
    assert page.count("&lt;svg onload=alert(1)&gt;") >= 10
