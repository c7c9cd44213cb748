"""What is wrong with a profile that can be read: options that its version lacks, footings that are not equal."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from loadgen.adapters.profiles.command import command_line
from loadgen.adapters.profiles.files import ProfileFile
from loadgen.adapters.profiles.model import DraftMethod, Profile, image_tag
from loadgen.core.errors import ConfigError

Version = tuple[int, ...]

_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)")
_RUNNER = "VLLM_USE_V2_MODEL_RUNNER"

VLLM_SINCE: Mapping[DraftMethod, Version] = {
    DraftMethod.NGRAM: (0, 8),
    DraftMethod.EAGLE: (0, 8),
    DraftMethod.EAGLE3: (0, 9),
    DraftMethod.MTP: (0, 11, 1),
    DraftMethod.SUFFIX: (0, 11, 1),
    DraftMethod.DRAFT_MODEL: (0, 15),
    DraftMethod.DFLASH: (0, 27),
    DraftMethod.DSPARK: (0, 27),
}
"""From which version of vLLM's present engine on a method can be counted on."""

_ASYNCHRONOUS_NGRAM: Version = (0, 33)
"""Before this version of vLLM the second model runner, too, schedules synchronously when text is looked up."""

_FIELDS_OF_THEIR_OWN = {
    "method": "speculation.method",
    "model": "speculation.model",
    "num_speculative_tokens": "speculation.draft_tokens",
    "num_speculative_tokens_per_batch_size": "speculation.draft_tokens_by_batch",
}
_VLLM_KEYS = frozenset(
    (
        *("prompt_lookup_max", "prompt_lookup_min"),
        *("suffix_decoding_max_tree_depth", "suffix_decoding_max_cached_requests"),
        *("suffix_decoding_max_spec_factor", "suffix_decoding_min_token_prob"),
        *("draft_tensor_parallel_size", "use_heterogeneous_vocab", "parallel_drafting"),
        *("dspark_draft_topk", "enable_adaptive_verification", "index_share_for_mtp_iteration"),
        *("quantization", "moe_backend", "attention_backend", "kv_cache_dtype", "max_model_len"),
        *("revision", "code_revision", "enforce_eager", "draft_load_config", "draft_lm_head_quantization"),
        *("disable_padded_drafter_batch", "disable_eagle_block_drop", "disable_lookahead_block_hashes"),
        *("use_local_argmax_reduction", "draft_sample_method", "xpress_topc"),
        *("rejection_sample_method", "synthetic_acceptance_rates", "synthetic_acceptance_length"),
        *("fly_window_size", "fly_entropy_threshold", "fly_entropy_top_k"),
    )
)
"""Of the speculative configuration of vLLM 0.33, but for those that a profile has fields for."""

