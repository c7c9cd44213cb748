"""Load on a real vLLM with n-gram speculation: several tokens an event, acceptance as the server counts it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.real_engine.contract import differences, simulated
from tests.real_engine.engine import (
    DRAFT_TOKENS,
    REPOSITORY,
    Counters,
    Done,
    Server,
    check_origins_agree,
    check_token_counts,
    counted,
    eventually,
    loadgen,
    loadgen_command,
    serve,
    write_prompts,
)

pytestmark = pytest.mark.real_engine

NS = 10**9
VERSE = "The miller opens the gate and the water runs under the wheel, and the wheel turns the stone all night. "
CODE = """def longest(words):
    best = ""
    for word in words:
        if len(word) > len(best):
            best = word
    return best
"""
REPETITIVE = [
    VERSE * 3,
    f"{VERSE * 2}\n\nOnce more, word for word:\n\n",
    f"{CODE}\n# and again\n{CODE}\n# and again\n",
    "2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,",
    f"{CODE}\n\ndef shortest(words):\n",
    "id,plant,height\n1,oak,20\n2,elm,30\n3,ash,25\n4,fir,40\n5,",
]
PROSE = [
    "The road from the harbour to the old town",
    "Dear neighbours, next week the workmen will",
    "This chapter explains how a clock keeps time. First,",
    "The last train had left, and the station",
]


@dataclass(frozen=True)
class Measured:
    """A run, and what it added to the server's counters."""

    done: Done
    records: list[dict[str, Any]]
    added: Counters


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve("ngram", tmp_path_factory.mktemp("server") / "ngram.log") as running:
        running.warm_up()
        yield running


def measure(server: Server, folder: Path, prompts: list[str], *arguments: object) -> Measured:
    before = server.counters()
    done = loadgen(
        "run",
        *("--url", server.url, "--endpoint", "completions", "--concurrency", 2, "--ignore-eos"),
        *("--prompts", write_prompts(folder / "prompts.jsonl", prompts), *arguments),
        out=folder / "runs",
    )
    assert done.code == 0, done.stderr
    return Measured(done, done.records, server.settled(before, len(prompts)))


