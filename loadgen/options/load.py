"""The options of `run` and `sweep`, each named, described and validated once for command line, environment and file."""

import re
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import field_validator, model_validator

from loadgen.core.metrics.slo import parse_slo
from loadgen.core.request import Endpoint
from loadgen.core.schedule.arrivals import HIGHEST_RATE_RPS, LOWEST_BURSTINESS, LOWEST_RATE_RPS
from loadgen.core.traces.lengths import LengthDistribution, parse_length
from loadgen.core.traces.row import LARGEST_COUNT
from loadgen.options.checks import check_levels, only_one
from loadgen.options.fields import (
    DurationSeconds,
    FloatLadder,
    IntLadder,
    OneFloat,
    OneInt,
    Pairs,
    PublicJson,
    Texts,
    option,
)
from loadgen.options.metrics import MetricsOptions
from loadgen.options.target import TargetOptions

MOST_REQUESTS = 1_000_000_000
MOST_WORKERS = 256
ALL_GPUS = "all"
ANY_FORMAT = "auto"
_GPU_INDEX = re.compile(r"[0-9]{1,4}")


class CommonOptions(MetricsOptions, TargetOptions):
    """What every command that sends load takes. Durations are seconds."""

    url: str = option(
        ...,
        "Base URL of the server, with or without /v1; unix:///path/to/socket works too.",
        panel="Target",
        metavar="URL",
    )
    extra_body: PublicJson = option({}, "JSON object laid over every request body.", panel="Target", metavar="JSON")
    transport: Literal["native", "httpx"] = option(
        "native",
        "How requests are sent: native (measures best) or httpx (HTTP/2, proxies).",
        panel="Target",
        metavar="native|httpx",
    )

    http2: bool = option(False, "Speak HTTP/2 (httpx transport).", panel="Target")
    proxy: str | None = option(
        None,
        "Send through this proxy (httpx transport); none is taken from the environment.",
        panel="Target",
        metavar="URL",
    )

    scrape_interval: DurationSeconds = option(
        1.0, "Time between two readings of the server's metrics page.", panel="Server", metavar="TIME", ge=0.2
    )
    metrics_url: Texts = option(
        [],
        "Metrics page to read instead of the server's own; may be given several times, once for each replica.",
        panel="Server",
        metavar="URL",
    )
    gpu_metrics_url: str | None = option(
        None,
        "Page of NVIDIA's DCGM exporter on the server's GPUs, for power, energy, use and memory.",
        panel="Server",
        metavar="URL",
    )
    local_gpus: Texts = option(
        [],
        "The same of this machine's GPUs, by NVIDIA's library (needs nvidia-ml-py): all, or indices such as 0,1.",
        panel="Server",
        metavar="all|0,1,…",
    )
    scrape: bool = option(True, "Read the server's metrics page before, during and after the run.", panel="Server")
    reset_prefix_cache: bool = option(
        False, "Have the server empty its prefix cache before the run, or before each level.", panel="Server"
    )
    cache_salt: str | None = option(
        None,
        "Keep the run's prompts apart in the server's prefix cache by this word; random draws one for every run or"
        " level.",
        panel="Server",
        metavar="WORD|random",
    )

    trace: Path | None = option(None, "Trace file to replay or to take requests from.", panel="Data", metavar="FILE")
    trace_format: str = option(
        ANY_FORMAT,
        "Format of the trace file: auto, azure, mooncake, burstgpt, bailian, sharegpt, native.",
        panel="Data",
    )
    prompts: Path | None = option(
        None,
        "JSON lines of prompts: requests by themselves, or the texts for a trace of lengths.",
        panel="Data",
        metavar="FILE.jsonl",
    )
    input_tokens: str = option("128", "Synthetic prompts: input tokens, as N, MEAN:SD or LOW-HIGH.", panel="Data")
    output_tokens: str = option("64", "Synthetic prompts: output tokens, as N, MEAN:SD or LOW-HIGH.", panel="Data")
    token_ids: bool = option(
        False, "Send invented prompts as token ids, for exact lengths (completions only).", panel="Data"
    )
    shared_prefix_tokens: int = option(
        0, "Synthetic prompts: tokens that all prompts share at their start.", panel="Data", ge=0
    )
    on_bad_row: Literal["stop", "skip"] = option(
        "stop",
        "What a row that cannot be used does: stop before any load, or be skipped and counted.",
        panel="Data",
        metavar="stop|skip",
    )
    trace_from: DurationSeconds | None = option(
        None, "Use the trace from this time after its first row.", panel="Data", metavar="TIME"
    )
    trace_to: DurationSeconds | None = option(
        None, "Use the trace up to this time after its first row.", panel="Data", metavar="TIME"
    )
    max_context: int | None = option(
        None, "Leave out requests whose input and output tokens together exceed this.", panel="Data", gt=0
    )
    spread: bool = option(
        False, "Draw arrivals with equal time stamps over the step of the recording's clock.", panel="Data"
    )
    history: Literal["answers", "recorded"] = option(
        "answers",
        "What later turns of a conversation go on from: this run's answers, or those in the file.",
        panel="Data",
        metavar="answers|recorded",
    )
    ignore_eos: bool = option(False, "Ask for exactly the planned number of output tokens.", panel="Data")
    temperature: float | None = option(None, "Sampling temperature. Default: the server's.", panel="Data", ge=0)
    max_tokens: int | None = option(
        None, "Upper bound on output tokens of every request.", panel="Data", gt=0, le=LARGEST_COUNT
    )
    stream: bool = option(
        True, "Ask for streamed answers; without it only whole-answer latency is measured.", panel="Data"
    )
    tokens_per_event: Literal["auto", "off", "ids", "usage"] = option(
        "auto",
        "How to learn the tokens of each streamed event: token ids, continuous usage, or what the server takes.",
        panel="Data",
        metavar="auto|off|ids|usage",
    )

    num_requests: int | None = option(
        None,
        "Measured requests (per level). Default: one pass over the data, or 10 x concurrency and at least 100.",
        panel="End",
        gt=0,
        le=MOST_REQUESTS,
    )
    duration: DurationSeconds | None = option(
        None, "Length of the measured window (per level), such as 60s.", panel="End", metavar="TIME", gt=0
    )
    warmup_requests: int | None = option(
        None,
        "Requests before the measured ones, not counted. Default: 0; in a ladder one for each slot, at least 4.",
        panel="End",
        ge=0,
        le=MOST_REQUESTS,
    )
    ramp_up: DurationSeconds = option(
        0.0,
        "Start a closed loop's slots spread over this time; what is sent meanwhile is warm-up.",
        panel="End",
        metavar="TIME",
        ge=0,
    )
    grace: DurationSeconds = option(
        30.0, "Time for requests in flight to end after the last one was started.", panel="End", metavar="TIME", ge=0
    )
    timeout: DurationSeconds | None = option(
        None, "Longest time for one request in all. Default: none.", panel="End", metavar="TIME", gt=0
    )
    idle_timeout: DurationSeconds | None = option(
        300.0, "Longest silence of the server in one request.", panel="End", metavar="TIME", gt=0
    )
    connect_timeout: DurationSeconds = option(
        10.0, "Longest time to open a connection.", panel="End", metavar="TIME", gt=0
    )

    slo: str | None = option(
        None, "Objectives for each request, such as ttft=500ms,tpot=50ms,e2el=10s.", panel="Judging"
    )
    slo_attainment: float | None = option(
        None,
        "Share of requests that must meet the objectives; below it (in a ladder: at every level) the exit code is 1.",
        panel="Judging",
        gt=0,
        le=1,
    )
    max_error_ratio: float | None = option(
        None,
        "Largest share of failed and dropped requests; above it (in a ladder: at any level) the exit code is 1.",
        panel="Judging",
        ge=0,
        le=1,
    )
    allow_invalid: bool = option(False, "End with 0 although the measurement is invalid.", panel="Judging")

    workers: int = option(
        1,
        "Processes that send the load together, each its share; a level of fewer slots has one for each of them.",
        panel="Run",
        metavar="N",
        ge=1,
        le=MOST_WORKERS,
    )
    seed: int | None = option(
        None,
        "Seed of arrivals, lengths and prompts. Default: a fresh one, written to the manifest.",
        panel="Run",
        ge=0,
        lt=2**63,
    )
    out: Path = option(Path("runs"), "Folder for run folders.", panel="Run", metavar="DIR")
    name: str | None = option(None, "Name of the run, for people.", panel="Run")
    label: Pairs = option(
        {}, "A label of the run, as KEY=VALUE; may be given several times.", panel="Run", metavar="K=V"
    )
    save_text: bool = option(False, "Keep the answers' text in the records.", panel="Run")
    no_progress: bool = option(False, "No progress display.", panel="Run")
    quiet: bool = option(False, "Print nothing but errors.", panel="Run")
    json_output: bool = option(False, "Print the result as JSON.", panel="Run", flags=("--json",))

    @field_validator("slo")
    @classmethod
    def _slo_can_be_read(cls, value: str | None) -> str | None:
        if value is not None:
            parse_slo(value)
        return value

    @field_validator("local_gpus")
    @classmethod
    def _gpus_are_indices(cls, value: list[str]) -> list[str]:
        if value != [ALL_GPUS] and not all(_GPU_INDEX.fullmatch(index) for index in value):
            raise ValueError(f"expected all, or indices of GPUs such as 0,1; got {','.join(value)}")
        return list(dict.fromkeys(value))

    @field_validator("input_tokens", "output_tokens", mode="before")
    @classmethod
    def _length_can_be_read(cls, value: Any) -> Any:
        parse_length(str(value))
        return str(value)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.slo_attainment is not None and self.slo is None:
            raise ValueError("--slo-attainment needs --slo")
        if self.trace_from is not None and self.trace_to is not None and self.trace_from >= self.trace_to:
            raise ValueError("--trace-from must come before --trace-to")
        if (self.trace_from is not None or self.trace_to is not None) and self.trace is None:
            raise ValueError("--trace-from and --trace-to need --trace")
        if self.trace_format != ANY_FORMAT and self.trace is None:
            raise ValueError("--trace-format needs --trace")
        if not self.scrape and (self.metrics_url or self.gpu_metrics_url is not None or self.local_gpus):
            raise ValueError("--no-scrape reads nothing; it excludes --metrics-url, --gpu-metrics-url and --local-gpus")
        if self.gpu_metrics_url is not None and self.local_gpus:
            raise ValueError("expected one of --gpu-metrics-url and --local-gpus")
        if self.cache_salt is not None and "cache_salt" in self.extra_body:
            raise ValueError("expected one of --cache-salt and cache_salt in --extra-body")
        if (self.http2 or self.proxy is not None) and self.transport != "httpx":
            raise ValueError("--http2 and --proxy need --transport httpx")
        if self.token_ids and self.endpoint is not Endpoint.COMPLETIONS:
            raise ValueError("--token-ids needs --endpoint completions")
        return self

    @property
    def gpu_indices(self) -> tuple[int, ...] | None:
        """The GPUs of this machine that are read; None for all of them, empty for none."""
        return None if self.local_gpus == [ALL_GPUS] else tuple(map(int, self.local_gpus))

    @property
    def input_lengths(self) -> LengthDistribution:
        """Input tokens of synthetic prompts."""
        return parse_length(self.input_tokens)

    @property
    def output_lengths(self) -> LengthDistribution:
        """Output tokens of synthetic prompts."""
        return parse_length(self.output_tokens)


