"""Runs in the result format of `vllm bench serve`."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.analysis.analyse import analyse
from loadgen.core.metrics.summary import Analysis, Summary
from loadgen.core.record import Outcome, RequestRecord
from loadgen.core.request import Phase
from loadgen.core.run import Load, LoadMode, RunManifest, Target
from loadgen.report.vllm import vllm_json

ARRAYS = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times", "errors")
KEYS = (
    "date",
    "endpoint_type",
    "backend",
    "label",
    "model_id",
    "tokenizer_id",
    "num_prompts",
    "request_rate",
    "burstiness",
    "max_concurrency",
    "duration",
    "completed",
    "failed",
    "total_input_tokens",
    "total_output_tokens",
    "request_throughput",
    "request_goodput",
    "output_throughput",
    "total_token_throughput",
    "max_output_tokens_per_s",
    "max_concurrent_requests",
)


def refuse(name: str) -> None:
    """A parser that knows no NaN and no Infinity."""
    raise AssertionError(f"{name} is not JSON")


def result(summary: Summary, records: list[RequestRecord]) -> dict:
    """The result, read by a strict parser."""
    text = "".join(vllm_json(summary, lambda: iter(records)))
    assert text.endswith("}\n")
    assert "\n" not in text[:-1]
    return json.loads(text, parse_constant=refuse)


def test_a_run_reads_as_agreed(recorded: Analysis, records: list[RequestRecord], golden) -> None:
    """The whole result of six records."""
    golden.check("vllm.json", json.dumps(result(recorded.summary, records), indent=1) + "\n")


def test_the_keys_are_those_that_readers_know(recorded: Analysis, records: list[RequestRecord]) -> None:
    """Every key of the format but those of its own counters and probes."""
    found = result(recorded.summary, records)
    assert set(KEYS) <= set(found)
    assert set(ARRAYS) <= set(found)
    for metric in ("ttft", "tpot", "itl", "e2el", "client_queue_time", "e2el_including_client_queue"):
        for statistic in ("mean", "median", "std", "p50", "p75", "p90", "p95", "p99"):
            assert f"{statistic}_{metric}_ms" in found


def test_values_are_those_of_the_records(recorded: Analysis, records: list[RequestRecord]) -> None:
    """By hand: three completed of five measured, from 1.002 s to 2.401 s."""
    found = result(recorded.summary, records)
    assert found["duration"] == pytest.approx(2.401 - 1.002)
    assert (found["num_prompts"], found["completed"], found["failed"], found["dropped"]) == (5, 3, 1, 1)
    assert found["total_output_tokens"] == 9 + 1 + 4
    assert found["output_throughput"] == pytest.approx(14 / found["duration"])
    assert found["request_throughput"] == pytest.approx(3 / found["duration"])
    assert found["mean_ttft_ms"] == pytest.approx((50 + 50 + 100) / 3)
    assert found["median_ttft_ms"] == found["p50_ttft_ms"] == pytest.approx(50)
    assert found["std_ttft_ms"] == pytest.approx(np.std([50, 50, 100]))
    assert found["mean_tpot_ms"] == pytest.approx((10 + 100) / 2), "a one-token answer has no TPOT, and is not a 0"
    assert found["mean_itl_ms"] == pytest.approx((40 + 40 + 100 * 3) / 5)
    assert found["std_itl_ms"] == pytest.approx(np.std([40, 40, 100, 100, 100]))
    assert found["mean_client_queue_time_ms"] == pytest.approx(1 / 3)
    assert found["mean_e2el_including_client_queue_ms"] == pytest.approx((131 + 50 + 400) / 3)
    assert found["date"] == "20261130-061800"


def test_arrays_have_an_entry_a_measured_request(recorded: Analysis, records: list[RequestRecord]) -> None:
    """Warm-up is not in them; a failure has its text and nulls, never zeros; times are seconds."""
    found = result(recorded.summary, records)
    assert {len(found[name]) for name in ARRAYS} == {5}
    assert found["ttfts"] == [pytest.approx(0.05), pytest.approx(0.05), None, pytest.approx(0.1), None]
    assert found["itls"][0] == pytest.approx([0.04, 0.04])
    assert found["itls"][1] == found["itls"][2] == []
    assert found["errors"][2] == 'http_5xx: a "quoted", message\r\non two lines'
    assert found["errors"][4] == "dropped"
    assert found["errors"][0] == ""
    assert found["start_times"][0] == pytest.approx(1.002)
    assert "generated_texts" not in found


def test_tokens_and_not_events_make_the_peak(recorded: Analysis, records: list[RequestRecord]) -> None:
    """Nine tokens in three events and one in one arrive in the second second, four in the third."""
    assert result(recorded.summary, records)["max_output_tokens_per_s"] == pytest.approx(10)
    uncounted = [replace(record, event_tokens=None, output_tokens=None) for record in records]
    assert result(recorded.summary, uncounted)["max_output_tokens_per_s"] is None


def test_texts_are_there_when_they_were_saved(recorded: Analysis, records: list[RequestRecord]) -> None:
    """With saved answers there is one text a request, empty for those without."""
    saved = [replace(record, text="語\u2029<") if record.seq == 1 else record for record in records]
    assert result(recorded.summary, saved)["generated_texts"] == ["語\u2029<", "", "", "", ""]


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (Load(mode=LoadMode.CONCURRENCY, concurrency=8), ("inf", None, 8)),
        (Load(mode=LoadMode.RATE, request_rate_rps=0.9, burstiness=None), (0.9, "inf", None)),
        (Load(mode=LoadMode.RATE, request_rate_rps=4.0, burstiness=1.0, max_concurrency=16), (4.0, 1.0, 16)),
        (Load(mode=LoadMode.REPLAY, speed=2.0), (None, None, None)),
    ],
)
def test_an_unlimited_rate_is_a_word(recorded: Analysis, records: list[RequestRecord], load: Load, expected) -> None:
    """No Infinity in the file: a closed loop has the rate "inf", constant spacing the burstiness "inf"."""
    found = result(replace(recorded.summary, load=load), records)
    assert (found["request_rate"], found["burstiness"], found["max_concurrency"]) == expected


def test_an_all_failed_run_is_complete(manifest: RunManifest, records: list[RequestRecord]) -> None:
    """A server that refuses everything leaves nulls, not a crash and not zeros."""
    failed = [records[3]]
    summary = analyse(lambda: failed, replace(manifest, planned=1, slo={})).summary
    found = result(summary, failed)
    assert found["completed"] == 0
    for key in ("mean_ttft_ms", "std_ttft_ms", "p99_tpot_ms", "mean_itl_ms", "std_itl_ms", "max_output_tokens_per_s"):
        assert found[key] is None
    nothing = result(summary, [])
    assert nothing["duration"] is None
    assert nothing["request_throughput"] is None
    assert nothing["itls"] == []


def test_speculation_is_there_when_it_was_measured(analysis: Analysis, recorded: Analysis) -> None:
    """The rate is in percent, as that format has it; the keys are missing without speculation, and where only
    events were counted, since they do not tell which steps drafted."""
    found = result(analysis.summary, [])
    assert found["spec_decode_acceptance_rate"] == pytest.approx(48.0)
    assert found["spec_decode_acceptance_length"] == 2.44
    assert found["spec_decode_num_drafts"] == 49_180
    assert found["spec_decode_per_position_acceptance_rates"] == [0.71, 0.46, 0.27]
    assert found["spec_decode_draft_tokens"] == 147_540
    assert found["spec_decode_accepted_tokens"] == 70_819
    streamed = replace(analysis.summary.speculation, origin="stream", population="decode_steps")
    for without in (None, streamed):
        plain = result(replace(recorded.summary, speculation=without), [])
        assert not any(key.startswith("spec_decode") for key in plain)


TEMPLATE = RequestRecord(
    seq=0, request_id="r", phase=Phase.MEASURE, sent_ns=0, closed_ns=1, outcome=Outcome.COMPLETED, streamed=True
)
TARGET = Target(url="http://127.0.0.1:1/v1", endpoint="chat", model="m")
MANIFEST = RunManifest(
    run_id="r", started_at="2026-11-30T06:18:00Z", origin_unix_ns=0, target=TARGET, load=Load(mode=LoadMode.REPLAY)
)


@given(st.lists(st.lists(st.integers(0, 10**9), max_size=8), max_size=8))
def test_the_spread_of_gaps_is_that_of_all_together(gaps_of_requests: list[list[int]]) -> None:
    """Merged request by request, the standard deviation is numpy's over every gap."""
    records = [
        replace(TEMPLATE, seq=i, event_ns=tuple(int(at) for at in np.cumsum([0, *gaps])))
        for i, gaps in enumerate(gaps_of_requests)
    ]
    pooled = [gap / 1e6 for gaps in gaps_of_requests for gap in gaps]
    found = result(analyse(list, MANIFEST).summary, records)["std_itl_ms"]
    assert found == (pytest.approx(np.std(pooled), rel=1e-9, abs=1e-6) if pooled else None)
