"""Load on a real vLLM that drafts at every step: a draft model, and an EAGLE head of which nothing is ever accepted."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real_engine.engine import Counters, Done, Server, check_origins_agree, loadgen, serve, write_prompts

pytestmark = pytest.mark.real_engine

DRAFT_TOKENS = 3
OUTPUT_TOKENS = 24
CONCURRENCY = 3
PROMPTS = [
    "The first bridge over this river was",
    "The last train had left, and the station",
    "Four things to know before buying a bicycle:",
    "This chapter explains how a clock keeps time. First,",
    "Dear neighbours, next week the workmen will",
    "2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,",
]


@dataclass(frozen=True)
class Measured:
    """A run, and what it added to the server's counters."""

    method: str
    done: Done
    added: Counters


@dataclass(frozen=True)
class Drafted:
    """The runs of one method, with greedy and with sampled text."""

    greedy: Measured
    sampled: Measured


@pytest.fixture(scope="module", params=["draft_model", "eagle"])
def drafted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Drafted:
    """One start of the server for all that is asked of a method."""
    folder = tmp_path_factory.mktemp(request.param)
    with serve(request.param, folder / "server.log") as server:
        server.warm_up()
        return Drafted(
            greedy=measure(server, request.param, folder / "greedy", "--temperature", 0),
            sampled=measure(
                server, request.param, folder / "sampled", "--temperature", 0.8, "--extra-body", '{"seed": 7}'
            ),
        )


def measure(server: Server, method: str, folder: Path, *arguments: object) -> Measured:
    folder.mkdir()
    prompts = write_prompts(folder / "prompts.jsonl", PROMPTS)
    before = server.counters()
    load = ("--concurrency", CONCURRENCY, "--max-tokens", OUTPUT_TOKENS, "--ignore-eos", "--prompts", prompts)
    target = ("--url", server.url, "--endpoint", "completions", "--scrape-interval", "0.5s")
    done = loadgen("run", *target, *load, *arguments, out=folder / "runs")
    assert done.code == 0, done.stderr
    return Measured(method, done, server.settled(before, len(PROMPTS)))


@pytest.mark.parametrize("text", ["greedy", "sampled"])
def test_every_origin_tells_the_same_acceptance(text: str, drafted: Drafted) -> None:
    """Blocks are exactly the counters, sampled text or not; the stream agrees where steps have events of their own."""
    measured: Measured = getattr(drafted, text)
    check_origins_agree(measured.done.result, measured.added)


@pytest.mark.parametrize("text", ["greedy", "sampled"])
def test_the_servers_section_has_its_tokens_and_times(text: str, drafted: Drafted) -> None:
    """Its counters over the run are the requests' own sums, and its times of a request are of the client's size."""
    measured: Measured = getattr(drafted, text)
    summary, server = measured.done.result, measured.done.result["server"]
    assert (server["scraped"], server["processes"], server["resets"]) == (True, 1, [])
    generated = len(PROMPTS) * OUTPUT_TOKENS
    assert server["generation_tokens_delta"] == measured.added["generation_tokens_total"] == generated
    assert server["prompt_tokens_delta"] == sum(record["input_tokens"] for record in measured.done.records)
    assert server["configuration"]["speculates"] is True
    assert server["running_requests"]["peak"] == CONCURRENCY
    decoded_s = summary["latency"]["e2el_s"]["mean"] - summary["latency"]["ttft_s"]["mean"]
    assert server["request_times"]["decode_s"] == pytest.approx(decoded_s, rel=0.1)


def test_every_decode_step_drafts(drafted: Drafted) -> None:
    """Three draft tokens at each step, so that acceptance length and tokens per step are one figure."""
    speculation = drafted.greedy.done.result["speculation"]
    assert speculation["drafted_tokens"] == DRAFT_TOKENS * speculation["steps"]
    assert speculation["coverage_ratio"] == pytest.approx(1, abs=0.02)
    # but for what the end of an answer cuts off
    assert speculation["tokens_per_step"] == pytest.approx(speculation["acceptance_length"], rel=0.05)
    assert (speculation["method"], speculation["draft_tokens"]) == (drafted.greedy.method, DRAFT_TOKENS)


def test_acceptance_is_that_of_the_drafter(drafted: Drafted) -> None:
    """A random head has exactly one token a step and zeros, not nulls; a small model is right now and then."""
    speculation = drafted.greedy.done.result["speculation"]
    by_position = speculation["acceptance_by_position"]
    if drafted.greedy.method == "eagle":
        assert speculation["accepted_tokens"] == speculation["acceptance_ratio"] == 0
        assert (speculation["acceptance_length"], by_position) == (1.0, [0.0] * DRAFT_TOKENS)
    else:
        assert 1.2 < speculation["acceptance_length"] < 3
        assert by_position == sorted(by_position, reverse=True)
