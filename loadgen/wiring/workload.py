"""What is sent: the data behind a run, checked as a whole, and each level's plan from it."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import Any

import msgspec
import numpy as np

from loadgen.adapters.trace_files import TraceSource, open_trace
from loadgen.core.errors import ConfigError, DataError
from loadgen.core.request import Conversation, PlannedConversation, RequestTemplate
from loadgen.core.run import Load, LoadMode
from loadgen.core.schedule.arrivals import gamma_offsets
from loadgen.core.schedule.plan import plan
from loadgen.core.schedule.share import WHOLE, Share
from loadgen.core.traces.part import Part
from loadgen.core.traces.source import Source, cycle
from loadgen.core.traces.synthetic import SyntheticSource
from loadgen.core.traces.texts import BorrowedText, InventedText, InventedTokenIds, Texts
from loadgen.options.load import CommonOptions, RunOptions

ReadProgress = Callable[[int, int], None]
TOKEN_ID_RANGE = (1_000, 30_000)
"""Token numbers for invented prompts: above the special ones, within every common vocabulary."""

_SYNTHETIC_BATCH, _SYNTHETIC_MOST = 10_000, 100_000
"""So many lengths are drawn, at most; further requests repeat the lengths, with prompts of their own."""

_FEWEST_REQUESTS = 100
_REQUESTS_PER_SLOT = 10
_MOST_PASSES = 100_000  # more than a run that ends by time will make


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The data of one command. `finite` data ends after one pass unless more is asked for."""

    source: Source
    finite: bool

    def close(self) -> None:
        """Closes the data file, where there is one."""
        if isinstance(self.source, TraceSource):
            self.source.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelPlan:
    """The requests of one run, lazily, with what its manifest says of them."""

    conversations: Iterator[PlannedConversation]
    first_request: dict[str, Any] | None
    data: dict[str, Any]


def open_workload(options: CommonOptions, *, seed: int, progress: ReadProgress | None = None) -> Workload:
    """Opens and checks the data that the options name. Raises DataError or ConfigError before anything is sent."""
    replay = isinstance(options, RunOptions) and options.replay
    if options.trace is None and options.prompts is None:
        source = SyntheticSource(
            input_tokens=options.input_lengths,
            output_tokens=options.output_lengths,
            count=min(options.num_requests or _SYNTHETIC_BATCH, _SYNTHETIC_MOST),
            seed=seed,
            texts=_invented(options, seed),
            shared_prefix_tokens=options.shared_prefix_tokens,
        )
        return Workload(source=source, finite=False)
    if options.shared_prefix_tokens:
        raise ConfigError("--shared-prefix-tokens is for synthetic prompts, not for those of a file")
    path = options.trace or options.prompts
    assert path is not None
    trace = open_trace(
        path,
        format=options.trace_format if options.trace is not None else "auto",
        on_bad_row=options.on_bad_row,
        need_times=replay,
        texts=_texts(options, seed),
        history=options.history,
        progress=progress,
    )
    part = Part(
        max_context_tokens=options.max_context,
        from_s=options.trace_from,
        to_s=options.trace_to,
        spread=options.spread,
        speed=(options.speed or 1.0) if isinstance(options, RunOptions) else 1.0,
        seed=seed,
    )
    try:
        if options.trace is None and trace.facts.text == "invented":
            raise ConfigError(f"--prompts {path}: this file holds lengths and no text; give it as --trace")
        return Workload(source=trace if part == Part(seed=seed) else trace.part(part), finite=True)
    except BaseException:
        trace.close()
        raise


def beyond_context(workload: Workload, limit: int | None) -> tuple[str, ...]:
    """A note on requests beyond the model's context of `limit` tokens, where data and server tell; else nothing."""
    if limit is None or not isinstance(workload.source, TraceSource):
        return ()
    requests = workload.source.facts.requests
    try:
        fitting = workload.source.part(Part(max_context_tokens=limit)).facts.requests
    except DataError:
        fitting = 0
    if fitting == requests:
        return ()
    return (
        f"{requests - fitting} of {requests} requests have or follow one of more tokens than the model's context of"
        f" {limit}, by the data's own lengths; --max-context {limit} leaves them out",
    )


