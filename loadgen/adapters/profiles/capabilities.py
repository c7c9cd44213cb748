"""What a server can do that loadgen makes use of, as it follows from how it is started."""

from collections.abc import Iterator
from typing import Literal

from loadgen.adapters.profiles.model import Profile

Capability = Literal[
    "speculation_counters",
    "speculation_per_request",
    "token_ids",
    "cache_reset",
    "cache_salt",
    "configuration",
    "forced_acceptance",
]


def capabilities(profile: Profile) -> tuple[Capability, ...]:
    """In the order of the type.

    That is: counters of drafts, drafts of each request, ids of a chunk's tokens, a page that empties the prefix cache,
    prompts kept apart in it, a page that tells the resolved configuration, acceptance by force.
    """
    return tuple(_capabilities(profile))


def _capabilities(profile: Profile) -> Iterator[Capability]:
    speculates = profile.speculation is not None
    match profile.engine:
        case "vllm":
            developed = profile.environment.get("VLLM_SERVER_DEV_MODE") == "1"
            if speculates:
                yield "speculation_counters"
            if speculates and "per-request-spec-decode-metrics" in profile.arguments:
                yield "speculation_per_request"
            yield "token_ids"
            if developed:
                yield "cache_reset"
            yield "cache_salt"
            if developed:
                yield "configuration"
        case "sglang":
            if speculates:
                yield "speculation_per_request"
            yield "token_ids"
            yield "cache_reset"
            yield "configuration"
        case "llamacpp":
            if speculates and profile.arguments.get("metrics") is True:
                yield "speculation_counters"
            if speculates:
                yield "speculation_per_request"
        case "tensorrt-llm":
            if speculates:
                yield "speculation_counters"
    if speculates:
        yield "forced_acceptance"
