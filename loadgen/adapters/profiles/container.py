"""The container that a profile's image becomes: who runs in it, and where it keeps what it has loaded."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from loadgen.adapters.profiles.model import Profile
from loadgen.adapters.profiles.values import image_tag

CACHE = "model-cache"
"""The volume for weights and compiled graphs."""

PLACES_MEMORY = "SYS_NICE"
"""The capability that a server on a CPU takes to place memory beside its cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeOf:
    """Where the caches stand and whose they are. Without `uid` the image knows nobody but root.

    `environment` says to the server where its caches are, unless it looks there by itself.
    """

    cache: str
    uid: int | None = None
    gid: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """An image, and how to build it where packages come on top of one that is published.

    `starts_program`: the image's entry point is the engine's program, so that options alone are given.
    """

    image: str
    dockerfile: str | None
    starts_program: bool
    home: HomeOf


_OTHERS = re.compile(r"rocm|xpu|tpu|hpu")
_ROOT = HomeOf(cache="/cache", environment={"XDG_CACHE_HOME": "/cache"})
"""Hugging Face, vLLM and llama.cpp keep their caches where this variable says."""

_VLLM = HomeOf(cache="/home/vllm/.cache", uid=2000, gid=0)
"""A user that is in the image beside root; its `.cache` is there, so that a new volume belongs to it."""


def container_of(profile: Profile) -> Container:
    """The container of a profile with an image."""
    image = profile.image
    assert image is not None
    name = image.partition("@")[0].rpartition(":")[0]
    dockerfile = None
    if profile.packages:
        dockerfile = f"FROM {image}\nRUN uv pip install --system --no-cache {' '.join(profile.packages)}\n"
        extra = "-".join(package.replace("==", "-") for package in profile.packages)
        image = f"{name.rpartition('/')[2]}:{image_tag(image)}-{extra}"
    return Container(
        image=image,
        dockerfile=dockerfile,
        starts_program=profile.engine != "sglang",
        home=_VLLM if name == "vllm/vllm-openai" else _ROOT,
    )


def plain_name(profile: Profile) -> str:
    """Its name as it may stand for a pod and for a project of Compose."""
    return re.sub(r"[^a-z0-9-]", "-", profile.name)


def takes_nvidia(profile: Profile) -> bool:
    """Whether its server runs on GPUs of NVIDIA; images for those of others say so in their name."""
    return profile.gpus > 0 and profile.image is not None and not _OTHERS.search(profile.image)
