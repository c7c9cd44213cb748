"""Load on a real vLLM without speculation: what is recorded is what the server says that it did."""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.needs import material
from tests.real_engine.contract import differences, simulated
from tests.real_engine.engine import (
    CACHE_BLOCK_TOKENS,
    CONTEXT_TOKENS,
    REPOSITORY,
    Counters,
    Done,
    FrontEnd,
    Server,
    check_token_counts,
    counted,
    eventually,
    loadgen,
    loadgen_command,
    records_of,
    serve,
    write_prompts,
)

pytestmark = pytest.mark.real_engine

NS = 10**9
FROM_S, TO_S, SPEED, MOST_CONTEXT, MOST_OUTPUT = 200, 210, 0.5, 1_024, 16
"""Ten seconds of the Azure conversation trace at half its speed, cut to what the model's context bears."""
LEVELS = (1, 2, 4, 8)
PROMPTS = [
    "The first bridge over this river was",
    "The last train had left, and the station",
    "Four things to know before buying a bicycle:",
    "This chapter explains how a clock keeps time. First,",
    "Dear neighbours, next week the workmen will",
    "Bread with seeds\n\nYou need:\n",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve("baseline", tmp_path_factory.mktemp("server") / "baseline.log") as running:
        running.warm_up()
        yield running


def run(server: Server, out: Path, *arguments: object) -> Done:
    return loadgen("run", "--url", server.url, *arguments, out=out)


def total(records: list[dict[str, Any]], field: str) -> int:
    return sum(record[field] for record in records)


def check_against_server(records: list[dict[str, Any]], added: Counters) -> None:
    """Requests and tokens, in and out, are those that the server counted."""
    assert {record["outcome"] for record in records} == {"completed"}
    assert {record["output_tokens_from"] for record in records} == {"server"}
    assert added["request_success_total"] == len(records)
    assert added["generation_tokens_total"] == total(records, "output_tokens")
    assert added["prompt_tokens_total"] == total(records, "input_tokens")


@dataclass(frozen=True)
class Replayed:
    """The part's rows, the run, and what it added to the server's counters."""

    rows: list[tuple[int, int, int]]
    done: Done
    added: Counters


@pytest.fixture(scope="module")
def replayed(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    trace = material("data", "azure", "AzureLLMInferenceTrace_conv.csv")
    before = server.counters()
    done = run(
        server,
        tmp_path_factory.mktemp("replay") / "runs",
        *("--endpoint", "completions", "--trace", trace, "--replay", "--speed", SPEED),
        *("--trace-from", f"{FROM_S}s", "--trace-to", f"{TO_S}s"),
        *("--max-context", MOST_CONTEXT, "--max-tokens", MOST_OUTPUT, "--ignore-eos", "--temperature", 0),
    )
    assert done.code == 0, done.stderr
    rows = rows_of(trace)
    return Replayed(rows, done, server.settled(before, len(rows)))


def rows_of(trace: Path) -> list[tuple[int, int, int]]:
    """The part's rows: ns after its first, tokens in, tokens out. Read here without the project's own reader."""
    rows = []
    for row in csv.DictReader(io.StringIO(trace.read_text(encoding="utf-8-sig"), newline="")):
        second, _, fraction = row["TIMESTAMP"].partition(".")
        instant = datetime.fromisoformat(second).replace(tzinfo=UTC)
        time_ns = int(instant.timestamp()) * NS + int(fraction.ljust(9, "0"))
        rows.append((time_ns, int(row["ContextTokens"]), int(row["GeneratedTokens"])))
    origin_ns = rows[0][0]
    part = [
        (time_ns, tokens_in, tokens_out)
        for time_ns, tokens_in, tokens_out in rows
        if FROM_S * NS <= time_ns - origin_ns < TO_S * NS and tokens_in + tokens_out <= MOST_CONTEXT
    ]
    return [(time_ns - part[0][0], tokens_in, tokens_out) for time_ns, tokens_in, tokens_out in part]


def test_every_row_has_a_completed_record(replayed: Replayed) -> None:
    """Planned, sent and completed are the rows of the part, one record each."""
    requests, records = replayed.done.result["requests"], replayed.done.records
    assert len(replayed.rows) > 20
    assert requests["planned"] == requests["sent"] == requests["completed"] == len(replayed.rows)
    assert [record["seq"] for record in records] == list(range(len(replayed.rows)))
    assert len({record["request_id"] for record in records}) == len(records)


def test_the_server_counted_the_same(replayed: Replayed) -> None:
    """Requests, output tokens and input tokens agree with the server's own counters, and so does the summary."""
    check_against_server(replayed.done.records, replayed.added)
    tokens = replayed.done.result["tokens"]
    assert tokens["output"] == replayed.added["generation_tokens_total"]
    assert tokens["input"] == replayed.added["prompt_tokens_total"]
    assert tokens["output_from_server"] is True


def test_due_times_follow_the_trace(replayed: Replayed) -> None:
    """Distances between due instants are the trace's, divided by the speed; nothing leaves before it is due."""
    records = replayed.done.records
    first_ns = records[0]["due_ns"]
    for record, (time_ns, _, _) in zip(records, replayed.rows, strict=True):
        assert record["due_ns"] - first_ns == pytest.approx(time_ns / SPEED, abs=1)
        assert record["sent_ns"] >= record["due_ns"]


def test_lengths_are_those_of_the_trace(replayed: Replayed) -> None:
    """Output is exact; invented prompts come close in sum; prompt and answer fit into the model's context."""
    records = replayed.done.records
    for record, (_, tokens_in, tokens_out) in zip(records, replayed.rows, strict=True):
        assert (record["planned_input_tokens"], record["planned_output_tokens"]) == (tokens_in, tokens_out)
        assert record["output_tokens"] == min(tokens_out, MOST_OUTPUT)
        assert record["input_tokens"] + record["output_tokens"] <= CONTEXT_TOKENS
        check_token_counts(record)
    asked = sum(tokens_in for _, tokens_in, _ in replayed.rows)
    assert total(records, "input_tokens") == pytest.approx(asked, rel=0.1)


def test_no_prompt_came_from_the_prefix_cache(replayed: Replayed) -> None:
    """Invented prompts are new to the server."""
    assert total(replayed.done.records, "cached_input_tokens") == 0
    assert replayed.added["prefix_cache_hits_total"] == 0


def test_latencies_are_those_of_the_server(replayed: Replayed) -> None:
    """The server's own mean TTFT and end-to-end latency are less, by no more than transport and scheduling take."""
    latency, added = replayed.done.result["latency"], replayed.added
    for metric, histogram in (
        ("ttft_s", "time_to_first_token_seconds"),
        ("e2el_s", "e2e_request_latency_seconds"),
    ):
        ours, theirs = latency[metric]["mean"], added.mean(histogram)
        assert theirs - 0.002 <= ours <= theirs + max(0.1, 0.1 * theirs), metric
    theirs = added.mean("request_time_per_output_token_seconds")
    assert latency["tpot_s"]["mean"] == pytest.approx(theirs, rel=0.1)


def test_a_baseline_has_no_speculation(replayed: Replayed) -> None:
    """No sections of acceptance or of drafts, not zeros; nearly every event holds one token."""
    assert replayed.done.result["speculation"] is None
    server = replayed.done.result["server"]
    assert (server["scraped"], server["speculation"], server["configuration"]["speculates"]) == (True, None, False)
    assert server["gpus"] is None
    records = replayed.done.records
    assert {record["speculation"] for record in records} == {None}
    sizes = counted([tokens for record in records for tokens in record["event_tokens"]])
    assert sizes[1] > 0.9 * sum(sizes.values())


def test_report_from_records_alone_equals_the_summary(replayed: Replayed, tmp_path: Path) -> None:
    """Without its summary a run folder gives the same numbers, to the last digit."""
    copy = tmp_path / replayed.done.folder.name
    shutil.copytree(replayed.done.folder, copy)
    stored = json.loads((copy / "summary.json").read_text())
    (copy / "summary.json").unlink()
    again = loadgen("report", copy, "--json")
    assert again.code == 0, again.stderr
    assert again.result == stored == replayed.done.result


@pytest.fixture(scope="module")
def swept(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Done:
    done = loadgen(
        "sweep",
        *("--url", server.url, "--endpoint", "completions", "--concurrency", ",".join(map(str, LEVELS))),
        *("--num-requests", 16, "--input-tokens", 160, "--output-tokens", 20, "--ignore-eos", "--temperature", 0),
        out=tmp_path_factory.mktemp("sweep") / "runs",
    )
    assert done.code == 0, done.stderr
    return done


def test_one_summary_a_level(swept: Done) -> None:
    """Each level is a whole run in its own folder, with the summary that the sweep shows."""
    levels = swept.result["levels"]
    assert [level["level"] for level in levels] == list(LEVELS)
    folders = sorted((swept.folder / "levels").iterdir())
    assert len(folders) == len(levels)
    for folder, level in zip(folders, levels, strict=True):
        assert json.loads((folder / "summary.json").read_text()) == level["summary"]
        assert level["summary"]["requests"]["completed"] == 16
        assert level["summary"]["warmup_requests"] == max(4, level["level"])
        assert len(records_of(folder)) == 16 + max(4, level["level"])


def test_peak_concurrency_is_exact(swept: Done) -> None:
    """As many in flight as asked for, never one more, and hardly ever fewer."""
    for level in swept.result["levels"]:
        concurrency = level["summary"]["concurrency"]
        assert concurrency["peak"] == level["level"]
        assert concurrency["mean"] == pytest.approx(level["level"], rel=0.1)


def test_throughput_rises(swept: Done) -> None:
    """A batch of eight makes more tokens a second than one request at a time."""
    rates = {level["level"]: level["summary"]["throughput"]["output_tokens_per_s"] for level in swept.result["levels"]}
    assert rates[8] > 1.5 * rates[1]
    assert rates[4] > rates[1]


def test_no_level_repeats_the_prompts_of_another(swept: Done) -> None:
    """The prefix cache has nothing for any level."""
    for folder in (swept.folder / "levels").iterdir():
        assert total(records_of(folder), "cached_input_tokens") == 0


@pytest.mark.parametrize("endpoint", ["chat", "completions", "responses"])
def test_every_endpoint_counts_as_the_server(endpoint: str, server: Server, tmp_path: Path) -> None:
    """Streams of each route are read whole: tokens and requests agree with the server's counters."""
    prompts = write_prompts(tmp_path / "prompts.jsonl", PROMPTS)
    before = server.counters()
    done = run(
        server,
        tmp_path / "runs",
        *("--endpoint", endpoint, "--prompts", prompts, "--concurrency", 3),
        *("--max-tokens", 12, "--ignore-eos", "--temperature", 0),
    )
    assert done.code == 0, done.stderr
    records = done.records
    check_against_server(records, server.settled(before, len(PROMPTS)))
    assert {record["finish_reason"] for record in records} == {"length"}
    assert {record["output_tokens"] for record in records} == {12}
    assert {record["streamed"] for record in records} == {True}
    for record in records:
        assert record["sent_ns"] < record["headers_ns"] <= record["first_ns"] < record["last_ns"] <= record["closed_ns"]


def test_the_second_transport_measures_the_same_server(server: Server, tmp_path: Path) -> None:
    """Through httpx the counts agree as well, and the summary says who stamped the arrivals."""
    prompts = write_prompts(tmp_path / "prompts.jsonl", PROMPTS)
    before = server.counters()
    done = run(
        server,
        tmp_path / "runs",
        *("--endpoint", "completions", "--prompts", prompts, "--concurrency", 3, "--transport", "httpx"),
        *("--max-tokens", 12, "--ignore-eos", "--temperature", 0),
    )
    assert done.code == 0, done.stderr
    check_against_server(done.records, server.settled(before, len(PROMPTS)))
    assert done.result["client"]["timing_source"] == "coroutine"


def test_token_id_prompts_have_the_exact_lengths_of_the_trace(server: Server, tmp_path: Path) -> None:
    """With token ids the server counts exactly the input tokens that the trace asked for."""
    done = run(
        server,
        tmp_path / "runs",
        *("--endpoint", "completions", "--token-ids", "--concurrency", 2, "--num-requests", 4),
        *("--trace", material("data", "azure", "AzureLLMInferenceTrace_conv.csv"), "--max-context", 600),
        *("--max-tokens", 4, "--ignore-eos"),
    )
    assert done.code == 0, done.stderr
    records = done.records
    assert len(records) == 4
    for record in records:
        assert record["input_tokens"] == record["planned_input_tokens"]


def test_conversations_go_on_from_the_real_answers(server: Server, tmp_path: Path) -> None:
    """The second turn of MT-Bench holds the first question and this run's own answer, by the server's token count."""
    questions = material("data", "prompts", "mt_bench_question.jsonl")
    done = run(
        server,
        tmp_path / "runs",
        *("--endpoint", "chat", "--prompts", questions, "--concurrency", 2, "--num-requests", 8),
        *("--max-tokens", 24, "--temperature", 0, "--ignore-eos", "--save-text"),
    )
    assert done.code == 0, done.stderr
    asked = {}
    for line in questions.read_text().splitlines():
        row = json.loads(line)
        asked[str(row["question_id"])] = row["turns"]
    turns: dict[str, list[dict[str, Any]]] = {}
    for record in done.records:
        assert record["outcome"] == "completed"
        turns.setdefault(record["session_id"], []).append(record)
    assert len(turns) == 4
    for session, (first, second) in turns.items():
        question, follow_up = asked[session]
        messages = [{"role": "user", "content": question}]
        assert (first["turn"], first["input_tokens"]) == (0, server.token_count(messages))
        messages += [{"role": "assistant", "content": first["text"]}, {"role": "user", "content": follow_up}]
        assert (second["turn"], second["input_tokens"]) == (1, server.token_count(messages))
        assert second["sent_ns"] >= first["closed_ns"]


def test_a_prompt_beyond_the_context_is_a_refusal_by_kind(server: Server, tmp_path: Path) -> None:
    """HTTP 400 is data: the others complete and the command ends with 0, or with 1 where errors are bounded."""
    prompts = write_prompts(tmp_path / "prompts.jsonl", [PROMPTS[0], "word " * (CONTEXT_TOKENS + 100), PROMPTS[1]])
    arguments = ("--endpoint", "completions", "--prompts", prompts, "--max-tokens", 4, "--ignore-eos")
    done = run(server, tmp_path / "runs", *arguments)
    assert done.code == 0, done.stderr
    requests = done.result["requests"]
    assert (requests["planned"], requests["completed"], requests["failed"]) == (3, 2, 1)
    assert requests["failed_by_kind"] == {"http_4xx": 1}
    refused = done.records[1]
    assert refused["failure"]["kind"] == "http_4xx"
    assert refused["failure"]["http_status"] == 400
    assert str(CONTEXT_TOKENS) in refused["failure"]["message"]
    assert refused["first_ns"] is None
    assert refused["output_tokens"] is None
    assert done.result["latency"]["ttft_s"]["n"] == 2
    gated = run(server, tmp_path / "gated", *arguments, "--max-error-ratio", 0.1)
    assert gated.code == 1
    assert gated.result["requests"]["failed"] == 1


def test_a_seed_repeats_prompts_and_a_fresh_one_does_not(server: Server, tmp_path: Path) -> None:
    """The second run with a seed finds its prompts in the prefix cache and says so; a fresh seed finds none."""
    arguments = (
        *("--endpoint", "completions", "--num-requests", 3, "--input-tokens", 3 * CACHE_BLOCK_TOKENS),
        *("--output-tokens", 4, "--ignore-eos"),
    )
    first = run(server, tmp_path / "first", *arguments, "--seed", 20_261)
    again = run(server, tmp_path / "again", *arguments, "--seed", 20_261)
    fresh = run(server, tmp_path / "fresh", *arguments)
    assert (first.code, again.code, fresh.code) == (0, 0, 0)
    assert again.manifest["first_request"] == first.manifest["first_request"]
    assert fresh.manifest["first_request"] != first.manifest["first_request"]
    assert total(first.records, "cached_input_tokens") == 0
    assert all(record["cached_input_tokens"] >= CACHE_BLOCK_TOKENS for record in again.records)
    assert total(fresh.records, "cached_input_tokens") == 0
    kinds = [{finding["kind"] for finding in done.result["verdict"]["findings"]} for done in (first, again, fresh)]
    assert ["prefix_cache" in found for found in kinds] == [False, True, False]


def test_an_interrupt_keeps_what_was_measured_and_frees_the_server(server: Server, tmp_path: Path) -> None:
    """SIGINT: no further request, what is in flight is cancelled after the grace, all is saved, exit code 130."""
    prompts = write_prompts(tmp_path / "prompts.jsonl", PROMPTS)
    command = loadgen_command(
        *("run", "--url", server.url, "--endpoint", "completions", "--prompts", prompts, "--concurrency", 2),
        *("--duration", "120s", "--grace", "0s", "--max-tokens", 100, "--ignore-eos"),
        *("--out", tmp_path / "runs", "--json", "--no-progress"),
    )
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY)
    try:
        eventually(lambda: server.counters()["num_requests_running"] == 2, "two requests on the server", within_s=30)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    done = Done(process.returncode, stdout, stderr, tmp_path / "runs")
    assert done.code == 130, done.stderr
    assert done.result["interrupted"] is True
    cancelled = [record for record in done.records if record["outcome"] == "cancelled"]
    assert len(cancelled) == 2
    assert done.result["requests"]["cancelled"] == 2
    assert json.loads((done.folder / "summary.json").read_text()) == done.result
    eventually(lambda: server.counters()["num_requests_running"] == 0, "the server stopped working on them")


def test_the_simulated_server_answers_in_the_same_shapes(server: Server) -> None:
    """Asked the same, both give answers of one outline, refuse in the same words and show the same metrics."""
    with simulated("baseline") as simulator:
        assert differences(server.url, simulator) == {}


def test_a_restart_inside_the_window_is_found(server: Server, tmp_path: Path) -> None:
    """SIGKILL at the end of this file, and a new server in its place: counters are null, and the time is told."""
    before = server.counters()
    with FrontEnd(server) as front:
        command = loadgen_command(
            *("run", "--url", front.url, "--endpoint", "completions", "--concurrency", 2, "--num-requests", 24),
            *("--input-tokens", 20, "--output-tokens", 24, "--ignore-eos", "--scrape-interval", "0.5s"),
            *("--out", tmp_path / "runs", "--json", "--no-progress"),
        )
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY)
        try:
            server.settled(before, 6)
            front.lead_to(None)
            os.killpg(server.process.pid, signal.SIGKILL)
            with serve("baseline", tmp_path / "again.log") as again:
                front.lead_to(again)
                stdout, stderr = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
    done = Done(process.returncode, stdout, stderr, tmp_path / "runs")
    assert done.code == 0, done.stderr
    requests, told = done.result["requests"], done.result["server"]
    assert requests["completed"] + requests["failed"] == 24
    assert 1 <= requests["failed"] <= 2
    (finding,) = [each for each in done.result["verdict"]["findings"] if each["kind"] == "server_restarted"]
    first_s, last_s = map(float, re.findall(r"between ([\d.]+) s and ([\d.]+) s", finding["evidence"])[0])
    assert 0 < first_s < last_s < done.result["duration_s"]
    assert (told["generation_tokens_delta"], told["prompt_tokens_delta"]) == (None, None)
