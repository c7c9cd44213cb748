"""A real vLLM that dies under load: every failure is data of a known kind, and nothing that was measured is lost."""

import json
from pathlib import Path

import pytest

from tests.real_engine.engine import Done, eventually, loadgen, serve, write_prompts

pytestmark = pytest.mark.real_engine

# Forced acceptance does not work on a CPU: such a server starts healthy and dies at the first draft.
DIES_AT_THE_FIRST_DRAFT = {
    "method": "ngram",
    "prompt_lookup_min": 2,
    "prompt_lookup_max": 4,
    "num_speculative_tokens": 4,
    "rejection_sample_method": "synthetic",
    "synthetic_acceptance_length": 2.0,
}
REPETITIVE = "The lighthouse stands at the end of a long stone pier. " * 6
PLANNED = 12


def test_a_dying_server_is_failures_by_kind(tmp_path: Path) -> None:
    """Streams that were cut, and requests that found nobody, are records with a kind; nothing completed, so exit 4."""
    config = json.dumps(DIES_AT_THE_FIRST_DRAFT)
    with serve("ngram", tmp_path / "dying.log", "--speculative-config", config) as server:
        done: Done = loadgen(
            *("run", "--url", server.url, "--endpoint", "completions", "--concurrency", 3, "--num-requests", PLANNED),
            *("--prompts", write_prompts(tmp_path / "prompts.jsonl", [REPETITIVE])),
            *("--max-tokens", 64, "--ignore-eos", "--temperature", 0, "--idle-timeout", "60s"),
            out=tmp_path / "runs",
        )
        eventually(lambda: server.process.poll() is not None, "the server died", within_s=60)
    assert done.code == 4, done.stderr
    summary, records = done.result, done.records
    assert summary["requests"]["planned"] == summary["requests"]["failed"] == len(records) == PLANNED
    assert json.loads((done.folder / "summary.json").read_text()) == summary
    for record in records:
        assert record["outcome"] == "failed"
        assert record["failure"]["message"]
    kinds = summary["requests"]["failed_by_kind"]
    assert sum(kinds.values()) == PLANNED
    assert kinds.keys() <= {"server_error_event", "http_5xx", "truncated", "read", "reused_connection", "connect"}
    assert kinds.keys() & {"server_error_event", "http_5xx"}
    assert summary["latency"]["ttft_s"]["n"] == 0
    assert summary["latency"]["e2el_s"]["p50"] is None
    assert summary["verdict"]["valid"] is False
    told = [record for record in records if record["failure"]["kind"] == "server_error_event"]
    assert all(record["http_status"] == 200 for record in told)
