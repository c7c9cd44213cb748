"""How an arm's vLLM was told to speculate."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.core.comparison.footing import Served
from loadgen.core.server.configuration import SpeculationConfiguration
from loadgen.options.experiment import load_experiment
from loadgen.wiring.speculative_config import speculative_config

EXAMPLES = Path(__file__).parents[2] / "examples"
CONFIG = {"method": "eagle3", "model": "a/drafter", "num_speculative_tokens": 3, "quantization": "fp8"}
KEPT = {"method": "eagle3", "model": "a/drafter", "quantization": "fp8"}


def served(draft_model: str | None, engine: str = "vllm") -> Served:
    return Served(
        engine=engine,
        engine_version=None,
        model="m",
        configuration=None,
        speculation=SpeculationConfiguration(method="eagle3", draft_model=draft_model),
        page=None,
    )


@pytest.mark.parametrize(
    "command",
    [
        ["vllm", "serve", "m", "--speculative-config", json.dumps(CONFIG), "--port", "{port}"],
        ["vllm", "serve", "m", f"--speculative-config={json.dumps(CONFIG)}"],
        ["vllm", "serve", "m", "-sc", json.dumps(CONFIG)],
        ["vllm", "--speculative-config", '{"method": "ngram"}', "--speculative-config", json.dumps(CONFIG)],
    ],
    ids=["apart", "joined", "short", "the last of two"],
)
def test_a_command_is_read_as_vllm_reads_it(command: list[str]) -> None:
    """All keys but those that give draft lengths."""
    assert speculative_config({"command": command}, "eagle3", []) == KEPT


@pytest.mark.parametrize(
    "command", [["vllm", "serve"], ["vllm", "--speculative-config"], ["x", "-sc", "file.json"], ["x", "-sc", "[1]"]]
)
def test_what_cannot_be_read_is_not_made_up(command: list[str]) -> None:
    """Neither is it a fault: the server knows what it was told."""
    assert speculative_config({"command": command}, "ngram", [served("a/drafter")]) == {}


def test_a_drafter_goes_by_the_name_that_the_server_told() -> None:
    """Where the file does not name it, of vLLM, and for a method that has one."""
    told = [served(None), served("told/drafter")]
    assert speculative_config({"url": "http://h"}, "eagle3", told) == {"model": "told/drafter"}
    assert speculative_config({"command": ["-sc", json.dumps(CONFIG)]}, "eagle3", told) == KEPT
    assert speculative_config({"url": "http://h"}, "ngram", told) == {}
    assert speculative_config({"url": "http://h"}, "eagle3", [served("told/drafter", "sglang")]) == {}
    assert speculative_config({"url": "http://h"}, "eagle3", []) == {}


@pytest.mark.parametrize(("dialect", "found"), [("vllm", KEPT), ("sglang", {})])
def test_a_simulated_server_is_one_of_its_dialect(dialect: str, found: dict[str, Any]) -> None:
    """Words of another engine mean nothing to vLLM."""
    sim = {"dialect": dialect, "speculation_config": KEPT}
    assert speculative_config({"sim": sim}, "ngram", []) == found


def test_examples_and_profiles_lead_to_what_they_say() -> None:
    """As manifests have them: vLLM by command, and the same profile started and simulated."""
    file = load_experiment(EXAMPLES / "vllm-commands.yaml")
    by_method = {arm.method: speculative_config(arm.stored(), arm.method, []) for arm in file.arms.values()}
    assert by_method["eagle3"] == {"method": "eagle3", "model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"}
    assert by_method["ngram"] == {"method": "ngram", "prompt_lookup_max": 7, "prompt_lookup_min": 3}
    profiles = load_experiment(EXAMPLES / "profiles.yaml")
    for arm in profiles.arms.values():
        found = speculative_config(arm.stored(), arm.speculation[0], [])
        assert ("model" in found) == (arm.speculation[0] == "eagle3")
        assert "num_speculative_tokens" not in found
