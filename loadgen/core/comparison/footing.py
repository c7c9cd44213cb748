"""Equal footing: whether two servers are set up alike, but for what they are compared for."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from loadgen.core.experiment.plan import PlannedArm, Role
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration

_MEASURED_APART_RATIO = 0.02  # what is made of the memory that is free at a start differs a little from start to start


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server as it told of itself; None for what it does not tell. `page` is its own account, as it came."""

    engine: str | None = None
    engine_version: str | None = None
    model: str | None = None
    configuration: ServerConfiguration | None = None
    speculation: SpeculationConfiguration | None = None
    page: dict[str, Any] | None = None


class Standing(StrEnum):
    """What a difference between two servers is.

    `compared` is what they are compared for, `consequence` what an engine settles by itself because of that, `start`
    what is another at every start. `unequal` is a reason of its own for one of them to be faster.
    """

    COMPARED = "compared"
    CONSEQUENCE = "consequence"
    START = "start"
    UNEQUAL = "unequal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A setting in which the servers differ: our name of it, or keys of the servers' own page joined by dots.

    `reason` says why it is not held against the comparison; an unequal one has none.
    """

    setting: str
    baseline: Any
    arm: Any
    standing: Standing
    reason: str | None = None

    def __str__(self) -> str:
        return f"{self.setting} is {_shown(self.arm)}, at the baseline {_shown(self.baseline)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Footing:
    """An arm's server against the baseline's.

    `unverified` are the settings that one of the two does not tell. `surprises` say in words where the server is not
    what the experiment takes it for.
    """

    differences: tuple[Difference, ...]
    unverified: tuple[str, ...]
    surprises: tuple[str, ...]

    @property
    def objections(self) -> tuple[str, ...]:
        """What speaks against a comparison, in words."""
        return (*self.surprises, *(str(each) for each in self.of(Standing.UNEQUAL)))

    def of(self, standing: Standing) -> tuple[Difference, ...]:
        """The differences of one kind."""
        return tuple(each for each in self.differences if each.standing is standing)


def footing(baseline: Served, arm: Served, planned: PlannedArm) -> Footing:
    """How the server of an arm stands to that of the baseline. Of another start of the baseline nothing may differ."""
    settings = dict(_told(baseline)), dict(_told(arm))
    pages = baseline.page is not None and arm.page is not None and baseline.engine == arm.engine
    if pages:
        for told, server in zip(settings, (baseline, arm), strict=True):
            told |= {name: value for name, value in _flat(server.page, ()).items() if name not in told}
    unverified = tuple(name for name in _unverified(baseline, arm) if not (pages and name in _NONE_MEANS_NONE))
    apart = [
        name
        for name in dict.fromkeys((*settings[0], *settings[1]))
        if settings[0].get(name) != settings[1].get(name) and name not in unverified
    ]
    rules = _rules(planned, apart)
    differences = [_difference(name, settings[0].get(name), settings[1].get(name), rules) for name in apart]
    return Footing(differences=tuple(differences), unverified=unverified, surprises=tuple(_surprises(arm, planned)))


_SETTINGS = tuple(field.name for field in fields(ServerConfiguration) if field.name != "speculates")
_OF_VLLM = frozenset({"runner"})  # no other engine has a choice of them
_NONE_MEANS_NONE = frozenset({"quantization"})  # on a page that tells the whole configuration


def _told(server: Served) -> Iterator[tuple[str, Any]]:
    """All that has a name of ours."""
    yield "engine", server.engine
    yield "engine_version", server.engine_version
    yield "model", server.model
    configuration = server.configuration or ServerConfiguration()
    yield "speculates", configuration.speculates
    for name in _SETTINGS:
        yield name, getattr(configuration, name)
    for field in fields(SpeculationConfiguration):
        value = None if server.speculation is None else getattr(server.speculation, field.name)
        yield f"speculation.{field.name}", list(value) if isinstance(value, tuple) else value


def _unverified(baseline: Served, arm: Served) -> Iterator[str]:
    if baseline.engine is None or arm.engine is None:
        yield "engine"
    for name in _SETTINGS:
        both = [server.configuration or ServerConfiguration() for server in (baseline, arm)]
        if name in _OF_VLLM and baseline.engine != "vllm":
            continue
        if any(getattr(configuration, name) is None for configuration in both):
            yield name


def _surprises(server: Served, planned: PlannedArm) -> Iterator[str]:
    configuration, speculation = server.configuration, server.speculation
    speculates = None if configuration is None else configuration.speculates
    if planned.method is None and speculates is True:
        yield "the server speculates, of which the experiment says nothing"
    if planned.method is None or speculates is False:
        if planned.method is not None:
            yield f"the server does not speculate, and the experiment says that it does, by {planned.method}"
        return
    told = speculation or SpeculationConfiguration()
    if None not in (planned.draft_tokens, told.draft_tokens) and planned.draft_tokens != told.draft_tokens:
        yield f"the server drafts {told.draft_tokens} tokens, and the experiment says {planned.draft_tokens}"
    if planned.forced_length is None and told.forced is True:
        yield "the server's acceptance is forced, of which the experiment says nothing"
    if planned.forced_length is not None and told.forced is False:
        yield "the server's acceptance is not forced, and the experiment says that it is"
    if planned.forced_length is not None and told.forced_acceptance_length not in (None, planned.forced_length):
        yield (
            f"the server's acceptance is forced to {told.forced_acceptance_length:g} tokens a step, and the experiment"
            f" says {planned.forced_length}"
        )


def _flat(value: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """A page with the keys down to each value joined by dots; a list is a value."""
    if isinstance(value, Mapping):
        return {name: leaf for key, item in value.items() for name, leaf in _flat(item, (*keys, str(key))).items()}
    return {".".join(keys): value}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """What a difference in settings of such names is, where `holds` for the baseline's value and the arm's."""

    names: re.Pattern[str]
    standing: Standing
    reason: str
    holds: Callable[[Any, Any], bool] = lambda _baseline, _arm: True


def _close(baseline: Any, arm: Any) -> bool:
    numbers = isinstance(baseline, int | float) and isinstance(arm, int | float)
    return numbers and abs(baseline - arm) <= _MEASURED_APART_RATIO * max(abs(baseline), abs(arm))


def _lower(baseline: Any, arm: Any) -> bool:
    return isinstance(baseline, int | float) and isinstance(arm, int | float) and arm < baseline


def _switched_off(baseline: Any, arm: Any) -> bool:
    return baseline is True and arm is False


_CAPACITY = r"kv_blocks|.*\.(num_gpu_blocks|kv_cache_size_tokens|kv_cache_max_concurrency)|max_total_num_tokens"
_AT_EVERY_START = (
    _Rule(
        names=re.compile(
            r"vllm_config\.instance_id|vllm_env\.(VLLM_OBJECT_STORAGE_SHM_BUFFER_NAME|\w+_(PORT|HOST|HOST_IP))"
            r"|.*\b(host|port|nccl_port|dist_init_addr|pid|random_seed)"
            r"|default_generation_settings\.(id|id_task|is_processing|next_token(\..*)?)"
        ),
        standing=Standing.START,
        reason="each start has its own",
    ),
    _Rule(
        names=re.compile(_CAPACITY),
        standing=Standing.START,
        reason="measured from the memory that is free at the start",
        holds=_close,
    ),
)
_SPECULATION = _Rule(
    names=re.compile(
        r"speculates|speculation\..*|vllm_config\.speculative_config(\..*)?|speculative_.*|(.*\.)?speculative(\..*)?"
    ),
    standing=Standing.COMPARED,
    reason="what the arms are compared for",
)
_FOLLOWS = (
    _Rule(
        names=re.compile(_CAPACITY),
        standing=Standing.CONSEQUENCE,
        reason="weights and cache of the drafter take memory from the KV cache",
    ),
    _Rule(
        names=re.compile(r"vllm_config\.scheduler_config\.max_num_scheduled_tokens"),
        standing=Standing.CONSEQUENCE,
        reason="vLLM sets it where it drafts, so that the drafts of a step fit into it",
    ),
    _Rule(
        names=re.compile(r"vllm_config\.parallel_config\.disable_nccl_for_dp_synchronization"),
        standing=Standing.CONSEQUENCE,
        reason="vLLM derives it from the scheduling; it bears on data-parallel servers alone",
    ),
    _Rule(
        names=re.compile(r"vllm_config\.observability_config\.per_request_spec_decode_metrics"),
        standing=Standing.CONSEQUENCE,
        reason="vLLM refuses it at the start of a server without drafts",
    ),
    _Rule(
        names=re.compile(r"(vllm_config\.scheduler_config\.)?async_scheduling"),
        standing=Standing.CONSEQUENCE,
        reason="some methods cannot be scheduled ahead, and the engine switches that off for them",
        holds=_switched_off,
    ),
    _Rule(
        names=re.compile(r"disable_overlap_schedule"),
        standing=Standing.CONSEQUENCE,
        reason="SGLang switches scheduling ahead off for some methods",
    ),
    _Rule(
        names=re.compile(r"mem_fraction_static"),
        standing=Standing.CONSEQUENCE,
        reason="SGLang leaves room for the drafter",
    ),
    _Rule(
        names=re.compile(r"vllm_config\.compilation_config\.(cudagraph_capture_sizes|max_cudagraph_capture_size)"),
        standing=Standing.CONSEQUENCE,
        reason="vLLM rounds the sizes to whole steps of drafts",
    ),
    _Rule(
        names=re.compile(r"max_model_len|vllm_config\.model_config\.max_model_len"),
        standing=Standing.CONSEQUENCE,
        reason="the drafter's own limit is lower",
        holds=_lower,
    ),
    _Rule(
        names=re.compile(r"vllm_config\.model_config\.spec_target_max_model_len"),
        standing=Standing.CONSEQUENCE,
        reason="vLLM notes the target's limit where it drafts",
    ),
)


def _rules(planned: PlannedArm, apart: Sequence[str]) -> tuple[_Rule, ...]:
    """Those that hold for this arm: nothing follows from a speculation in which it does not differ."""
    if planned.role in (Role.BASELINE, Role.AGAIN):
        return _AT_EVERY_START
    if planned.method is None and not any(map(_SPECULATION.names.fullmatch, apart)):
        return _AT_EVERY_START
    return (*_AT_EVERY_START, _SPECULATION, *_FOLLOWS)


def _difference(setting: str, baseline: Any, arm: Any, rules: Sequence[_Rule]) -> Difference:
    for rule in rules:
        if rule.names.fullmatch(setting) and rule.holds(baseline, arm):
            return Difference(setting=setting, baseline=baseline, arm=arm, standing=rule.standing, reason=rule.reason)
    return Difference(setting=setting, baseline=baseline, arm=arm, standing=Standing.UNEQUAL)


def _shown(value: Any) -> str:
    return "not told" if value is None else str(value)
