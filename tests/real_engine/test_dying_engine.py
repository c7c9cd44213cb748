"""A real vLLM that dies at its first request: every failure is data of a known kind."""

import json
from pathlib import Path

import pytest

from tests.real_engine.engine import eventually, loadgen, serve, write_prompts

pytestmark = pytest.mark.real_engine

# Forced acceptance does not work on a CPU: such a server starts healthy, and its engine dies at the first step.
DIES_AT_ITS_FIRST_STEP = {
    "method": "ngram",
    "prompt_lookup_min": 2,
    "prompt_lookup_max": 4,
    "num_speculative_tokens": 4,
    "rejection_sample_method": "synthetic",
    "synthetic_acceptance_length": 2.0,
}
PLANNED = 12


def test_a_dying_server_is_failures_by_kind(tmp_path: Path) -> None:
    """Streams that break off and requests that come too late are records with a kind; nothing completed, so exit 4."""
    prompts = write_prompts(tmp_path / "prompts.jsonl", ["The miller opens the gate."] * PLANNED)
    with serve("ngram", tmp_path / "dying.log", "--speculative-config", json.dumps(DIES_AT_ITS_FIRST_STEP)) as server:
        command = ("run", "--url", server.url, "--endpoint", "completions", "--prompts", prompts, "--concurrency", 3)
        done = loadgen(*command, "--max-tokens", 64, "--ignore-eos", "--idle-timeout", "60s", out=tmp_path / "runs")
        eventually(lambda: server.process.poll() is not None, "the server died", within_s=60)
        dead = loadgen(*command, out=tmp_path / "none")
    assert done.code == 4, done.stderr
    summary, records = done.result, done.records
    assert json.loads((done.folder / "summary.json").read_text()) == summary
    assert summary["requests"]["planned"] == summary["requests"]["failed"] == len(records) == PLANNED
    failures = [record["failure"] for record in records]
    assert {failure["kind"] for failure in failures[:3]} <= {"server_error_event", "http_5xx"}
    cut = [failure for failure in failures if failure["kind"] == "server_error_event"]
    assert cut
    assert {failure["http_status"] for failure in cut} == {200}
    kinds = summary["requests"]["failed_by_kind"]
    assert kinds.keys() <= {"server_error_event", "http_5xx", "read", "reused_connection", "connect"}
    assert sum(kinds.values()) == PLANNED
    assert all(failure["message"] for failure in failures)
    assert (summary["latency"]["ttft_s"]["n"], summary["latency"]["e2el_s"]["p50"]) == (0, None)
    assert summary["verdict"]["valid"] is False
    # A second command finds nobody, says where, and leaves nothing.
    assert dead.code == 4
    assert server.url.removeprefix("http://") in dead.stderr
    assert not dead.out.exists()
