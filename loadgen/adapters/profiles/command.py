"""From a profile to the command line of its server, in the words of its engine."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from loadgen.adapters.profiles.model import DraftMethod, EngineName, Profile, ProfileSpeculation
from loadgen.adapters.profiles.values import Argument
from loadgen.core.errors import ConfigError

Parts = Iterator[tuple[str, ...]]
"""An option with its values at a time."""

_SGLANG_ALGORITHMS: Mapping[DraftMethod, str] = {
    DraftMethod.NGRAM: "NGRAM",
    DraftMethod.DRAFT_MODEL: "STANDALONE",
    DraftMethod.EAGLE: "EAGLE",
    DraftMethod.EAGLE3: "EAGLE3",
    DraftMethod.MTP: "NEXTN",
    DraftMethod.DFLASH: "DFLASH",
    DraftMethod.DSPARK: "DSPARK",
}
_LLAMACPP_TYPES: Mapping[DraftMethod, str] = {
    DraftMethod.NGRAM: "ngram-simple",
    DraftMethod.DRAFT_MODEL: "draft-simple",
    DraftMethod.EAGLE3: "draft-eagle3",
    DraftMethod.MTP: "draft-mtp",
    DraftMethod.DFLASH: "draft-dflash",
    DraftMethod.DSPARK: "draft-dspark",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """What starts a server: the program, its options in their order, and what is added to its environment.

    Values of the environment hold `${NAME}` as the profile does.
    """

    program: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...]
    environment: Mapping[str, str]

    @property
    def options(self) -> tuple[str, ...]:
        """Everything behind the program, one argument each."""
        return tuple(chain.from_iterable(self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forcing:
    """What makes a server accept by force: options that replace those of the same name, and variables."""

    parts: tuple[tuple[str, ...], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def command_line(profile: Profile, *, host: str, port: str, forced_length: float | None = None) -> CommandLine:
    """The server of a profile, listening there; with `forced_length` its steps emit as many tokens, by force.

    Raises ConfigError for a profile that no engine could serve.
    """
    if profile.image is None:
        raise ConfigError(f"{profile.name}: a simulated server; `loadgen sim --profile {profile.name}` starts it")
    if profile.engine not in _ENGINES:
        raise ConfigError(
            f"{profile.name}: {profile.engine} takes its speculation from a file of its own; give an arm its command"
        )
    program, parts_of = _ENGINES[profile.engine]
    parts = tuple(parts_of(profile, host, port))
    if forced_length is None:
        return CommandLine(program=program, parts=parts, environment=profile.environment)
    _check_forced(profile, forced_length)
    forcing = forcing_of(profile, f"{forced_length:g}")
    replaced = {part[0] for part in forcing.parts}
    return CommandLine(
        program=program,
        parts=(*(part for part in parts if part[0] not in replaced), *forcing.parts),
        environment={**profile.environment, **forcing.environment},
    )


def forcing_of(profile: Profile, length: str) -> Forcing:
    """What forces the acceptance length of a profile that speculates; `length` is written as it is.

    vLLM's options may also be given behind its own: of two it takes the last.
    """
    assert profile.speculation is not None
    match profile.engine:
        case "vllm":
            config = _vllm_config(profile.speculation) | {"rejection_sample_method": "synthetic"}
            text = f'{_json(config).removesuffix("}")},"synthetic_acceptance_length":{length}}}'
            return Forcing(parts=(("--speculative-config", text),))
        case "sglang":
            return Forcing(environment={"SGLANG_SIMULATE_ACC_LEN": length})
        case "llamacpp":
            return Forcing(parts=(("--spec-synth-len", length),))
        case _:
            raise ConfigError(f"{profile.name}: {profile.engine} is not started by a profile")


def _check_forced(profile: Profile, length: float) -> None:
    if profile.speculation is None:
        raise ConfigError(f"{profile.name}: does not speculate, so there is no acceptance to force")
    most = profile.speculation.draft_tokens + 1
    if not 1 <= length <= most:
        raise ConfigError(f"{profile.name}: expected a forced acceptance length from 1 to {most}, got {length:g}")


def _vllm(profile: Profile, host: str, port: str) -> Parts:
    yield (profile.weights or profile.model,)
    if profile.weights is not None:
        yield "--served-model-name", profile.model
    yield "--host", host
    yield "--port", port
    if profile.gpus > 1:
        yield "--tensor-parallel-size", str(profile.gpus)
    yield from _options(profile.arguments)
    if profile.speculation is not None:
        yield "--speculative-config", _json(_vllm_config(profile.speculation))


def _vllm_config(speculation: ProfileSpeculation) -> dict[str, Any]:
    config: dict[str, Any] = {"method": speculation.method.value}
    if speculation.model is not None:
        config["model"] = speculation.model
    config["num_speculative_tokens"] = speculation.draft_tokens
    if speculation.draft_tokens_by_batch:
        config["num_speculative_tokens_per_batch_size"] = speculation.draft_tokens_by_batch
    return config | speculation.config


def _sglang(profile: Profile, host: str, port: str) -> Parts:
    yield "--model-path", profile.weights or profile.model
    yield "--served-model-name", profile.model
    yield "--host", host
    yield "--port", port
    if profile.gpus > 1:
        yield "--tp-size", str(profile.gpus)
    yield from _options(profile.arguments)
    speculation = profile.speculation
    if speculation is None:
        return
    yield "--speculative-algorithm", _word_for(profile, _SGLANG_ALGORITHMS)
    if speculation.model is not None:
        yield "--speculative-draft-model-path", speculation.model
    if speculation.method is DraftMethod.NGRAM:
        yield "--speculative-num-draft-tokens", str(speculation.draft_tokens)
    else:  # a chain: as many steps as drafts, and the tokens of a verification are one more
        yield "--speculative-num-steps", str(speculation.draft_tokens)
        yield "--speculative-eagle-topk", "1"
        yield "--speculative-num-draft-tokens", str(speculation.draft_tokens + 1)
    yield from _options({name.replace("_", "-"): value for name, value in speculation.config.items()})


def _llamacpp(profile: Profile, host: str, port: str) -> Parts:
    yield _gguf(profile.weights or profile.model, file="--model", repository="--hf-repo")
    yield "--alias", profile.model
    yield "--host", host
    yield "--port", port
    yield from _options(profile.arguments)
    speculation = profile.speculation
    if speculation is None:
        return
    yield "--spec-type", _word_for(profile, _LLAMACPP_TYPES)
    if speculation.model is not None:
        yield _gguf(speculation.model, file="--spec-draft-model", repository="--spec-draft-hf")
    longest = "--spec-ngram-simple-size-m" if speculation.method is DraftMethod.NGRAM else "--spec-draft-n-max"
    yield longest, str(speculation.draft_tokens)
    yield from _options({name.replace("_", "-"): value for name, value in speculation.config.items()})


_ENGINES: Mapping[EngineName, tuple[tuple[str, ...], Callable[[Profile, str, str], Parts]]] = {
    "vllm": (("vllm", "serve"), _vllm),
    "sglang": (("python3", "-m", "sglang.launch_server"), _sglang),
    "llamacpp": (("llama-server",), _llamacpp),
}


def _gguf(weights: str, *, file: str, repository: str) -> tuple[str, str]:
    return (file if weights.endswith(".gguf") else repository), weights


def _word_for(profile: Profile, words: Mapping[DraftMethod, str]) -> str:
    speculation = profile.speculation
    assert speculation is not None
    if speculation.method not in words:
        raise ConfigError(
            f"{profile.name}: {profile.engine} does not draft by {speculation.method}; it knows {', '.join(words)}"
        )
    if speculation.draft_tokens_by_batch:
        raise ConfigError(f"{profile.name}: {profile.engine} has no draft length by batch size")
    return words[speculation.method]


def _options(arguments: Mapping[str, Argument]) -> Parts:
    """Long options: true and false as `--x` and `--no-x`, lists as several values, mappings as JSON."""
    for name, value in arguments.items():
        match value:
            case bool():
                yield (f"--{name}" if value else f"--no-{name}",)
            case list():
                yield (f"--{name}", *map(str, value))
            case dict():
                yield f"--{name}", _json(value)
            case _:
                yield f"--{name}", str(value)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
