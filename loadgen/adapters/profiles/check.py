"""What is wrong with a profile that can be read: options that its version lacks, footings that are not equal."""

import re
from collections.abc import Iterator, Sequence

from loadgen.adapters.profiles.check_vllm import vllm_objections
from loadgen.adapters.profiles.command import command_line
from loadgen.adapters.profiles.files import ProfileFile
from loadgen.adapters.profiles.model import Profile
from loadgen.adapters.profiles.objection import Objection, at
from loadgen.core.errors import ConfigError

_ARGUMENTS_ELSEWHERE = {
    **dict.fromkeys(("host", "port"), "port"),
    **dict.fromkeys(("model", "model-path", "served-model-name", "alias"), "model"),
    **dict.fromkeys(("hf-repo",), "weights"),
    **dict.fromkeys(("tensor-parallel-size", "tp-size", "tp"), "gpus"),
}
_SPECULATIVE = re.compile(r"spec(ulative)?-|model-draft|hf-repo-draft|draft(-|$)")
_LOSSY_THRESHOLDS = ("speculative-accept-threshold-single", "speculative-accept-threshold-acc")


def objections(found: ProfileFile, others: Sequence[ProfileFile] = ()) -> tuple[Objection, ...]:
    """All there is to say against a profile; `others` are those that its baseline is looked for among."""
    return tuple(_objections(found, others))


def differences(one: Profile, other: Profile) -> tuple[str, ...]:
    """In what, apart from speculation, two servers are not the same, down to their command lines."""
    return tuple(_differences(one, other))


def _objections(found: ProfileFile, others: Sequence[ProfileFile]) -> Iterator[Objection]:
    profile = found.profile
    if profile.image is None:
        return
    for name in profile.arguments:
        if name in _ARGUMENTS_ELSEWHERE:
            yield at(found, f"this stands under {_ARGUMENTS_ELSEWHERE[name]!r}", "arguments", name)
        elif _SPECULATIVE.match(name):
            yield at(found, "speculation stands under 'speculation'", "arguments", name)
    try:
        command_line(profile, host="", port="")
    except ConfigError as error:
        yield at(found, str(error), "speculation", "method")
        return
    match profile.engine:
        case "vllm":
            yield from vllm_objections(found)
        case "sglang":
            yield from _sglang(found)
        case "llamacpp":
            yield from _llamacpp(found)
    if profile.speculation is not None and found.baseline is None:
        yield from _baseline(found, others)


def _sglang(found: ProfileFile) -> Iterator[Objection]:
    profile = found.profile
    if profile.arguments.get("enable-metrics") is not True:
        yield at(found, "without enable-metrics it tells nothing of its drafts", "arguments", fatal=False)
    if profile.speculation is None:
        return
    for key, value in profile.speculation.config.items():
        dashed = key.replace("_", "-")
        if dashed in _LOSSY_THRESHOLDS and value != 1:
            yield at(
                found,
                "lossy: below 1 drafts are kept that the model would not have written",
                *("speculation", "config", key),
            )


def _llamacpp(found: ProfileFile) -> Iterator[Objection]:
    speculation = found.profile.speculation
    for key in {} if speculation is None else speculation.config:
        if not key.startswith("spec_"):
            text = "llama.cpp's options of speculation begin with spec-; --draft and its like are gone"
            yield at(found, text, "speculation", "config", key)


def _baseline(found: ProfileFile, others: Sequence[ProfileFile]) -> Iterator[Objection]:
    """Against a profile that stands for itself and speculates: whether it has an equal without speculation."""
    profile = found.profile
    family = [
        other.profile
        for other in others
        if other.profile.speculation is None
        and (other.profile.engine, other.profile.model) == (profile.engine, profile.model)
        and other.profile.image is not None
    ]
    if not family:
        yield at(
            found,
            "no profile of this engine and model without speculation: nothing to compare it with",
            "speculation",
            fatal=False,
        )
        return
    nearest = min(family, key=lambda other: len(differences(profile, other)))
    unlike = differences(profile, nearest)
    if unlike:
        yield at(
            found,
            f"differs from {nearest.name} in more than speculation: {'; '.join(unlike)}."
            f" `baseline: {nearest.name}` in place of all that would keep them equal",
            "name",
        )


def _differences(one: Profile, other: Profile) -> Iterator[str]:
    for name in ("engine", "image", "model", "weights", "gpus", "shared_memory", "port", "packages"):
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs:
            yield f"{name} {_shown(mine)} and {_shown(theirs)}"
    for title, mine, theirs in (
        ("", one.environment, other.environment),
        ("--", one.arguments, other.arguments),
    ):
        for name in dict.fromkeys((*mine, *theirs)):
            if mine.get(name) != theirs.get(name):
                yield f"{title}{name} {_shown(mine.get(name))} and {_shown(theirs.get(name))}"


def _shown(value: object) -> str:
    return "none" if value in (None, []) else str(value)
