"""A run in the result format of `vllm bench serve`, for tools that read it.

Keys and units are those of that format: milliseconds in the statistics, seconds in the arrays, `request_rate` "inf" for
a closed loop. Where its definitions and ours differ, `docs/reports.md` says which one stands behind a key. A value that
we do not have is null or its key is missing; it is never 0.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadgen.core.metrics.distribution import distribution
from loadgen.core.metrics.per_request import cap_wait_s, e2el_s, tpot_s, ttft_s
from loadgen.core.metrics.summary import Distribution, Summary
from loadgen.core.record import Outcome, RequestRecord
from loadgen.core.request import Phase
from loadgen.core.run import LoadMode
from loadgen.core.speculation.views import Origin
from loadgen.core.units import NS_PER_S

BACKENDS = {"chat": "openai-chat", "completions": "openai", "responses": "openai-responses"}
_PERCENTILES = ("p50", "p75", "p90", "p95", "p99")

Records = Callable[[], Iterable[RequestRecord]]


def vllm_json(summary: Summary, records: Records, metadata: Mapping[str, Any] = MappingProxyType({})) -> Iterator[str]:
    """One JSON object on one line, in pieces. `metadata` stands at its end, as with that command's `--metadata`.

    `records` gives the run's records anew at each call, in the same order. The arrays have one entry a measured
    request, in the order in which requests ended; `itls`, as long as all streams together, is never whole in memory.
    """
    columns = _Columns()
    for record in _measured(records):
        columns.add(record)
    head = json.dumps(_head(summary, columns), allow_nan=False, ensure_ascii=False)
    yield head.removesuffix("}")
    for key, values in columns.arrays().items():
        yield f", {json.dumps(key)}: {json.dumps(values, allow_nan=False, ensure_ascii=False)}"
    yield ', "itls": ['
    yield from _items(json.dumps(_gaps_s(record)) for record in _measured(records))
    yield "]"
    if columns.has_text:
        yield ', "generated_texts": ['
        yield from _items(json.dumps(record.text or "", ensure_ascii=False) for record in _measured(records))
        yield "]"
    for key, value in metadata.items():
        yield f", {json.dumps(key)}: {json.dumps(value, allow_nan=False, ensure_ascii=False)}"
    yield "}\n"


def _measured(records: Records) -> Iterator[RequestRecord]:
    return (record for record in records() if record.phase is Phase.MEASURE)


def _items(texts: Iterable[str]) -> Iterator[str]:
    separator = ""
    for text in texts:
        yield separator + text
        separator = ", "


def _gaps_s(record: RequestRecord) -> list[float]:
    return [(after - before) / NS_PER_S for before, after in pairwise(record.event_ns)]


class _Columns:
    """One value a measured request, and the running sums that need every event."""

    def __init__(self) -> None:
        self.input_lens: list[int | None] = []
        self.output_lens: list[int | None] = []
        self.ttfts: list[float | None] = []
        self.latencies: list[float | None] = []
        self.start_times: list[float | None] = []
        self.queue_times: list[float | None] = []
        self.errors: list[str] = []
        self.tpots: list[float] = []
        self.completed_ttfts: list[float] = []
        self.completed_latencies: list[float] = []
        self.completed_queue_times: list[float] = []
        self.queued_latencies: list[float] = []
        self.has_text = False
        self.first_sent_ns: int | None = None
        self.last_closed_ns: int | None = None
        self._gaps = _Spread()
        self._tokens_by_second = np.zeros(64)
        self._tokens_known = True

    def add(self, record: RequestRecord) -> None:
        """Takes one measured request."""
        completed = record.outcome is Outcome.COMPLETED
        ttft, latency, queued = ttft_s(record), e2el_s(record), cap_wait_s(record)
        self.input_lens.append(record.input_tokens)
        self.output_lens.append(record.output_tokens)
        self.ttfts.append(ttft)
        self.latencies.append(latency)
        self.start_times.append(None if record.sent_ns is None else record.sent_ns / NS_PER_S)
        self.queue_times.append(queued)
        self.errors.append("" if completed else _error(record))
        self.has_text = self.has_text or record.text is not None
        if record.sent_ns is not None:
            earlier = self.first_sent_ns
            self.first_sent_ns = record.sent_ns if earlier is None else min(earlier, record.sent_ns)
        if record.closed_ns is not None:
            later = self.last_closed_ns
            self.last_closed_ns = record.closed_ns if later is None else max(later, record.closed_ns)
        self._add_tokens(record)
        if completed:
            self._add_completed(record, ttft, latency, queued)

    def _add_completed(
        self, record: RequestRecord, ttft: float | None, latency: float | None, queued: float | None
    ) -> None:
        tpot = tpot_s(record)
        if tpot is not None:
            self.tpots.append(tpot)
        if ttft is not None:
            self.completed_ttfts.append(ttft)
        if latency is not None:
            self.completed_latencies.append(latency)
        if queued is not None:
            self.completed_queue_times.append(queued)
            if latency is not None:
                self.queued_latencies.append(latency + queued)
        if record.streamed is not False:
            self._gaps.add(np.asarray(_gaps_s(record), dtype=np.float64))

    def _add_tokens(self, record: RequestRecord) -> None:
        """Spreads the tokens of an answer over the seconds in which its events arrived."""
        if not record.event_ns:
            return
        if record.event_tokens is not None:
            weights = np.asarray(record.event_tokens, dtype=np.float64)
        elif record.output_tokens is not None:
            weights = np.full(len(record.event_ns), record.output_tokens / len(record.event_ns))
        else:
            self._tokens_known = False
            return
        seconds = np.asarray(record.event_ns, dtype=np.int64) // NS_PER_S
        needed = int(seconds[-1]) + 1
        if needed > len(self._tokens_by_second):
            self._tokens_by_second = np.pad(self._tokens_by_second, (0, 2 * needed - len(self._tokens_by_second)))
        np.add.at(self._tokens_by_second, seconds, weights)

    @property
    def duration_s(self) -> float | None:
        """From the first byte sent to the last exchange closed."""
        if self.first_sent_ns is None or self.last_closed_ns is None:
            return None
        return (self.last_closed_ns - self.first_sent_ns) / NS_PER_S

    @property
    def most_tokens_in_a_second(self) -> float | None:
        """The largest number of output tokens in one second of the run's axis; None when some were not counted."""
        most = float(self._tokens_by_second.max())
        return most if self._tokens_known and most > 0 else None

    @property
    def gaps_std_s(self) -> float | None:
        """Standard deviation of all gaps between events of completed requests."""
        return self._gaps.std

    def arrays(self) -> dict[str, list[Any]]:
        """The arrays with one value a request."""
        return {
            "input_lens": self.input_lens,
            "output_lens": self.output_lens,
            "ttfts": self.ttfts,
            "latencies": self.latencies,
            "start_times": self.start_times,
            "queue_times": self.queue_times,
            "errors": self.errors,
        }