class LoopOptions(CommonOptions):
    """What an open loop takes beside its rate."""

    ALTERNATIVES: ClassVar[tuple[frozenset[str], ...]] = (frozenset({"concurrency", "request_rate", "replay"}),)

    burstiness: float | None = option(
        None,
        "Gamma shape of the gaps: 1 Poisson, below 1 burstier, inf constant. Default: 1.",
        panel="Load",
        metavar="G",
        ge=LOWEST_BURSTINESS,
        allow_inf_nan=True,
    )
    max_concurrency: int | None = option(None, "Cap on requests in flight of an open loop.", panel="Load", gt=0)


class RunOptions(LoopOptions):
    """One run."""

    concurrency: OneInt | None = option(
        None, "Closed loop: requests kept in flight. Default: 1.", panel="Load", metavar="N", gt=0
    )
    request_rate: OneFloat | None = option(
        None,
        "Open loop: requests a second, at drawn instants.",
        panel="Load",
        metavar="R",
        ge=LOWEST_RATE_RPS,
        le=HIGHEST_RATE_RPS,
    )
    replay: bool = option(False, "Open loop at the trace's own times.", panel="Load")
    speed: float | None = option(None, "Replay this many times as fast.", panel="Load", metavar="S", gt=0)

    @model_validator(mode="after")
    def _one_load(self) -> Self:
        loads = {"--concurrency": self.concurrency is not None, "--request-rate": self.request_rate is not None}
        only_one("kind of load", loads | {"--replay": self.replay})
        _check_open_loop(self, rates=self.request_rate is not None, replay=self.replay)
        open_loop = self.request_rate is not None or self.replay
        slots = self.max_concurrency if open_loop else self.concurrency or 1
        if slots is not None and self.workers > slots:
            flag = "--max-concurrency" if open_loop else "--concurrency"
            raise ValueError(f"--workers {self.workers}: expected at most one for each request of {flag} {slots}")
        return self


