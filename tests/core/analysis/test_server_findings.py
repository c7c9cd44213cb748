"""Doubts by the server's own pages: on the run that deserves them, and not on the one that does not."""

from loadgen.core.record import Outcome, RequestRecord
from loadgen.core.request import Phase
from loadgen.core.server.sample import Scrape
from tests.core.analysis.factory import S, answered, closed_loop, findings, summarised
from tests.core.server.factory import page, sample, unread


def around(records: list[RequestRecord], **counted: float) -> tuple[Scrape, Scrape]:
    """The server's page before all of them, at zero, and after all of them."""
    end_s = max(record.closed_ns or 0 for record in records) / S + 1
    return page(-1, sample(**dict.fromkeys(counted, 0.0))), page(end_s, sample(**counted))


def test_pages_that_lie() -> None:
    """What cannot be is no figure of the run, and is told."""
    records = closed_loop()
    lying = around(records, generation_tokens=1210, preemptions=1e300)
    found = summarised(records, scrapes=lying)
    refused = next(each for each in found.verdict.findings if each.kind == "values_refused")
    assert refused.severity == "warning"
    said = "1 of 2 readings of the server's pages have values that cannot be, preemptions of 1e+300 for one."
    assert refused.evidence == said
    assert found.server.preemptions is None
    assert "values_refused" not in findings(records, scrapes=around(records, generation_tokens=1210))


def test_foreign_traffic() -> None:
    """The server generated a tenth more than this client got, warm-up included; what it should is no finding."""
    records = [answered(500, phase=Phase.WARMUP), *closed_loop()]
    found = findings(records, scrapes=around(records, generation_tokens=1331))["foreign_traffic"]
    assert "1331 output tokens where this client has 1210" in found.evidence
    found = findings(records, scrapes=around(records, generation_tokens=1210, prompt_tokens=13_400))["foreign_traffic"]
    assert "13400 prompt tokens where this client has 12100" in found.evidence
    assert "foreign_traffic" not in findings(records, scrapes=around(records, generation_tokens=1210))
    assert "foreign_traffic" not in findings(records, scrapes=around(records, prompt_tokens=12_100))


def test_foreign_traffic_is_not_claimed_without_the_clients_own_count() -> None:
    """A cancelled answer of unknown length may hold the difference."""
    cut = answered(500, output_tokens=None, event_tokens=None, outcome=Outcome.CANCELLED)
    records = [*closed_loop(), cut]
    assert "foreign_traffic" not in findings(records, scrapes=around(records, generation_tokens=2420))


def test_hidden_reasoning_is_the_servers_work_for_us() -> None:
    """Tokens that were not streamed were generated for this client all the same."""
    records = closed_loop(output_tokens=650, reasoning_tokens=640, event_tokens=None)
    assert "foreign_traffic" not in findings(records, scrapes=around(records, generation_tokens=78_000))


def test_a_server_of_which_a_part_was_read() -> None:
    """Half of this client's tokens are on no page: there is another replica."""
    records = closed_loop()
    found = findings(records, scrapes=around(records, generation_tokens=600))
    assert "600 output tokens where this client has 1200" in found["server_partly_read"].evidence
    assert "foreign_traffic" not in found
    assert "server_partly_read" not in findings(records, scrapes=around(records, generation_tokens=1200))


def test_answers_that_were_given_up_may_be_missing_on_the_server() -> None:
    """An engine that counts a request when it ends leaves them out; those that completed must be there."""
    cut = [answered(500 + seq, tokens=100, outcome=Outcome.CANCELLED) for seq in range(3)]
    records = [*closed_loop(), *cut]
    assert "server_partly_read" not in findings(records, scrapes=around(records, generation_tokens=1200))
    assert "server_partly_read" in findings(records, scrapes=around(records, generation_tokens=1100))


def test_a_server_that_was_started_anew() -> None:
    """Its counters fell during the run: said, and no traffic is made out of what they show."""
    records = closed_loop()
    before, after = around(records, generation_tokens=1200)
    found = findings(records, scrapes=(before, page(1, sample(generation_tokens=5000)), after))
    assert "fell or went" in found["server_restarted"].evidence
    assert "between 1.0 s and" in found["server_restarted"].evidence
    assert "foreign_traffic" not in found


def test_counters_with_gaps_are_not_called_whole() -> None:
    """A counter that had no number in between is named where a page that could not be read is told."""
    records = closed_loop()
    before, after = around(records, generation_tokens=1200)
    gap = page(1, sample(gaps=("generation_tokens",)))
    found = findings(records, scrapes=(before, gap, unread(1.5, fault="HTTP 500"), after))["scrape_failed"]
    assert found.severity == "info"
    assert "Counters are whole" not in found.advice
    assert "no number in 1 of 3 readings: generation_tokens" in found.advice


def test_a_page_that_could_not_be_read() -> None:
    """In the middle it is an information; at an end, or always, what rests on the counters is missing."""
    records = closed_loop()
    before, after = around(records, generation_tokens=1200)
    broken = unread(1, fault="HTTP 500")
    found = findings(records, scrapes=(before, broken, after))["scrape_failed"]
    assert (found.severity, "1 of 3" in found.evidence, "HTTP 500" in found.evidence) == ("info", True, True)
    assert "Counters are whole" in found.advice
    for scrapes in ((before, broken), (broken,), (before,), (after,)):
        assert findings(records, scrapes=scrapes)["scrape_failed"].severity == "warning"
    assert "scrape_failed" not in findings(records, scrapes=(before, after))
    assert "scrape_failed" not in findings(records)


def test_preemptions() -> None:
    """A few are told; more than one in a hundred requests is a warning."""
    records = closed_loop()
    few = findings(records, scrapes=around(records, preemptions=1))["preemptions"]
    assert (few.severity, "1 times" in few.evidence) == ("info", True)
    assert findings(records, scrapes=around(records, preemptions=5))["preemptions"].severity == "warning"
    assert "preemptions" not in findings(records, scrapes=around(records, preemptions=0))


def test_prefix_cache_hits_of_this_run() -> None:
    """Half of the input tokens were cached: repeated prompts; expected in conversations."""
    found = findings(closed_loop(cached_input_tokens=50))["prefix_cache"]
    assert found.severity == "warning"
    assert "6000 of 12000 input tokens" in found.evidence
    talk = findings(closed_loop(cached_input_tokens=50, session_id="s", turn=1))["prefix_cache"]
    assert talk.severity == "info"
    assert "prefix_cache" not in findings(closed_loop(cached_input_tokens=10))
    unique = closed_loop(cached_input_tokens=0)
    others = around(unique, prefix_query_tokens=1000, prefix_hit_tokens=930)
    assert "prefix_cache" not in findings(unique, scrapes=others), "what others found in it is not ours"
