"""One reading of a server's metrics, in names that no engine owns. A line of `server.jsonl.zst` is a `Scrape`."""

from dataclasses import dataclass

SCRAPE_SCHEMA = "loadgen.scrape/1"
GPU_SOURCE = "gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Sums since an engine process started; None for what the engine does not count.

    `drafts` are request-steps that had a draft, `accepted_by_position[i]` of them those in which draft token i + 1 was
    accepted. `decode_steps` are request-steps after the prompt's, drafted or not; `verify_steps` those that ran the
    verification, where an engine counts those instead. `first_tokens` counts requests that got their first token, so
    `generation_tokens` - `first_tokens` are the tokens of decode steps. Prefix counts are prompt tokens looked up, and
    found. `queue_s`, `prefill_s`, `decode_s` sum over the `timed_requests` that finished. `iterations` are engine
    steps of all requests together and `iteration_tokens` the tokens in them.
    """

    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    first_tokens: float | None = None
    finished_requests: float | None = None
    drafts: float | None = None
    drafted_tokens: float | None = None
    accepted_tokens: float | None = None
    accepted_by_position: tuple[float, ...] | None = None
    decode_steps: float | None = None
    verify_steps: float | None = None
    preemptions: float | None = None
    prefix_query_tokens: float | None = None
    prefix_hit_tokens: float | None = None
    timed_requests: float | None = None
    queue_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    iterations: float | None = None
    iteration_tokens: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """State at one instant; None for what the engine does not show.

    `acceptance_length` (bonus token included) and `acceptance_ratio` are an engine's own figures over its last
    interval: never summed, never mixed with counters.
    """

    running_requests: float | None = None
    waiting_requests: float | None = None
    kv_used_ratio: float | None = None
    prefix_hit_ratio: float | None = None
    acceptance_length: float | None = None
    acceptance_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSample:
    """One engine process of the model under test. `engine` tells processes of one page apart (vLLM's label, a rank).

    `started_unix_s` is when the process says that it started, None where it does not. `gaps` names what was on
    the page without being a number: unknown at this reading, and no sign that the process was started anew.
    """

    engine: str
    counters: Counters
    gauges: Gauges
    started_unix_s: float | None = None
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSample:
    """One GPU: its name or index, power drawn, busy share, memory in use; `energy_j` is a counter since it came up."""

    gpu: str
    power_w: float | None = None
    utilisation_ratio: float | None = None
    memory_used_bytes: float | None = None
    energy_j: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """One page read once: when (ns on the run's axis, the middle of the exchange), how long it took, what it said.

    `source` names the page among those that are scraped (`0`, `1`, ... in the order given, or `gpu`). `fault` says in
    words why there is nothing; then the samples are empty.
    """

    schema: str = SCRAPE_SCHEMA
    taken_ns: int
    took_ns: int
    source: str
    samples: tuple[ServerSample, ...] = ()
    gpus: tuple[GpuSample, ...] = ()
    fault: str | None = None
