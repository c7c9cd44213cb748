"""What the server's own pages show: restarts, gaps, work of others, memory and caches."""

from loadgen.core.analysis.findings.facts import Facts
from loadgen.core.analysis.findings.finding import info, share, warning
from loadgen.core.analysis.findings.kinds import FindingKind
from loadgen.core.metrics.summary import Finding
from loadgen.core.server.foreign import TOLERANCE_RATIO, ForeignTraffic, foreign
from loadgen.core.server.sample import Counters

CACHED_LIMIT_RATIO = 0.1
PREEMPTED_LIMIT_RATIO = 0.01


def server_restarted(facts: Facts) -> Finding | None:
    """A counter fell: a process of the server was started anew while requests were sent."""
    resets = facts.summary.server.resets
    if not resets:
        return None
    more = f", and {len(resets) - 1} more" if len(resets) > 1 else ""
    return warning(
        FindingKind.SERVER_RESTARTED,
        f"The server was started anew during the run: {resets[0]}{more}.",
        "Its counters tell nothing of this run, and requests met a server that was down or cold. Find out why, and"
        " measure again.",
    )


def scrape_failed(facts: Facts) -> Finding | None:
    """A metrics page could not be read; in the middle of the run that loses little."""
    server = facts.summary.server
    if not server.failed_scrapes and (server.scraped or not server.scrapes):
        return None
    if server.scraped:
        counters = "Counters are whole, since they were read before and after"
        if server.notes:
            counters = f"Counters were read before and after, and are whole but for this: {'; '.join(server.notes)}"
        return info(
            FindingKind.SCRAPE_FAILED,
            f"{server.failed_scrapes} of {server.scrapes} readings of the server's pages failed:"
            f" {server.failed_example}.",
            f"{counters}. The server's state over time has gaps.",
        )
    reason = server.failed_example or "; ".join(server.notes)
    return warning(
        FindingKind.SCRAPE_FAILED,
        f"The server's counters do not hold the whole run: {reason}.",
        "What rests on them is missing or of a part of the run. See that the page can be read (--metrics-url), or leave"
        " it alone (--no-scrape).",
    )


def values_refused(facts: Facts) -> Finding | None:
    """A page told what no server can have: such values are left out."""
    count, example = facts.refused
    if not count:
        return None
    return warning(
        FindingKind.VALUES_REFUSED,
        f"{count} of {facts.summary.server.scrapes} readings of the server's pages have values that cannot be,"
        f" {example} for one.",
        "They are left out. Find out who answers there: a proxy, or an exporter that counts something else.",
    )


def foreign_traffic(facts: Facts) -> Finding | None:
    """The server did more than this client's work."""
    found = _beside_the_client(facts)
    if found is None or not found.exceeds:
        return None
    return warning(
        FindingKind.FOREIGN_TRAFFIC,
        f"{_both_counts(facts)}: {found.reason}.",
        "Latencies and the server's figures hold that work too. Measure on a server of your own.",
    )


def server_partly_read(facts: Facts) -> Finding | None:
    """The pages that were read show less than this client got in answers that completed.

    Some engines count a request when it ends, and never what was given up.
    """
    found, theirs = _beside_the_client(facts), facts.summary.server.generation_tokens_delta
    if found is None or found.exceeds or theirs is None:
        return None
    if theirs >= (1 - TOLERANCE_RATIO) * facts.tokens_completed:
        return None
    return warning(
        FindingKind.SERVER_PARTLY_READ,
        f"{_both_counts(facts)}: {found.reason}.",
        "The server's figures are of a part of it. Give the page of every replica (--metrics-url, several times).",
    )


def _beside_the_client(facts: Facts) -> ForeignTraffic | None:
    """The server's tokens over the run beside the client's; None unless the pages hold the whole run."""
    server = facts.summary.server
    if not server.scraped:
        return None
    counted = Counters(prompt_tokens=server.prompt_tokens_delta, generation_tokens=server.generation_tokens_delta)
    return foreign(
        counted,
        client_prompt_tokens=facts.tokens_prompted,
        client_generation_tokens=facts.tokens_generated,
    )


def _both_counts(facts: Facts) -> str:
    server = facts.summary.server
    counts = [
        f"{theirs:.0f} {what} tokens where this client has {ours}"
        for what, theirs, ours in (
            ("prompt", server.prompt_tokens_delta, facts.tokens_prompted),
            ("output", server.generation_tokens_delta, facts.tokens_generated),
        )
        if theirs is not None and ours is not None
    ]
    return f"The server counted {' and '.join(counts)}"


def preemptions(facts: Facts) -> Finding | None:
    """The server took requests out of its batch to make room, and computed them again."""
    count, completed = facts.summary.server.preemptions, facts.completed_in_window
    if not count:
        return None
    make = warning if count > PREEMPTED_LIMIT_RATIO * completed else info
    return make(
        FindingKind.PREEMPTIONS,
        f"The server preempted requests {count:.0f} times in the window, in which {completed} completed.",
        "Its KV cache is too small for this load, and work is done twice. Lower the load, or compare at one that fits.",
    )


def prefix_cache(facts: Facts) -> Finding | None:
    """A good part of the prompts came from the server's prefix cache."""
    cached, total = facts.oddities.cached_input, facts.oddities.input_beside_cached
    if not total or cached <= CACHED_LIMIT_RATIO * total:
        return None
    evidence = f"{cached} of {total} input tokens came from the server's prefix cache ({share(cached, total)})."
    if facts.oddities.in_session:
        return info(FindingKind.PREFIX_CACHE, evidence, "Conversations share their history, so this is expected.")
    return warning(
        FindingKind.PREFIX_CACHE,
        evidence,
        "Prompts repeat each other or an earlier run's. Use another seed or reset the cache, unless reuse is meant.",
    )