class SweepOptions(LoopOptions):
    """A ladder of runs."""

    concurrency: IntLadder | None = option(
        None, "Closed-loop levels. Default: 1,2,4,8,16.", panel="Load", metavar="N,N,…"
    )
    request_rate: FloatLadder | None = option(
        None, "Open-loop levels in requests a second.", panel="Load", metavar="R,R,…"
    )
    settle: DurationSeconds = option(1.0, "Pause between levels.", panel="Load", metavar="TIME", ge=0)

    @model_validator(mode="after")
    def _one_ladder(self) -> Self:
        ladders = {"--concurrency": self.concurrency, "--request-rate": self.request_rate}
        only_one("ladder", {flag: ladder is not None for flag, ladder in ladders.items()})
        for flag, ladder in ladders.items():
            check_levels(flag, ladder)
        rates = self.request_rate
        if rates is not None and not LOWEST_RATE_RPS <= min(rates) <= max(rates) <= HIGHEST_RATE_RPS:
            raise ValueError(
                f"--request-rate: expected rates from {LOWEST_RATE_RPS:g} to {HIGHEST_RATE_RPS:g}, got {rates}"
            )
        _check_open_loop(self, rates=self.request_rate is not None, replay=False)
        return self


def _check_open_loop(options: RunOptions | SweepOptions, *, rates: bool, replay: bool) -> None:
    if options.burstiness is not None and not rates:
        raise ValueError("--burstiness needs --request-rate")
    if options.max_concurrency is not None and not (rates or replay):
        raise ValueError("--max-concurrency caps an open loop; for a closed loop give --concurrency")
    if options.ramp_up > 0 and (rates or replay):
        raise ValueError("--ramp-up is for a closed loop; an open loop's warm-up is --warmup-requests")
    if isinstance(options, RunOptions):
        if options.speed is not None and not replay:
            raise ValueError("--speed needs --replay")
        if replay and options.trace is None:
            raise ValueError("--replay needs --trace")
