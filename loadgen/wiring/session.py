"""What the runs of one command share: the target as it answered, the data as it was checked, and the seed."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

from loadgen.adapters.http.destination import Destination
from loadgen.adapters.servers.cache import reset_prefix_cache
from loadgen.adapters.servers.generic import TargetFacts
from loadgen.core.errors import ConfigError
from loadgen.core.metrics.slo import parse_slo
from loadgen.core.request import RequestTemplate, Sampling
from loadgen.core.run import Target
from loadgen.core.server.sample import GPU_SOURCE
from loadgen.options.load import CommonOptions
from loadgen.wiring.probe import Pages, check_local_gpus, pages_of
from loadgen.wiring.target import ask_target, controlled, destination_of
from loadgen.wiring.workload import ReadProgress, Workload, beyond_context, open_workload

_COUNTS_BY_USAGE = frozenset({"vllm"})
_COUNTS_BY_IDS = frozenset({"sglang"})
_WITHOUT_SALT = frozenset({"llamacpp"})
_RANDOM_SALT = "random"
_SALT_BYTES = 8
_OF_THIS_MACHINE = "of this machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Everything that was settled before the first run. `pages` are the metrics pages that are read beside each."""

    options: CommonOptions
    destination: Destination
    facts: TargetFacts
    workload: Workload
    template: RequestTemplate
    pages: Pages
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
    def secrets(self) -> tuple[str, ...]:
        """What must not be stored."""
        return tuple(
            dict.fromkeys(chain(self.destination.secrets, *(page.destination.secrets for page in self.pages.values())))
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
        local = {GPU_SOURCE: _OF_THIS_MACHINE} if self.options.local_gpus else {}
        return asdict(self.facts) | {"pages": {source: page.url for source, page in self.pages.items()} | local}

    def run_template(self) -> RequestTemplate:
        """What all requests of one run share: the salt of the prefix cache is drawn anew for each."""
        salt = self.options.cache_salt
        if salt is None:
            return self.template
        word = secrets.token_hex(_SALT_BYTES) if salt == _RANDOM_SALT else salt
        return replace(self.template, extra_body={**self.template.extra_body, "cache_salt": word})

    async def reset_cache(self) -> None:
        """Has the prefix cache emptied if that was asked for. Raises TargetError when the server does not."""
        path = self.facts.cache_reset_path
        if self.options.reset_prefix_cache and path is not None:
            async with controlled(self.destination) as control:
                await reset_prefix_cache(control, path)

    def stored_options(self) -> dict[str, Any]:
        """The resolved options as strict JSON, without secrets: header values are left out, only their names stay."""
        stored = self.options.model_dump(mode="json")
        stored["url"] = self.destination.url
        stored["header"] = sorted(self.options.header)
        stored["metrics_url"] = [page.url for source, page in self.pages.items() if source != GPU_SOURCE]
        stored["gpu_metrics_url"] = self.pages[GPU_SOURCE].url if GPU_SOURCE in self.pages else None
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
        yield session_over(workload, options, destination=destination, facts=facts, seed=seed)
    finally:
        workload.close()


def session_over(
    workload: Workload, options: CommonOptions, *, destination: Destination, facts: TargetFacts, seed: int
) -> Session:
    """A session with a target that was asked already. Raises ConfigError for what the options ask in vain of it."""
    _check_cache_options(options, facts)
    check_local_gpus(options)
    return Session(
        options=options,
        destination=destination,
        facts=facts,
        workload=workload,
        template=_template(options, facts),
        pages=pages_of(options, facts, destination),
        seed=seed,
    )


def _check_cache_options(options: CommonOptions, facts: TargetFacts) -> None:
    if options.reset_prefix_cache and facts.cache_reset_path is None:
        raise ConfigError(
            "--reset-prefix-cache: the server has no endpoint for it. vLLM has one in its development mode"
            " (VLLM_SERVER_DEV_MODE=1), SGLang always; --cache-salt does without"
        )
    if options.cache_salt is not None and facts.engine in _WITHOUT_SALT:
        raise ConfigError(f"--cache-salt: {facts.engine} does not know it, and would share its cache as before")


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
        extra_body=_asks_acceptance(facts) | options.extra_body,
    )


def _asks_acceptance(facts: TargetFacts) -> dict[str, Any]:
    """What SGLang must be asked for to tell each answer's acceptance; others do so as they are set up."""
    return {"return_spec_tokens_details": True} if facts.engine == "sglang" and facts.speculation is not None else {}
