"""What vLLM would refuse in a profile, or silently do otherwise than in its baseline.

Rules and keys of speculation are those of vLLM 0.33, versions those of its releases, options those of the parser of
`VLLM_VERSION`.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from loadgen.adapters.profiles.files import ProfileFile
from loadgen.adapters.profiles.model import DraftMethod, Profile
from loadgen.adapters.profiles.objection import Objection, at
from loadgen.adapters.profiles.values import image_tag
from loadgen.adapters.profiles.vllm_options import VLLM_OPTIONS, VLLM_VERSION

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

_NEW_KEYS = frozenset(
    (
        *("disable_lookahead_block_hashes", "draft_lm_head_quantization", "xpress_topc"),
        *("fly_window_size", "fly_entropy_threshold", "fly_entropy_top_k"),
    )
)
_NEW_KEYS_SINCE: Version = (0, 33)

_VLLM_GONE = {
    "disable_by_batch_size": "gone from vLLM; speculation.draft_tokens_by_batch does what it did",
    "tensor_parallel_size": "vLLM calls it draft_tensor_parallel_size",
}
_MISSPELT_RATIO = 0.85
"""An unknown option as much like a known one as this is a slip of the pen in any version."""

_NEEDS_RUNNER = {
    "0": ("parallel_drafting", "use_heterogeneous_vocab"),
    "1": ("xpress_topc", "enable_adaptive_verification", "draft_lm_head_quantization"),
}


def vllm_objections(found: ProfileFile) -> Iterator[Objection]:
    """Against a profile of vLLM that has an image."""
    profile = found.profile
    runner = profile.environment.get(_RUNNER)
    yield from _vllm_options(found, profile)
    if profile.gpus and runner is None:
        yield at(
            found,
            f"expected {_RUNNER}, 0 or 1: some methods change the model runner, and say so in the log alone",
            "environment",
        )
    for name, what in (
        ("max-model-len", "a drafter with a shorter one lowers it"),
        ("attention-backend", "the one that is chosen may differ with speculation"),
    ):
        if profile.gpus and name not in profile.arguments:
            yield at(found, f"{name} is left open: {what}", "arguments", fatal=False)
    if profile.speculation is None:
        if "per-request-spec-decode-metrics" in profile.arguments:
            yield at(
                found,
                "vLLM refuses this without speculation, so that no baseline can have it",
                *("arguments", "per-request-spec-decode-metrics"),
            )
        return
    yield from _vllm_method(found, profile, runner)
    yield from _vllm_config(found, profile, runner)
    yield from _vllm_limits(found, profile)


def _vllm_options(found: ProfileFile, profile: Profile) -> Iterator[Objection]:
    """Options that vLLM lacks. Another version than the one that was asked may have them: then it is a remark."""
    version, known = version_of(profile), f"vLLM {_words(VLLM_VERSION)}"
    same = version is not None and version[:2] == VLLM_VERSION
    for name, value in profile.arguments.items():
        where = ("arguments", name)
        if name not in VLLM_OPTIONS:
            close = get_close_matches(name, VLLM_OPTIONS, n=1, cutoff=_MISSPELT_RATIO)
            hint = f"; did you mean {close[0]}?" if close else "" if same else ", and no other one was asked"
            yield at(found, f"{known} has no such option{hint}", *where, fatal=same or bool(close))
        elif value is False and f"no-{name}" not in VLLM_OPTIONS:
            yield at(found, f"{known} has no --no-{name}: it is no switch, or is off by itself", *where, fatal=same)


def _vllm_method(found: ProfileFile, profile: Profile, runner: str | None) -> Iterator[Objection]:
    speculation, version = profile.speculation, version_of(profile)
    assert speculation is not None
    method, since = speculation.method, VLLM_SINCE[speculation.method]
    if version is None:
        yield at(
            found, f"the tag of {profile.image} names no version, so that methods are not checked", "image", fatal=False
        )
    elif version < since:
        words = f"vLLM {_words(version)} does not know {method}; it takes {_words(since)}"
        yield at(found, words, "speculation", "method")
    if method is DraftMethod.SUFFIX:
        if runner == "1":
            yield at(
                found, f"suffix decoding takes the first model runner: expected {_RUNNER}: 0", "environment", _RUNNER
            )
        if not any(package.startswith("arctic-inference==") for package in profile.packages):
            yield at(found, "suffix decoding takes the package arctic-inference", "packages")
        if speculation.config.get("suffix_decoding_max_cached_requests") != 0:
            yield at(
                found,
                "answers of earlier requests, warm-up among them, become drafts of later ones unless"
                " suffix_decoding_max_cached_requests is 0",
                *("speculation", "config"),
                fatal=False,
            )
    if method is DraftMethod.DSPARK and runner == "0":
        yield at(found, f"dspark takes the second model runner: expected {_RUNNER}: 1", "environment", _RUNNER)
    synchronous = method.value in ("ngram", "suffix") or speculation.config.get("disable_padded_drafter_batch")
    on_any_runner = version is not None and version < _ASYNCHRONOUS_NGRAM
    if synchronous and (runner == "0" or on_any_runner) and profile.arguments.get("async-scheduling") is not False:
        runners = "any" if on_any_runner else "the first"
        yield at(
            found,
            f"on {runners} model runner {method} turns asynchronous scheduling off, which the baseline keeps:"
            " expected async-scheduling: false",
            "arguments",
        )
    if ranges := speculation.draft_tokens_by_batch:
        sequences, copies = profile.arguments.get("max-num-seqs"), profile.arguments.get("data-parallel-size", 1)
        if copies != 1:
            yield at(found, "under data parallelism vLLM ignores this", "speculation", "draft_tokens_by_batch")
        if runner == "0" and method is DraftMethod.SUFFIX:
            yield at(found, "with suffix decoding vLLM ignores this", "speculation", "draft_tokens_by_batch")
        if isinstance(sequences, int) and ranges[-1][1] < sequences:
            yield at(
                found,
                f"ends at {ranges[-1][1]}, and the server takes {sequences} (max-num-seqs): the last range goes on",
                *("speculation", "draft_tokens_by_batch"),
                fatal=False,
            )


def _vllm_config(found: ProfileFile, profile: Profile, runner: str | None) -> Iterator[Objection]:
    speculation, version = profile.speculation, version_of(profile)
    assert speculation is not None
    for key, value in speculation.config.items():
        where = ("speculation", "config", key)
        if key in _FIELDS_OF_THEIR_OWN:
            yield at(found, f"this stands under {_FIELDS_OF_THEIR_OWN[key]!r}", *where)
        elif key in _VLLM_GONE:
            yield at(found, _VLLM_GONE[key], *where)
        elif key not in _VLLM_KEYS:
            close = get_close_matches(key, _VLLM_KEYS, n=1)
            yield at(found, f"vLLM knows no such key{f'; did you mean {close[0]}?' if close else ''}", *where)
        elif key in _NEW_KEYS and version is not None and version < _NEW_KEYS_SINCE:
            yield at(found, f"vLLM {_words(version)} has no such key; it takes {_words(_NEW_KEYS_SINCE)}", *where)
        elif key == "rejection_sample_method" and value == "fly":
            yield at(found, "lossy: drafts are kept that the model would not have written", *where)
        elif key.startswith("synthetic_") or (key, value) == ("rejection_sample_method", "synthetic"):
            yield at(found, "acceptance is forced, so that texts mean nothing: leave it to forced runs", *where)
        elif key == "draft_tensor_parallel_size" and value not in (1, profile.gpus):
            yield at(found, f"expected 1 or as many as the server has, {profile.gpus}", *where)
        for needed, keys in _NEEDS_RUNNER.items():
            parallel = key == "parallel_drafting" and speculation.method.value in ("dflash", "dspark")
            if key in keys and value and runner not in (None, needed) and not parallel:
                yield at(found, f"this takes {_RUNNER}: {needed}, here and in the baseline", *where)


def _vllm_limits(found: ProfileFile, profile: Profile) -> Iterator[Objection]:
    speculation, arguments = profile.speculation, profile.arguments
    assert speculation is not None
    sequences, budget = arguments.get("max-num-seqs"), arguments.get("max-num-batched-tokens")
    needed = None if not isinstance(sequences, int) else sequences * (speculation.draft_tokens + 1)
    if needed is not None and isinstance(budget, int) and needed > budget:
        yield at(
            found,
            f"a step of {sequences} requests with {speculation.draft_tokens} drafts takes {needed} tokens and gets"
            f" {budget}: vLLM would take fewer requests than the baseline",
            *("arguments", "max-num-batched-tokens"),
        )
    if "enable-trace-replay" in arguments:
        yield at(found, "vLLM does not replay decoded tokens with speculation", "arguments", "enable-trace-replay")


def version_of(profile: Profile) -> Version | None:
    """The version that the image's tag names."""
    tag = None if profile.image is None else image_tag(profile.image)
    match = None if tag is None else _VERSION.match(tag)
    return None if match is None else tuple(map(int, match[1].split(".")))


def _words(version: Version) -> str:
    return ".".join(map(str, version))
