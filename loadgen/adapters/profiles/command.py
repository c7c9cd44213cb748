"""From a profile to the command line of its server, in the words of its engine."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from loadgen.adapters.profiles.model import REFERENCE, Argument, DraftMethod, EngineName, Profile
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

    def environment_from(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The environment with what `variables` hold; what may be missing and is, is left out.

        Raises ConfigError for one that has to be there.
        """
        found: dict[str, str] = {}
        for name, text in self.environment.items():
            missing = [match for match in REFERENCE.finditer(text) if not variables.get(match[1])]
            for match in missing:
                if match[2] is None:
                    raise ConfigError(f"the profile names ${{{match[1]}}}, and this environment variable is not set")
            if not missing or REFERENCE.fullmatch(text) is None:
                found[name] = REFERENCE.sub(lambda match: variables.get(match[1], ""), text)
        return found


def command_line(profile: Profile, *, host: str, port: str, forced_length: float | None = None) -> CommandLine:
    """The server of a profile, listening there; with `forced_length` every step emits as many tokens, by force.

    Raises ConfigError for a profile that no engine could serve.
    """
    if profile.image is None:
        raise ConfigError(f"{profile.name}: a simulated server; `loadgen sim --profile {profile.name}` starts it")
    if forced_length is not None:
        _check_forced(profile, forced_length)
    engine = _ENGINES.get(profile.engine)
    if engine is None:
        raise ConfigError(
            f"{profile.name}: {profile.engine} takes its speculation from a file of its own; give an arm its command"
        )
    program, parts = engine
    environment = dict(profile.environment)
    if forced_length is not None and profile.engine == "sglang":
        environment["SGLANG_SIMULATE_ACC_LEN"] = f"{forced_length:g}"
    return CommandLine(program=program, parts=tuple(parts(profile, host, port, forced_length)), environment=environment)


def _check_forced(profile: Profile, length: float) -> None:
    if profile.speculation is None:
        raise ConfigError(f"{profile.name}: does not speculate, so there is no acceptance to force")
    most = profile.speculation.draft_tokens + 1
    if not 1 <= length <= most:
        raise ConfigError(f"{profile.name}: expected a forced acceptance length from 1 to {most}, got {length:g}")


def _vllm(profile: Profile, host: str, port: str, forced_length: float | None) -> Parts:
    yield (profile.weights or profile.model,)
    if profile.weights is not None:
        yield "--served-model-name", profile.model
    yield "--host", host
    yield "--port", port
    if profile.gpus > 1:
        yield "--tensor-parallel-size", str(profile.gpus)
    yield from _options(profile.arguments)
    speculation = profile.speculation
    if speculation is None:
        return
    config: dict[str, object] = {"method": speculation.method.value}
    if speculation.model is not None:
        config["model"] = speculation.model
    config["num_speculative_tokens"] = speculation.draft_tokens
    if speculation.draft_tokens_by_batch:
        config["num_speculative_tokens_per_batch_size"] = [list(each) for each in speculation.draft_tokens_by_batch]
    config |= speculation.config
    if forced_length is not None:
        config |= {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": forced_length}
    yield "--speculative-config", _json(config)


def _sglang(profile: Profile, host: str, port: str, forced_length: float | None) -> Parts:
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


def _llamacpp(profile: Profile, host: str, port: str, forced_length: float | None) -> Parts:
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
    if forced_length is not None:
        yield "--spec-synth-len", f"{forced_length:g}"


_ENGINES = {
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
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def knows(engine: EngineName, method: DraftMethod) -> bool:
    """Whether an engine has a word for the method."""
    words: Mapping[EngineName, Mapping[DraftMethod, str]] = {"sglang": _SGLANG_ALGORITHMS, "llamacpp": _LLAMACPP_TYPES}
    return engine not in words or method in words[engine]