class _Spread:
    """Standard deviation of a stream of samples, merged sample by sample (Chan, Golub and LeVeque)."""

    def __init__(self) -> None:
        self._n, self._mean, self._squares = 0, 0.0, 0.0

    def add(self, sample: NDArray[np.float64]) -> None:
        """Takes a sample, which may be empty."""
        n = len(sample)
        if n == 0:
            return
        mean = float(sample.mean())
        total, apart = self._n + n, mean - self._mean
        self._squares += float(((sample - mean) ** 2).sum()) + apart**2 * self._n * n / total
        self._mean += apart * n / total
        self._n = total

    @property
    def std(self) -> float | None:
        """Of all values so far, divided by n; None without any."""
        return float(np.sqrt(self._squares / self._n)) if self._n else None


def _error(record: RequestRecord) -> str:
    failure = record.failure
    if failure is None:
        return str(record.outcome)
    return f"{failure.kind}: {failure.message}" if failure.message else str(failure.kind)


def _head(summary: Summary, columns: _Columns) -> dict[str, Any]:
    load, counts, tokens, duration = summary.load, summary.requests, summary.tokens, columns.duration_s
    backend = BACKENDS.get(summary.target.endpoint, summary.target.endpoint)
    closed = load.mode is LoadMode.CONCURRENCY
    head: dict[str, Any] = {
        "date": summary.started_at[:19].replace("-", "").replace(":", "").replace("T", "-"),
        "endpoint_type": backend,
        "backend": backend,
        "label": summary.name,
        "model_id": summary.target.model,
        "tokenizer_id": None,
        "num_prompts": counts.planned,
        "request_rate": "inf" if closed else load.request_rate_rps,
        "burstiness": ("inf" if load.burstiness is None else load.burstiness) if load.mode is LoadMode.RATE else None,
        "max_concurrency": load.concurrency if closed else load.max_concurrency,
        "duration": duration,
        "completed": counts.completed,
        "failed": counts.failed,
        "cancelled": counts.cancelled,
        "dropped": counts.dropped,
        "total_input_tokens": tokens.input,
        "total_output_tokens": tokens.output,
        "request_throughput": _per(counts.completed, duration),
        "request_goodput": None if summary.slo is None else _per(summary.slo.good, duration),
        "output_throughput": _per(tokens.output, duration),
        "total_token_throughput": _per(
            None if tokens.input is None or tokens.output is None else tokens.input + tokens.output, duration
        ),
        "max_output_tokens_per_s": columns.most_tokens_in_a_second,
        "max_concurrent_requests": summary.concurrency.peak,
    }
    latency = summary.latency
    head |= _statistics("ttft", latency.ttft_s, _std(columns.completed_ttfts))
    head |= _statistics("tpot", latency.tpot_s, _std(columns.tpots))
    head |= _statistics("itl", latency.icl_s, columns.gaps_std_s)
    head |= _statistics("e2el", latency.e2el_s, _std(columns.completed_latencies))
    if columns.completed_queue_times:
        queued, whole = columns.completed_queue_times, columns.queued_latencies
        head |= _statistics("client_queue_time", _distribution(queued), _std(queued))
        head |= _statistics("e2el_including_client_queue", _distribution(whole), _std(whole))
    return head | _speculation(summary)


