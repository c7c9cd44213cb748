"""What the runs of one command share: the target as it answered, the data as it was checked, and the seed."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

from loadgen.adapters.clock import MonotonicClock
from loadgen.adapters.http.control import control_client
from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.httpx_transport import HttpxTransport
from loadgen.adapters.http.native import NativeTransport
from loadgen.adapters.servers.generic import TargetFacts
from loadgen.adapters.servers.tokens import TokenProbe
from loadgen.core.metrics.slo import parse_slo
from loadgen.core.request import RequestTemplate, Sampling
from loadgen.core.run import LoadMode, Target
from loadgen.engine.ports import ServerProbe, Timeouts, Transport
from loadgen.options.load import CommonOptions
from loadgen.wiring.target import ask_target, destination_of
from loadgen.wiring.workload import ReadProgress, Workload, beyond_context, open_workload

_SPARES = 8
_GATHER_S = 0.0009
_COUNTS_BY_USAGE = frozenset({"vllm"})
_COUNTS_BY_IDS = frozenset({"sglang"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Everything that was settled before the first run."""

    options: CommonOptions
    destination: Destination
    facts: TargetFacts
    workload: Workload
    template: RequestTemplate
    seed: int

    @property
    def target(self) -> Target:
        """The target for manifest and summary."""
        return Target(
            url=self.destination.url,
            endpoint=self.options.endpoint.value,
            model=self.facts.model,
            engine=self.facts.engine,
            engine_version=self.facts.engine_version,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know before they read the result."""
        return (*self.destination.notices, *beyond_context(self.workload, self.facts.max_model_len))

    @property
    def slo(self) -> dict[str, float]:
        """Objectives in seconds by metric."""
        return parse_slo(self.options.slo) if self.options.slo is not None else {}

    @property
    def server_facts(self) -> dict[str, Any]:
        """What the server said of itself before the run."""
        return {"scraped": False, **asdict(self.facts)}

    def transport(self, clock: MonotonicClock, mode: LoadMode) -> Transport:
        """A transport of its own for one run.

        An open loop keeps connections ready and wakes for every read, since its next request is due when it is due; a
        closed loop gathers reads, which costs it nothing but fractions of a millisecond between requests.
        """
        options = self.options
        timeouts = Timeouts(connect_s=options.connect_timeout, idle_s=options.idle_timeout, total_s=options.timeout)
        path = "/v1" + options.endpoint.path
        if options.transport == "httpx":
            return HttpxTransport(
                self.destination, clock, path=path, timeouts=timeouts, http2=options.http2, proxy=options.proxy
            )
        closed = mode is LoadMode.CONCURRENCY
        return NativeTransport(
            self.destination,
            clock,
            path=path,
            timeouts=timeouts,
            spares=0 if closed else _SPARES,
            gather_s=_GATHER_S if closed else 0.0,
        )

    def probe(self) -> ServerProbe | None:
        """A reader of the server's token counters, where it has a metrics page of a known engine."""
        engine, path = self.facts.engine, self.facts.metrics_path
        if engine is None or path is None or not TokenProbe.knows(engine):
            return None
        return TokenProbe(
            lambda: control_client(self.destination),
            self.destination.request_target(path),
            engine=engine,
            model=self.facts.model,
        )

    def stored_options(self) -> dict[str, Any]:
        """The resolved options as strict JSON, without secrets: header values are left out, only their names stay."""
        stored = self.options.model_dump(mode="json")
        stored["url"] = self.destination.url
        stored["header"] = sorted(self.options.header)
        stored["proxy"] = None if self.options.proxy is None else "given"
        stored["seed"] = self.seed
        return stored


@asynccontextmanager
async def open_session(options: CommonOptions, *, progress: ReadProgress | None = None) -> AsyncIterator[Session]:
    """Checks options, data and target, in this order; raises before any load is sent when one of them will not do."""
    destination = destination_of(options)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    workload = open_workload(options, seed=seed, progress=progress)
    try:
        facts = await ask_target(destination, options)
        yield Session(
            options=options,
            destination=destination,
            facts=facts,
            workload=workload,
            template=_template(options, facts),
            seed=seed,
        )
    finally:
        workload.close()


def _template(options: CommonOptions, facts: TargetFacts) -> RequestTemplate:
    counts = options.tokens_per_event
    if counts == "auto":
        # Continuous usage costs a few bytes an event; token ids put the whole prompt's ids into the first one.
        counts = "usage" if facts.engine in _COUNTS_BY_USAGE else "ids" if facts.engine in _COUNTS_BY_IDS else "off"
    return RequestTemplate(
        endpoint=options.endpoint,
        model=facts.model,
        sampling=Sampling(temperature=options.temperature, ignore_eos=options.ignore_eos),
        max_output_tokens=options.max_tokens,
        stream=options.stream,
        continuous_usage=counts == "usage" and options.stream,
        return_token_ids=counts == "ids" and options.stream,
        extra_body=options.extra_body,
    )
