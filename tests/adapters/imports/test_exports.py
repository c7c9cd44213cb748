"""Results of other tools: small files in their layouts, and what a comparison takes from them."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadgen.adapters.imports import read_export
from loadgen.core.comparison.side import Side, side_of
from loadgen.core.comparison.workload import differences
from loadgen.core.errors import StoreError
from loadgen.core.run import Load, LoadMode
from loadgen.report.vllm import vllm_json
from tests.core.analysis.factory import answered, summarised

VLLM = {
    "date": "20261101-120000",
    "backend": "openai-chat",
    "model_id": "m",
    "num_prompts": 50,
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 8,
    "duration": 10.0,
    "completed": 48,
    "failed": 2,
    "total_input_tokens": 5000,
    "total_output_tokens": 6000,
    "request_throughput": 4.8,
    "request_goodput": None,
    "output_throughput": 600.0,
    "mean_ttft_ms": 120.0,
    "median_ttft_ms": 100.0,
    "p90_ttft_ms": 150.0,
    "p99_ttft_ms": 300.0,
    "mean_tpot_ms": 12.0,
    "median_tpot_ms": 11.0,
    "p99_tpot_ms": 0.0,
    "median_itl_ms": 30.0,
    "median_e2el_ms": 1500.0,
    "spec_decode_acceptance_rate": 62.5,
    "spec_decode_acceptance_length": 2.875,
    "spec_decode_num_drafts": 1000,
}


def guidellm_metric(mean: float, p99: float) -> dict[str, Any]:
    """A distribution of GuideLLM, with figures of requests that failed beside it."""
    shape = {"mean": mean, "median": mean, "percentiles": {"p50": mean, "p90": p99, "p99": p99}}
    return {"successful": shape, "errored": {"mean": 9e9}}


def guidellm(strategy: dict[str, Any]) -> dict[str, Any]:
    """A benchmark of GuideLLM."""
    return {
        "config": {"strategy": strategy},
        "duration": 60.0,
        "metrics": {
            "request_totals": {"successful": 95, "errored": 5, "incomplete": 3, "total": 103},
            "requests_per_second": guidellm_metric(2.5, 4.0),
            "output_tokens_per_second": guidellm_metric(300.0, 5e6),
            "request_latency": guidellm_metric(1.5, 3.0),
            "time_to_first_token_ms": guidellm_metric(80.0, 200.0),
            "time_per_output_token_ms": guidellm_metric(15.0, 20.0),
            "inter_token_latency_ms": guidellm_metric(14.0, 18.0),
        },
    }


AIPERF = {
    "request_throughput": {"unit": "requests/sec", "avg": 13.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 1300.0},
    "goodput": {"unit": "requests/sec", "avg": 11.0},
    "request_latency": {"unit": "ms", "avg": 6500.0, "p50": 5800.0, "p90": 8600.0, "p95": 9000.0, "p99": 9400.0},
    "time_to_first_token": {"unit": "sec", "avg": 1.5, "p50": 0.8},
    "inter_token_latency": {"unit": "ms", "avg": 50.0},
    "inter_chunk_latency": {"unit": "fortnights", "avg": 50.0},
    "request_count": {"unit": "requests", "avg": 196.0},
    "error_request_count": {"unit": "requests", "avg": 4.0},
    "input_config": {"endpoint": {"type": "chat"}, "loadgen": {"concurrency": 100}},
}


def read(folder: Path, *values: Any) -> tuple[Side, ...]:
    """What is in a file of these objects."""
    path = folder / "result.json"
    path.write_text("\n".join(json.dumps(value) for value in values))
    return read_export(path)


def test_vllm_bench(tmp_path: Path) -> None:
    """Milliseconds and percent become seconds and shares; its gaps between chunks are ICL; zero is no value."""
    (side,) = read(tmp_path, VLLM)
    told = {name: value for name, value in side.values.items() if value is not None}
    assert told == pytest.approx(
        {
            "ttft_s.mean": 0.12,
            "ttft_s.p50": 0.1,
            "ttft_s.p90": 0.15,
            "ttft_s.p99": 0.3,
            "tpot_s.mean": 0.012,
            "tpot_s.p50": 0.011,
            "icl_s.p50": 0.03,
            "e2el_s.p50": 1.5,
            "requests_per_s": 4.8,
            "output_tokens_per_s": 600.0,
            "input_tokens_per_s": 500.0,
            "error_ratio": 0.04,
            "acceptance_length": 2.875,
            "acceptance_ratio": 0.625,
        }
    )
    assert (side.tool, side.level, str(side), side.speculates) == ("vllm bench serve", 8, "concurrency 8", True)
    assert side.workload["load.num_requests"] == 50


def test_our_own_export_for_vllm_bench(tmp_path: Path) -> None:
    """Read back, a run's latencies, errors and load are those of its summary."""
    records = [answered(seq, sent_ms=400.0 * seq, gap_ms=10.0 + seq) for seq in range(120)]
    load = Load(mode=LoadMode.CONCURRENCY, concurrency=1, num_requests=120)
    run = summarised(records, load=load)
    path = tmp_path / "export.json"
    path.write_text("".join(vllm_json(run, lambda: iter(records))))
    (side,), ours = read_export(path), side_of(run)
    for metric, value in ours.values.items():
        if metric.startswith(("ttft_s", "tpot_s", "icl_s", "e2el_s.")) or metric == "error_ratio":
            assert side.values[metric] == pytest.approx(value), metric
    assert differences(ours.workload, side.workload) == ()