@pytest.fixture(scope="module")
def repetitive(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Prompts whose continuation an n-gram lookup finds."""
    return measure(server, tmp_path_factory.mktemp("repetitive"), REPETITIVE, "--max-tokens", 96, "--temperature", 0)


@pytest.fixture(scope="module")
def prose(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Prompts whose sampled continuation it hardly ever finds."""
    return measure(server, tmp_path_factory.mktemp("prose"), PROSE, "--max-tokens", 24, "--temperature", 1)


def test_events_hold_several_tokens(repetitive: Measured) -> None:
    """Many events hold more than one token, none more than a step can emit, and together they are the answer."""
    sizes = counted([tokens for record in repetitive.records for tokens in record["event_tokens"]])
    assert sum(events for tokens, events in sizes.items() if tokens > 1) > 0.2 * sum(sizes.values())
    assert max(sizes) == DRAFT_TOKENS + 1
    for record in repetitive.records:
        check_token_counts(record)
        assert record["output_tokens"] == 96
        assert len(record["event_ns"]) < record["output_tokens"]


def test_tokens_are_those_that_the_server_counted(repetitive: Measured) -> None:
    """Counted from usage, not from events."""
    assert (
        repetitive.added["generation_tokens_total"]
        == repetitive.done.result["tokens"]["output"]
        == 96 * len(REPETITIVE)
    )
    assert repetitive.added["request_success_total"] == len(REPETITIVE)


def test_tpot_is_by_tokens_and_less_than_the_gap_between_events(repetitive: Measured) -> None:
    """(last - first) / (N - 1) of each request; a step, and so a gap, makes several of them."""
    latency = repetitive.done.result["latency"]
    by_tokens = [
        (record["last_ns"] - record["first_ns"]) / NS / (record["output_tokens"] - 1) for record in repetitive.records
    ]
    assert latency["tpot_s"]["mean"] == pytest.approx(fmean(by_tokens), rel=1e-6)
    assert latency["tpot_s"]["mean"] < 0.75 * latency["icl_s"]["mean"]
    theirs = repetitive.added.mean("request_time_per_output_token_seconds")
    assert latency["tpot_s"]["mean"] == pytest.approx(theirs, rel=0.1)


@pytest.mark.parametrize("arm", ["repetitive", "prose"])
def test_inter_token_latency_is_withheld(arm: str, request: pytest.FixtureRequest) -> None:
    """Under speculation a gap is that of a step, also in the requests in which no draft was accepted."""
    measured: Measured = request.getfixturevalue(arm)
    latency = measured.done.result["latency"]
    assert latency["itl_s"]["n"] == 0
    assert latency["itl_s"]["mean"] is None
    assert latency["itl_s"]["missing"] == len(measured.records)
    assert latency["icl_s"]["n"] == sum(len(record["event_ns"]) - 1 for record in measured.records)


@pytest.mark.parametrize("arm", ["repetitive", "prose"])
def test_acceptance_is_that_of_the_servers_counters(arm: str, request: pytest.FixtureRequest) -> None:
    """Pooled per-request blocks agree with the counters of the window in steps, drafted and accepted tokens."""
    measured: Measured = request.getfixturevalue(arm)
    speculation, added = measured.done.result["speculation"], measured.added
    drafts, accepted = added["spec_decode_num_drafts_total"], added["spec_decode_num_accepted_tokens_total"]
    assert speculation["origin"] == "per_request"
    assert speculation["steps"] == drafts > 0
    assert speculation["drafted_tokens"] == added["spec_decode_num_draft_tokens_total"]
    assert speculation["accepted_tokens"] == accepted
    assert speculation["acceptance_length"] == pytest.approx(1 + accepted / drafts)
    assert speculation["acceptance_ratio"] == pytest.approx(accepted / added["spec_decode_num_draft_tokens_total"])
    assert speculation["acceptance_by_position"] == pytest.approx([count / drafts for count in added.accepted_at])
    assert speculation["acceptance_length"] == pytest.approx(1 + sum(speculation["acceptance_by_position"]))


@pytest.mark.parametrize("arm", ["repetitive", "prose"])
def test_every_origin_tells_the_same_steps(arm: str, request: pytest.FixtureRequest) -> None:
    """Counters, blocks and stream are compared, agree, and nothing is doubted, with sampled text too."""
    measured: Measured = request.getfixturevalue(arm)
    check_origins_agree(measured.done.result, measured.added)
    assert measured.done.result["server"]["generation_tokens_delta"] == measured.added["generation_tokens_total"]


def test_coverage_says_how_many_steps_drafted(repetitive: Measured) -> None:
    """Steps with a draft over events after the first; what is not full coverage is said in a note."""
    speculation = repetitive.done.result["speculation"]
    steps = sum(len(record["event_tokens"]) - 1 for record in repetitive.records)
    assert speculation["coverage_ratio"] == pytest.approx(speculation["steps"] / steps)
    assert speculation["coverage_ratio"] < 1
    assert any("decode steps drafted" in note for note in speculation["notes"])


def test_every_request_has_its_own_account(repetitive: Measured) -> None:
    """The histogram of accepted drafts adds up in each record, and accepted tokens appear in its events."""
    for record in repetitive.records:
        block = record["speculation"]
        assert sum(block["histogram"]) == block["steps"] == len(block["per_step_accepted"])
        assert sum(block["per_step_accepted"]) == block["accepted_tokens"]
        assert block["max_draft_tokens"] == DRAFT_TOKENS
        streamed = sum(record["event_tokens"]) - len(record["event_tokens"])
        # The last step may have accepted more than max_tokens let through.
        assert streamed <= block["accepted_tokens"] <= streamed + DRAFT_TOKENS


def test_reports_and_exports_carry_the_acceptance(repetitive: Measured, tmp_path: Path) -> None:
    """Terminal, page and the vLLM-bench form show the same acceptance length."""
    folder, length = repetitive.done.folder, repetitive.done.result["speculation"]["acceptance_length"]
    page = tmp_path / "report.html"
    shown = loadgen("report", folder, "--html", page)
    assert shown.code == 0, shown.stderr
    assert f"{length:.3g} tokens over" in shown.stdout
    assert "acceptance" in page.read_text().lower()
    exported = loadgen("export", folder, "--format", "vllm")
    assert exported.code == 0, exported.stderr
    assert exported.result["spec_decode_acceptance_length"] == pytest.approx(length)


def test_the_simulated_server_answers_in_the_same_shapes(server: Server) -> None:
    """Asked the same, both give answers of one outline, refuse in the same words and show the same metrics."""
    with simulated("ngram") as simulator:
        assert differences(server.url, simulator) == {}


def test_a_server_that_is_killed_leaves_what_it_had_answered(server: Server, tmp_path: Path) -> None:
    """SIGKILL in the middle of a run, at the end of this file: completed requests stay, the rest has a kind, exit 0."""
    before = server.counters()
    command = loadgen_command(
        *("run", "--url", server.url, "--endpoint", "completions", "--concurrency", 2, "--num-requests", 40),
        *("--prompts", write_prompts(tmp_path / "prompts.jsonl", PROSE), "--max-tokens", 48, "--ignore-eos"),
        *("--out", tmp_path / "runs", "--json", "--no-progress"),
    )
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY)
    try:
        answered = server.settled(before, 4)

        def under_way() -> bool:
            now = server.counters().since(before)
            more = now["generation_tokens_total"] - answered["generation_tokens_total"]
            return now["num_requests_running"] == 2 and more > 8

        eventually(under_way, "two requests that have begun their answers")
        os.killpg(server.process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    done = Done(process.returncode, stdout, stderr, tmp_path / "runs")
    assert done.code == 0, done.stderr
    requests, records = done.result["requests"], done.records
    completed = [record for record in records if record["outcome"] == "completed"]
    cut = [record for record in records if record["outcome"] == "failed" and record["headers_ns"] is not None]
    assert requests["planned"] == len(records) == 40
    assert requests["completed"] == len(completed) >= 4
    assert requests["failed"] == 40 - len(completed)
    assert {record["output_tokens"] for record in completed} == {48}
    assert cut
    assert {record["failure"]["kind"] for record in cut} <= {"truncated", "server_error_event"}
    assert done.result["tokens"]["partial_output"] == sum(record["output_tokens"] or 0 for record in cut)
    assert requests["failed_by_kind"].keys() <= {
        *("truncated", "server_error_event", "read", "reused_connection", "connect")
    }
    assert done.result["latency"]["e2el_s"]["n"] == len(completed)
    assert done.result["latency_error_adjusted"]["e2el_s"]["n"] == 40
