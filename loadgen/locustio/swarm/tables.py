"""Our measurements in Locust's tables: rows of their own in its statistics, and a tab with each level's figures."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from locust.stats import RequestStats, StatsEntry, StatsError

BUCKETS_A_DOUBLING = 32
"""Native buckets grow by 2^(1/32): so finely are values counted before they get here, never rounder."""

REQUESTS = "request_duration"
_METHOD, _DASH = "LLM", "\u2014"
_NAMES = {
    REQUESTS: "end to end",
    "time_to_first_token": "TTFT",
    "time_per_output_token": "TPOT",
    "inter_chunk_latency": "inter-chunk",
}
_LATENCIES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "icl_s": "inter-chunk", "e2el_s": "end to end"}
_STATISTICS = ("mean", "min", "p50", "p90", "p95", "p99", "max")

TAB = {"title": "LLM", "key": "llm"}
TABLE = {
    "key": "llm",
    "structure": [
        {"key": "load", "title": "Level"},
        {"key": "metric", "title": "Metric (ms)"},
        {"key": "requests", "title": "# Requests"},
        *({"key": name, "title": name} for name in _STATISTICS),
        {"key": "verdict", "title": "Measurement"},
    ],
}


def add_counts(stats: RequestStats, title: str, counts: Mapping[str, Any]) -> None:
    """Adds what was counted since the last time to the rows of that level.

    Whole requests alone go into Locust's aggregate: the parts of one are not requests.
    """
    failures = sum(counts.get("failures", {}).values())
    for timing, name in _NAMES.items():
        entry = _entry(stats, f"{title} · {name}", counts.get("timings", {}).get(timing, {}))
        if timing == REQUESTS:
            _fail(entry, failures)
            if entry.num_requests:
                stats.total.extend(entry)
                stats.total.total_content_length = 0
        if entry.num_requests:
            key = (entry.name, entry.method)
            if key not in stats.entries:
                stats.entries[key] = StatsEntry(stats, entry.name, entry.method, use_response_times_cache=True)
            stats.entries[key].extend(entry)
    for kind, count in counts.get("failures", {}).items():
        _note_failures(stats, f"{title} · {_NAMES[REQUESTS]}", kind, count)


def _note_failures(stats: RequestStats, name: str, kind: str, count: int) -> None:
    key = StatsError.create_key(_METHOD, name, kind)
    now_s = time.time()
    error = stats.errors.setdefault(key, StatsError(_METHOD, name, kind, first_seen=now_s))
    error.occurrences += count
    error.last_seen = now_s


def level_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The tab: a row a level and metric, from the summaries, in ms to the microsecond."""
    found = []
    for row in rows:
        load = " · ".join(str(row[name]) for name in ("arm", "repeat") if row[name] is not None)
        load = f"{load} · {row['level']:g}" if load else f"{row['level']:g}"
        for name, metric in _LATENCIES.items():
            latency = row["latency"][name]
            values = {statistic: _shown(latency[statistic]) for statistic in _STATISTICS}
            found.append(
                {"load": load, "metric": metric, "requests": latency["n"], **values, "verdict": row["verdict"]}
            )
    return found


def _shown(value_s: float | None) -> float | str:
    """A dash where there is no value: Locust's page would make 0 of it."""
    return _DASH if value_s is None else round(value_s * 1e3, 3)


def _entry(stats: RequestStats, name: str, counted: Mapping[str, Any]) -> StatsEntry:
    entry = StatsEntry(stats, name, _METHOD)
    times: dict[Any, int] = {_value_ms(bucket): n for bucket, n in counted.get("buckets", {}).items()}
    now_s = time.time()
    entry.start_time = now_s
    entry.last_request_timestamp = now_s if times else None
    entry.num_requests = sum(times.values())
    entry.total_response_time = counted.get("sum_s", 0.0) * 1e3
    entry.response_times.update(times)
    if times:
        entry.min_response_time, entry.max_response_time = min(times), max(times)
        entry.num_reqs_per_sec[int(now_s)] = entry.num_requests
    return entry


def _fail(entry: StatsEntry, failures: int) -> None:
    """Requests that failed have no time, as Locust knows it of those that never got an answer."""
    if failures:
        now_s = time.time()
        entry.num_requests += failures
        entry.num_none_requests += failures
        entry.num_failures += failures
        entry.last_request_timestamp = now_s
        entry.num_reqs_per_sec[int(now_s)] = entry.num_requests
        entry.num_fail_per_sec[int(now_s)] = failures


def _value_ms(bucket: str) -> float:
    """The middle of a native bucket on a logarithmic scale, ms; three digits more than its width tells."""
    if bucket == "zeros":
        return 0.0
    return round(2 ** ((int(bucket) - 0.5) / BUCKETS_A_DOUBLING) * 1e3, 5)