def test_vllm_bench_of_a_rate_without_drafts(tmp_path: Path) -> None:
    """A number for a rate is an open loop; without drafts nobody knows whether the server speculates."""
    plain = {key: value for key, value in VLLM.items() if not key.startswith("spec_decode")}
    (side,) = read(tmp_path, plain | {"request_rate": 2.5, "max_concurrency": None})
    assert (side.load.mode, side.level, side.speculates) == (LoadMode.RATE, 2.5, None)


def test_appended_results_are_levels(tmp_path: Path) -> None:
    """A file with an object a level, as the tool appends them."""
    sides = read(tmp_path, VLLM, VLLM | {"max_concurrency": 16})
    assert [side.level for side in sides] == [8, 16]


def test_guidellm(tmp_path: Path) -> None:
    """A level a benchmark, of requests that succeeded; its TPOT and ITL keep its name: they mean something else."""
    levels = [{"type_": "concurrent", "streams": 4}, {"type_": "constant", "rate": 3.0}, {"type_": "synchronous"}]
    sides = read(tmp_path, {"benchmarks": [guidellm(strategy) for strategy in levels]})
    assert [str(side) for side in sides] == ["concurrency 4", "3 requests/s", "concurrency 1"]
    told = {name: value for name, value in sides[0].values.items() if value is not None}
    assert told == pytest.approx(
        {f"{name}.{statistic}": p99 if statistic in ("p90", "p99") else mean
         for name, mean, p99 in (
             ("ttft_s", 0.08, 0.2),
             ("e2el_s", 1.5, 3.0),
             ("guidellm.time_per_output_token_s", 0.015, 0.02),
             ("guidellm.inter_token_latency_s", 0.014, 0.018),
         )
         for statistic in ("mean", "p50", "p90", "p99")}
        | {"requests_per_s": 2.5, "output_tokens_per_s": 300.0, "error_ratio": 0.05}
    )  # fmt: skip
    assert not any(name.startswith("tpot_s") for name in told)


def test_aiperf(tmp_path: Path) -> None:
    """Times by the unit that stands beside them, and none in a unit that nobody knows."""
    (side,) = read(tmp_path, AIPERF)
    told = {name: value for name, value in side.values.items() if value is not None}
    assert told == pytest.approx(
        {
            "ttft_s.mean": 1.5,
            "ttft_s.p50": 0.8,
            "tpot_s.mean": 0.05,
            "e2el_s.mean": 6.5,
            "e2el_s.p50": 5.8,
            "e2el_s.p90": 8.6,
            "e2el_s.p95": 9.0,
            "e2el_s.p99": 9.4,
            "requests_per_s": 13.0,
            "output_tokens_per_s": 1300.0,
            "goodput_rps": 11.0,
            "error_ratio": 0.02,
        }
    )
    assert str(side) == "concurrency 100"


def test_aiperf_without_errors_or_load(tmp_path: Path) -> None:
    """No count of errors is no error; a load that is not told is not taken for one."""
    (side,) = read(tmp_path, AIPERF | {"error_request_count": None, "input_config": None})
    assert side.values["error_ratio"] == 0
    assert (side.level, side.workload, str(side)) == (None, {}, "concurrency not told")


def test_a_summary_of_ours(tmp_path: Path) -> None:
    """A file that a team keeps as its baseline has the values and the verdict of its run."""
    summary = summarised([answered(seq, sent_ms=400.0 * seq) for seq in range(12)])
    (side,) = read(tmp_path, msgspec.to_builtins(summary))
    assert side.values["ttft_s.p50"] == pytest.approx(0.1)
    assert (side.tool, side.valid, side.cells) == ("loadgen", summary.verdict.valid, ())