_VLLM_GONE = {
    "disable_by_batch_size": "gone from vLLM; speculation.draft_tokens_by_batch does what it did",
    "tensor_parallel_size": "vLLM calls it draft_tensor_parallel_size",
}
_NEEDS_RUNNER = {
    "0": ("parallel_drafting", "use_heterogeneous_vocab"),
    "1": ("xpress_topc", "enable_adaptive_verification", "draft_lm_head_quantization"),
}
_ARGUMENTS_ELSEWHERE = {
    **dict.fromkeys(("host", "port"), "port"),
    **dict.fromkeys(("model", "model-path", "served-model-name", "alias"), "model"),
    **dict.fromkeys(("hf-repo",), "weights"),
    **dict.fromkeys(("tensor-parallel-size", "tp-size", "tp"), "gpus"),
}
_SPECULATIVE = re.compile(r"spec(ulative)?-|model-draft|hf-repo-draft|draft(-|$)")
_LOSSY_THRESHOLDS = ("speculative-accept-threshold-single", "speculative-accept-threshold-acc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """Something about a profile. `fatal`: it would not start, or what it measures would not be what it claims."""

    where: str
    text: str
    fatal: bool = True


def objections(found: ProfileFile, others: Sequence[ProfileFile] = ()) -> tuple[Objection, ...]:
    """All there is to say against a profile; `others` are those that its baseline is looked for among."""
    return tuple(_objections(found, others))


def differences(one: Profile, other: Profile) -> tuple[str, ...]:
    """In what, apart from speculation, two servers are not the same, down to their command lines."""
    return tuple(_differences(one, other))


def version_of(profile: Profile) -> Version | None:
    """The version that the image's tag names."""
    tag = None if profile.image is None else image_tag(profile.image)
    match = None if tag is None else _VERSION.match(tag)
    return None if match is None else tuple(map(int, match[1].split(".")))


def _objections(found: ProfileFile, others: Sequence[ProfileFile]) -> Iterator[Objection]:
    profile = found.profile
    if profile.image is None:
        return
    for name in profile.arguments:
        if name in _ARGUMENTS_ELSEWHERE:
            yield _at(found, f"this stands under {_ARGUMENTS_ELSEWHERE[name]!r}", "arguments", name)
        elif _SPECULATIVE.match(name):
            yield _at(found, "speculation stands under 'speculation'", "arguments", name)
    try:
        command_line(profile, host="", port="")
    except ConfigError as error:
        yield _at(found, str(error), "speculation", "method")
        return
    match profile.engine:
        case "vllm":
            yield from _vllm(found)
        case "sglang":
            yield from _sglang(found)
    if profile.speculation is not None and found.baseline is None:
        yield from _baseline(found, others)


def _vllm(found: ProfileFile) -> Iterator[Objection]:
    profile = found.profile
    runner = profile.environment.get(_RUNNER)
    if profile.gpus and runner is None:
        yield _at(
            found,
            f"expected {_RUNNER}, 0 or 1: some methods change the model runner, and say so in the log alone",
            "environment",
        )
    for name, what in (
        ("max-model-len", "a drafter with a shorter one lowers it"),
        ("attention-backend", "the one that is chosen may differ with speculation"),
    ):
        if profile.gpus and name not in profile.arguments:
            yield _at(found, f"{name} is left open: {what}", "arguments", fatal=False)
    if profile.speculation is None:
        if "per-request-spec-decode-metrics" in profile.arguments:
            yield _at(
                found,
                "vLLM refuses this without speculation, so that no baseline can have it",
                *("arguments", "per-request-spec-decode-metrics"),
            )
        return
    yield from _vllm_method(found, profile, runner)
    yield from _vllm_config(found, profile, runner)
    yield from _vllm_limits(found, profile)


def _vllm_method(found: ProfileFile, profile: Profile, runner: str | None) -> Iterator[Objection]:
    speculation, version = profile.speculation, version_of(profile)
    assert speculation is not None
    method, since = speculation.method, VLLM_SINCE[speculation.method]
    if version is None:
        yield _at(
            found, f"the tag of {profile.image} names no version, so that methods are not checked", "image", fatal=False
        )
    elif version < since:
        words = ".".join(map(str, version)), ".".join(map(str, since))
        yield _at(found, f"vLLM {words[0]} does not know {method}; it takes {words[1]}", "speculation", "method")
    if method is DraftMethod.SUFFIX:
        if runner == "1":
            yield _at(
                found, f"suffix decoding takes the first model runner: expected {_RUNNER}: 0", "environment", _RUNNER
            )
        if not any(package.startswith("arctic-inference==") for package in profile.packages):
            yield _at(found, "suffix decoding takes the package arctic-inference", "packages")
        if speculation.config.get("suffix_decoding_max_cached_requests") != 0:
            yield _at(
                found,
                "answers of earlier requests, warm-up among them, become drafts of later ones unless"
                " suffix_decoding_max_cached_requests is 0",
                *("speculation", "config"),
                fatal=False,
            )
    if method is DraftMethod.DSPARK and runner == "0":
        yield _at(found, f"dspark takes the second model runner: expected {_RUNNER}: 1", "environment", _RUNNER)
    synchronous = method.value in ("ngram", "suffix") or speculation.config.get("disable_padded_drafter_batch")
    on_any_runner = version is not None and version < _ASYNCHRONOUS_NGRAM
    if synchronous and (runner == "0" or on_any_runner) and profile.arguments.get("async-scheduling") is not False:
        runners = "any" if on_any_runner else "the first"
        yield _at(
            found,
            f"on {runners} model runner {method} turns asynchronous scheduling off, which the baseline keeps:"
            " expected async-scheduling: false",
            "arguments",
        )
    if ranges := speculation.draft_tokens_by_batch:
        sequences, copies = profile.arguments.get("max-num-seqs"), profile.arguments.get("data-parallel-size", 1)
        if copies != 1:
            yield _at(found, "under data parallelism vLLM ignores this", "speculation", "draft_tokens_by_batch")
        if runner == "0" and method is DraftMethod.SUFFIX:
            yield _at(found, "with suffix decoding vLLM ignores this", "speculation", "draft_tokens_by_batch")
        if isinstance(sequences, int) and ranges[-1][1] < sequences:
            yield _at(
                found,
                f"ends at {ranges[-1][1]}, and the server takes {sequences} (max-num-seqs): the last range goes on",
                *("speculation", "draft_tokens_by_batch"),
                fatal=False,
            )


def _vllm_config(found: ProfileFile, profile: Profile, runner: str | None) -> Iterator[Objection]:
    speculation = profile.speculation
    assert speculation is not None
    for key, value in speculation.config.items():
        where = ("speculation", "config", key)
        if key in _FIELDS_OF_THEIR_OWN:
            yield _at(found, f"this stands under {_FIELDS_OF_THEIR_OWN[key]!r}", *where)
        elif key in _VLLM_GONE:
            yield _at(found, _VLLM_GONE[key], *where)
        elif key not in _VLLM_KEYS:
            close = get_close_matches(key, _VLLM_KEYS, n=1)
            yield _at(found, f"vLLM knows no such key{f'; did you mean {close[0]}?' if close else ''}", *where)
        elif key == "rejection_sample_method" and value == "fly":
            yield _at(found, "lossy: drafts are kept that the model would not have written", *where)
        elif key.startswith("synthetic_") or (key, value) == ("rejection_sample_method", "synthetic"):
            yield _at(found, "acceptance is forced, so that texts mean nothing: leave it to forced runs", *where)
        elif key == "draft_tensor_parallel_size" and value not in (1, profile.gpus):
            yield _at(found, f"expected 1 or as many as the server has, {profile.gpus}", *where)
        for needed, keys in _NEEDS_RUNNER.items():
            parallel = key == "parallel_drafting" and speculation.method.value in ("dflash", "dspark")
            if key in keys and value and runner not in (None, needed) and not parallel:
                yield _at(found, f"this takes {_RUNNER}: {needed}, here and in the baseline", *where)


def _vllm_limits(found: ProfileFile, profile: Profile) -> Iterator[Objection]:
    speculation, arguments = profile.speculation, profile.arguments
    assert speculation is not None
    sequences, budget = arguments.get("max-num-seqs"), arguments.get("max-num-batched-tokens")
    needed = None if not isinstance(sequences, int) else sequences * (speculation.draft_tokens + 1)
    if needed is not None and isinstance(budget, int) and needed > budget:
        yield _at(
            found,
            f"a step of {sequences} requests with {speculation.draft_tokens} drafts takes {needed} tokens and gets"
            f" {budget}: vLLM would take fewer requests than the baseline",
            *("arguments", "max-num-batched-tokens"),
        )
    if "enable-trace-replay" in arguments:
        yield _at(found, "vLLM does not replay decoded tokens with speculation", "arguments", "enable-trace-replay")


def _sglang(found: ProfileFile) -> Iterator[Objection]:
    profile = found.profile
    if profile.arguments.get("enable-metrics") is not True:
        yield _at(found, "without enable-metrics it tells nothing of its drafts", "arguments", fatal=False)
    if profile.speculation is None:
        return
    for key, value in profile.speculation.config.items():
        dashed = key.replace("_", "-")
        if dashed in _LOSSY_THRESHOLDS and value != 1:
            yield _at(
                found,
                "lossy: below 1 drafts are kept that the model would not have written",
                *("speculation", "config", key),
            )


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
        yield _at(
            found,
            "no profile of this engine and model without speculation: nothing to compare it with",
            "speculation",
            fatal=False,
        )
        return
    nearest = min(family, key=lambda other: len(differences(profile, other)))
    unlike = differences(profile, nearest)
    if unlike:
        yield _at(
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


def _at(found: ProfileFile, text: str, *keys: str, fatal: bool = True) -> Objection:
    return Objection(where=found.where(*keys), text=text, fatal=fatal)