def _per(count: int | None, duration: float | None) -> float | None:
    return count / duration if count is not None and duration else None


def _std(values: list[float]) -> float | None:
    return float(np.std(values)) if values else None


def _distribution(values: list[float]) -> Distribution:
    return distribution(np.sort(np.asarray(values, dtype=np.float64)), missing=0)


def _statistics(name: str, found: Distribution, std_s: float | None) -> dict[str, float | None]:
    def ms(value_s: float | None) -> float | None:
        return None if value_s is None else value_s * 1e3

    return {
        f"mean_{name}_ms": ms(found.mean),
        f"median_{name}_ms": ms(found.p50),
        f"std_{name}_ms": ms(std_s),
        **{f"{percentile}_{name}_ms": ms(getattr(found, percentile)) for percentile in _PERCENTILES},
    }


def _speculation(summary: Summary) -> dict[str, Any]:
    """That format counts steps that drafted, which the events of a stream cannot tell from others: no keys then."""
    found = summary.speculation
    if found is None or found.origin == Origin.STREAM:
        return {}
    values = {
        "spec_decode_acceptance_rate": None if found.acceptance_ratio is None else found.acceptance_ratio * 100,
        "spec_decode_acceptance_length": found.acceptance_length,
        "spec_decode_num_drafts": found.steps,
        "spec_decode_draft_tokens": found.drafted_tokens,
        "spec_decode_accepted_tokens": found.accepted_tokens,
        "spec_decode_per_position_acceptance_rates": found.acceptance_by_position,
    }
    return {key: value for key, value in values.items() if value is not None}
