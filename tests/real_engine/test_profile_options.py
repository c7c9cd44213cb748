"""A real vLLM reads the command lines of the profiles. No server is started: a GPU would be needed for most."""

import json
import os
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

from loadgen.adapters.profiles.command import command_line
from loadgen.adapters.profiles.files import load_profile
from loadgen.adapters.profiles.model import Profile
from tests.needs import real_engine
from tests.real_engine.engine import REPOSITORY

pytestmark = pytest.mark.real_engine

READING = """
import dataclasses, json, sys
from vllm.config.speculative import SpeculativeConfig
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.utils.argparse_utils import FlexibleArgumentParser

parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
keys = {field.name for field in dataclasses.fields(SpeculativeConfig)}
for line in sys.stdin:
    read = parser.parse_args(json.loads(line))
    validate_parsed_serve_args(read)
    config = read.speculative_config or {}
    told = {"model": read.model_tag, "config": read.speculative_config, "unknown": sorted(set(config) - keys)}
    told |= {name: getattr(read, name) for name in ("async_scheduling", "max_num_seqs", "tensor_parallel_size")}
    print("READ", json.dumps(told))
"""


@pytest.fixture
def python() -> Path:
    """The one that vLLM runs on."""
    return real_engine() / "venv" / "bin" / "python"


def test_the_options_that_are_checked_are_its_own(python: Path) -> None:
    """The list in the repository is what the script makes of this engine's parser."""
    script = runpy.run_path(str(REPOSITORY / "tools" / "vllm_options.py"))
    written = script["module"](*script["read"](python))
    assert script["MODULE"].read_text(encoding="utf-8") == written, "run tools/vllm_options.py"


def test_vllm_reads_every_command_line(python: Path) -> None:
    """Each option is one it has, each key of speculation too, forced acceptance included."""
    paths = sorted((REPOSITORY / "server_profiles").glob("*.yaml"))
    profiles = [profile for profile in (load_profile(path).profile for path in paths) if _is_of_vllm(profile)]
    wanted = [(profile, None) for profile in profiles]
    wanted += [(profile, 1) for profile in profiles if profile.speculation is not None]
    lines = [command_line(profile, host="127.0.0.1", port="8000", forced_length=length) for profile, length in wanted]
    done = subprocess.run(
        [python, "-c", READING],
        input="\n".join(json.dumps(line.options) for line in lines),
        env={**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    read = [json.loads(line.removeprefix("READ ")) for line in done.stdout.splitlines() if line.startswith("READ ")]
    assert len(read) == len(wanted)
    for (profile, length), told in zip(wanted, read, strict=True):
        assert told["unknown"] == [], profile.name
        assert told == {"model": profile.model, "config": _config(profile, length), "unknown": []} | _options(profile)


def _is_of_vllm(profile: Profile) -> bool:
    return profile.engine == "vllm" and profile.image is not None


def _config(profile: Profile, length: int | None) -> dict[str, Any] | None:
    speculation = profile.speculation
    if speculation is None:
        return None
    told: dict[str, Any] = {"method": speculation.method, "num_speculative_tokens": speculation.draft_tokens}
    if speculation.model is not None:
        told["model"] = speculation.model
    if speculation.draft_tokens_by_batch:
        told["num_speculative_tokens_per_batch_size"] = [list(each) for each in speculation.draft_tokens_by_batch]
    forced = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": length}
    return told | speculation.config | (forced if length is not None else {})


def _options(profile: Profile) -> dict[str, Any]:
    return {
        "async_scheduling": profile.arguments.get("async-scheduling"),
        "max_num_seqs": profile.arguments["max-num-seqs"],
        "tensor_parallel_size": max(1, profile.gpus),
    }