@pytest.mark.parametrize(
    "damage",
    [
        {"mean_ttft_ms": "fast", "request_throughput": None, "num_prompts": "many", "request_rate": [1]},
        {"mean_ttft_ms": None, "num_prompts": 10**400},
        {"mean_ttft_ms": None, "num_prompts": 5, "completed": 10},
        {"mean_ttft_ms": float("nan"), "completed": True, "max_concurrency": -1, "duration": 0},
    ],
)
def test_values_of_another_kind_are_unknown(tmp_path: Path, damage: dict[str, Any]) -> None:
    """Nothing that is no number becomes one, and nothing is divided by zero."""
    (side,) = read(tmp_path, VLLM | damage)
    assert side.values["ttft_s.mean"] is None
    assert side.values["error_ratio"] is None
    assert side.values["ttft_s.p50"] == 0.1


def ours(**latency: Any) -> dict[str, Any]:
    """A summary of ours with other figures of TTFT."""
    value = msgspec.to_builtins(summarised([answered(seq, sent_ms=400.0 * seq) for seq in range(12)]))
    value["latency"]["ttft_s"] |= latency
    return value  # type: ignore[no-any-return]


def edited(value: dict[str, Any], found: Any, *keys: str | int) -> dict[str, Any]:
    """A copy with another number under the keys."""
    copy = json.loads(json.dumps(value))
    place = copy
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = found
    return copy  # type: ignore[no-any-return]


GUIDELLM = {"benchmarks": [guidellm({"kind": "synchronous"}), guidellm({"kind": "synchronous"})]}
LADDER = {"schema": "loadgen.sweep/1", "levels": [{"level": 1, "summary": ours()}, {"level": 2, "summary": ours()}]}
LADDER |= {"sweep_id": "s", "name": None, "variable": "concurrency", "asked": [1, 2], "knee": None, "no_knee": None}
OF_LADDER = ("levels", 1, "summary", "latency", "e2el_s", "mean")
OF_GUIDELLM = ("benchmarks", 1, "metrics", "time_to_first_token_ms", "successful", "percentiles", "p99")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (VLLM | {"mean_ttft_ms": -5.0}, "field mean_ttft_ms: expected a time of 0 to 10000000 s, found -5.0"),
        (VLLM | {"p99_tpot_ms": 1e300}, "field p99_tpot_ms: expected a time of 0 to 10000000 s, found 1e.300"),
        (
            VLLM | {"median_e2el_ms": 10**400},
            "field median_e2el_ms: expected a time of .*, found a number of 1329 bits",
        ),
        (VLLM | {"output_throughput": -1}, "field output_throughput: expected a number of 0 to 1e.15, found -1"),
        (
            VLLM | {"spec_decode_acceptance_rate": 101},
            "field spec_decode_acceptance_rate: expected a share of 0 to 100",
        ),
        (edited(GUIDELLM, -1e-9, *OF_GUIDELLM), f"field {'.'.join(map(str, OF_GUIDELLM))}: expected a time"),
        (edited(AIPERF, -3, "request_latency", "p95"), "field request_latency.p95: expected a time"),
        (edited(AIPERF, -3, "error_request_count", "avg"), "field error_request_count.avg: expected a number"),
        (ours(p50=-0.1), "field latency.ttft_s.p50: expected a time of 0 to 10000000 s, found -0.1"),
        (edited(LADDER, -1, *OF_LADDER), f"field {'.'.join(map(str, OF_LADDER))}: expected a time"),
        (edited(ours(), -2, "requests", "failed"), "field requests.failed: expected a number"),
    ],
)
def test_a_figure_that_nothing_can_have_come_to_is_refused(tmp_path: Path, value: dict[str, Any], said: str) -> None:
    """By file and field, whoever wrote it; of several results in a file, by which of them."""
    with pytest.raises(StoreError, match=rf"result\.json: {said}"):
        read(tmp_path, value)
    with pytest.raises(StoreError, match=rf"result\.json: object 2: {said}"):
        read(tmp_path, VLLM, value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[1, 2]",
        '{"schema": "loadgen.run/1"}',
        '{"benchmarks": []}',
        '{"benchmarks": [1]}',
        "[" * 9999,
        "1" * 5000,
    ],
)
def test_what_none_of_them_wrote_is_refused(tmp_path: Path, text: str) -> None:
    """With the path and what was expected."""
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(StoreError, match=r"other\.json: expected a summary of Loadgen, or results of vllm bench serve"):
        read_export(path)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    """Missing, binary, or of our schema and something else."""
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        read_export(tmp_path / "gone.json")
    path = tmp_path / "binary.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(StoreError, match=r"binary\.json: expected .* as JSON"):
        read_export(path)
    path.write_text('{"schema": "loadgen.summary/1"}')
    with pytest.raises(StoreError, match=r"binary\.json: expected loadgen.summary/1: .*run_id"):
        read_export(path)
