"""What `doctor` looks at: this machine, this client's transports against a known-truth server, and a target."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from loadgen.adapters.clock import MonotonicClock
from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.httpx_transport import HttpxTransport
from loadgen.adapters.http.native import NativeTransport
from loadgen.adapters.servers.generic import TargetFacts
from loadgen.adapters.store.files import Scrubber
from loadgen.core.errors import ConfigError, LoadgenError, TargetError
from loadgen.core.request import Endpoint
from loadgen.engine.ports import Timeouts, Transport
from loadgen.options.doctor import DoctorOptions
from loadgen.sim.check import Check
from loadgen.sim.machine import check_machine
from loadgen.sim.self_check import HTTPX_LIMITS, NATIVE_LIMITS, Limits, TransportFactory, check_transport
from loadgen.sim.truth import TruthServer, spawn_truth_server
from loadgen.wiring.target import ask_target, destination_of

_SPARES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """All that was looked at. `reached` is None when no target was given."""

    checks: tuple[Check, ...]
    reached: bool | None = None

    @property
    def passed(self) -> bool:
        """Whether every required check did."""
        return all(check.ok for check in self.checks if check.required)


async def examine(options: DoctorOptions, *, tell: Callable[[str], None]) -> Examination:
    """Looks at everything that the options ask for; `tell` is called before each part with a word for people.

    Raises ConfigError for options that will not do and InternalError when this client cannot be driven at all. A
    target that cannot be used is a failed check.
    """
    destination = None if options.url is None else destination_of(options)
    checks: list[Check] = []
    if options.transport != "none":
        tell("this machine")
        checks += await check_machine()
        with spawn_truth_server() as truth:
            for name, (make, limits) in _transports(truth).items():
                if options.transport in (name, "both"):
                    tell(f"the {name} transport against a known-truth server")
                    checks += await check_transport(name, make, truth, limits)
    if destination is None:
        return Examination(checks=tuple(checks))
    tell(destination.url)
    scrubber = Scrubber(destination.secrets)
    try:
        facts = await ask_target(destination, options, try_requests=True)
    except TargetError as fault:
        checks.append(_unusable("target.reachable", fault, scrubber))
        return Examination(checks=tuple(checks), reached=False)
    except ConfigError as fault:
        checks.append(_unusable("target.model", fault, scrubber))
        return Examination(checks=tuple(checks), reached=True)
    checks += target_checks(facts, options.endpoint, scrubber)
    return Examination(checks=tuple(checks), reached=True)


def _unusable(name: str, fault: LoadgenError, scrubber: Scrubber) -> Check:
    return Check(name=name, ok=False, value=None, advice=scrubber.text(str(fault)))


def target_checks(facts: TargetFacts, endpoint: Endpoint, scrubber: Scrubber) -> list[Check]:
    """What a target can do, as checks. Streaming is required; without the others a run measures less."""
    can = facts.capabilities

    def ability(name: str, found: bool | None, meaning: str, *, required: bool = False) -> Check:
        refusal = facts.refusals.get(name)
        advice = meaning if refusal is None else f"{meaning} (the server: {scrubber.text(refusal)})"
        return Check(
            name=f"target.{name}", ok=found is not False, value=found, limit=True, required=required, advice=advice
        )

    def told(name: str, value: str | int | bool | None) -> Check:
        return Check(name=f"target.{name}", ok=True, value=value, required=False)

    checks = [
        Check(name="target.reachable", ok=True, value=True, limit=True),
        told("model", facts.model),
        told("engine", facts.engine),
        told("engine_version", facts.engine_version),
        told("max_model_len", facts.max_model_len),
        Check(
            name="target.healthy",
            ok=facts.healthy is not False,
            value=facts.healthy,
            limit=True,
            advice="the server's own health page says that it is not well",
        ),
        ability("streaming", can.streaming, "without streams only whole-answer latency can be measured", required=True),
        ability("usage_in_stream", can.usage_in_stream, "output tokens will not be counted by the server"),
    ]
    if endpoint is not Endpoint.RESPONSES:
        checks += [
            ability("continuous_usage", can.continuous_usage, "tokens of each event are not told this way"),
            ability("token_ids", can.token_ids, "tokens of each event are not told this way"),
            ability("logprobs", can.logprobs, "tokens of each event are not told this way"),
        ]
    checks += [told(name, value) for name, value in _setup(facts)]
    checks.append(
        Check(
            name="target.acceptance",
            ok=can.acceptance is not False,
            value=can.acceptance,
            required=False,
            advice="acceptance of each request will not be told (vLLM: --per-request-spec-decode-metrics detailed)",
        )
    )
    checks.append(
        Check(
            name="target.metrics",
            ok=facts.metrics_path is not None,
            value=facts.metrics_path,
            required=False,
            advice="the server's own counters cannot be read beside a run",
        )
    )
    return checks


def _setup(facts: TargetFacts) -> Iterator[tuple[str, str | int | bool | None]]:
    """What the server said of its configuration, as far as it said anything."""
    speculation, configuration = facts.speculation, facts.configuration
    if configuration is not None:
        yield "speculates", configuration.speculates
    if speculation is not None:
        yield "speculation.method", speculation.method
        yield "speculation.draft_tokens", speculation.draft_tokens
        yield "speculation.forced", speculation.forced
        yield "speculation.lossy", None if speculation.lossy is None else ", ".join(speculation.lossy) or False
    if configuration is not None:
        yield "prefix_caching", configuration.prefix_caching
        yield "max_num_seqs", configuration.max_num_seqs
    yield "cache_reset", facts.cache_reset_path


def _transports(truth: TruthServer) -> dict[str, tuple[TransportFactory, Limits]]:
    destination = Destination.from_url(truth.url)
    path = f"/v1{Endpoint.CHAT.path}"

    def native(clock: MonotonicClock, timeouts: Timeouts) -> Transport:
        return NativeTransport(destination, clock, timeouts=timeouts, path=path, spares=_SPARES)

    def httpx(clock: MonotonicClock, timeouts: Timeouts) -> Transport:
        return HttpxTransport(destination, clock, timeouts=timeouts, path=path)

    return {"native": (native, NATIVE_LIMITS), "httpx": (httpx, HTTPX_LIMITS)}