def default_requests(workload: Workload, options: CommonOptions, concurrency: int | None) -> int | None:
    """Measured requests of a level: as asked, None for one pass or until a duration is over, else by concurrency."""
    if options.num_requests is not None or options.duration is not None or workload.finite:
        return options.num_requests
    return max(_FEWEST_REQUESTS, _REQUESTS_PER_SLOT * (concurrency or 1))


def passes_needed(workload: Workload, load: Load, *, warmup_requests: int) -> int:
    """Passes over the data that a run may begin, so that the next run can use others and share no prompt with it."""
    if load.num_requests is not None:
        return -(-(load.num_requests + warmup_requests) // workload.source.facts.requests)
    return 1 if workload.finite and load.duration_s is None else _MOST_PASSES


def level_plan(
    workload: Workload,
    load: Load,
    template: RequestTemplate,
    *,
    run_id: str,
    warmup_requests: int,
    first_pass: int = 0,
    share: Share = WHOLE,
) -> LevelPlan:
    """The plan of one run, or a share of it.

    `first_pass` numbers the passes over the data, so that no level repeats another's prompts. Data that is too short is
    passed over again, each repeat marked so that a prefix cache does not answer it; `repeats` in the manifest's data
    says that this happened.
    """
    needed = None if load.num_requests is None else load.num_requests + warmup_requests
    once = workload.finite and load.duration_s is None and needed is None
    conversations = _passes(workload.source, first_pass, once=once)
    offsets = None
    if load.mode is LoadMode.RATE:
        assert load.request_rate_rps is not None
        shape = float("inf") if load.burstiness is None else load.burstiness
        offsets = gamma_offsets(load.request_rate_rps, shape, np.random.default_rng([load.seed, 1]))
    planned = plan(
        conversations,
        template,
        request_id_prefix=run_id,
        offsets=offsets,
        replay=load.mode is LoadMode.REPLAY,
        num_requests=load.num_requests,
        warmup_requests=warmup_requests,
        share=share,
        slots=load.concurrency or load.max_concurrency,
    )
    head = list(islice(planned, 1))
    body = head[0].requests[0].body if head else None
    facts = asdict(workload.source.facts)
    facts["repeats"] = needed is not None and workload.finite and needed > workload.source.facts.requests
    return LevelPlan(
        conversations=chain(head, planned),
        first_request=None if body is None else _shortened(msgspec.json.decode(body)),
        data=facts,
    )


def _passes(source: Source, first_pass: int, *, once: bool) -> Iterator[Conversation]:
    """One pass over the data, or as many as are wanted; repeats are marked, so that no prefix cache answers them."""
    if once:
        return source.conversations(pass_number=first_pass, unique_repeats=True)
    return (conversation for _, conversation in cycle(source, first_pass=first_pass, unique_repeats=True))


def _invented(options: CommonOptions, seed: int) -> Texts:
    if options.token_ids:
        low, high = TOKEN_ID_RANGE
        return InventedTokenIds(seed=seed, low=low, high=high)
    return InventedText(seed=seed)


def _texts(options: CommonOptions, seed: int) -> Texts:
    """Prompts for rows of lengths: from the prompts file where both are given, else invented."""
    if options.trace is None or options.prompts is None:
        return _invented(options, seed)
    with open_trace(options.prompts, on_bad_row=options.on_bad_row) as prompts:
        return BorrowedText(prompts.conversations(), seed=seed, unique=True)


def _shortened(value: Any, limit: int = 2_000) -> Any:
    """A body for the manifest: long texts and lists cut, with their length said."""
    if isinstance(value, str) and len(value) > limit:
        return f"{value[:limit]}… ({len(value)} characters)"
    if isinstance(value, list):
        shown = [_shortened(item, limit) for item in value[:64]]
        return [*shown, f"… ({len(value)} items)"] if len(value) > len(shown) else shown
    if isinstance(value, dict):
        return {key: _shortened(item, limit) for key, item in value.items()}
    return value
