"""The command lines, Compose services and pods that profiles stand for."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadgen.adapters.profiles.command import command_line
from loadgen.adapters.profiles.files import load_profile
from loadgen.adapters.profiles.model import Profile
from loadgen.adapters.profiles.pod import kubernetes_pod
from loadgen.adapters.profiles.render import compose_file, compose_service, shell_command
from loadgen.core.errors import ConfigError

FOLDER = Path(__file__).parents[3] / "server_profiles"
FOUND = [load_profile(path) for path in sorted(FOLDER.glob("*.yaml"))]
STARTED = [found for found in FOUND if found.profile.image is not None]
ARMS = [found for found in STARTED if found.baseline is not None]
_DRAFTING = ("--spec-", "--speculative-", "--model-draft")

BARE: dict[str, Any] = {
    "name": "mine",
    "description": "one of ours",
    "engine": "vllm",
    "model": "acme/llm",
    "image": "vllm/vllm-openai:v0.33.0",
}


def profile(**fields: Any) -> Profile:
    return Profile.model_validate(BARE | fields)


def ours(name: str) -> Profile:
    return load_profile(FOLDER / f"{name}.yaml").profile


def parts(of: Profile, **how: Any) -> tuple[tuple[str, ...], ...]:
    return command_line(of, host="127.0.0.1", port="8000", **how).parts


@pytest.mark.parametrize("found", ARMS, ids=lambda found: found.profile.name)
def test_an_arm_differs_from_its_baseline_in_speculation_alone(found: Any) -> None:
    """Down to the command line and the container: the same, and behind it what makes it speculate."""
    arm, baseline = found.profile, ours(found.baseline)
    mine, theirs = (command_line(each, host="h", port="1") for each in (arm, baseline))
    assert mine.program == theirs.program
    assert mine.environment == theirs.environment
    assert mine.parts[: len(theirs.parts)] == theirs.parts
    added = mine.parts[len(theirs.parts) :]
    assert added
    assert all(part[0].startswith(_DRAFTING) for part in added)
    services = [compose_service(each, port=1) for each in (arm, baseline)]
    assert services[0].pop("command")[: len(services[1]["command"])] == services[1].pop("command")
    assert services[0] == services[1]


def test_the_command_line_of_vllm() -> None:
    """The model first, then where it listens, then the profile's options in their order, then speculation."""
    mine = profile(
        gpus=2,
        weights="/weights",
        arguments={"b": 1, "a": True, "c": False, "d": ["x", 2], "e": {"k": [1]}},
        speculation={"method": "ngram", "draft_tokens": 4, "config": {"prompt_lookup_max": 7}},
    )
    assert parts(mine) == (
        ("/weights",),
        ("--served-model-name", "acme/llm"),
        ("--host", "127.0.0.1"),
        ("--port", "8000"),
        ("--tensor-parallel-size", "2"),
        ("--b", "1"),
        ("--a",),
        ("--no-c",),
        ("--d", "x", "2"),
        ("--e", '{"k":[1]}'),
        ("--speculative-config", '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":7}'),
    )


def test_vllm_is_told_draft_lengths_by_batch() -> None:
    """As its ranges with their bounds."""
    ranges = [[1, 64, 3], [65, 128, 0]]
    mine = profile(
        speculation={"method": "eagle3", "draft_tokens": 3, "model": "acme/head", "draft_tokens_by_batch": ranges}
    )
    assert json.loads(parts(mine)[-1][1]) == {
        "method": "eagle3",
        "model": "acme/head",
        "num_speculative_tokens": 3,
        "num_speculative_tokens_per_batch_size": ranges,
    }


@pytest.mark.parametrize(
    ("speculation", "added"),
    [
        (
            {"method": "eagle3", "draft_tokens": 3, "model": "h"},
            "--speculative-algorithm EAGLE3 --speculative-draft-model-path h --speculative-num-steps 3"
            " --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        ),
        (
            {"method": "mtp", "draft_tokens": 1},
            "--speculative-algorithm NEXTN --speculative-num-steps 1 --speculative-eagle-topk 1"
            " --speculative-num-draft-tokens 2",
        ),
        (
            {"method": "ngram", "draft_tokens": 5, "config": {"speculative_ngram_max_trie_depth": 9}},
            "--speculative-algorithm NGRAM --speculative-num-draft-tokens 5 --speculative-ngram-max-trie-depth 9",
        ),
    ],
)
def test_the_command_line_of_sglang(speculation: dict[str, Any], added: str) -> None:
    """A chain of k drafts is verified as k + 1 tokens; looked-up text is not."""
    mine = profile(engine="sglang", speculation=speculation)
    begun = "--model-path acme/llm --served-model-name acme/llm --host 127.0.0.1 --port 8000"
    assert " ".join(command_line(mine, host="127.0.0.1", port="8000").options) == f"{begun} {added}"


@pytest.mark.parametrize(
    ("weights", "speculation", "line"),
    [
        (
            "/w.gguf",
            {"method": "ngram", "draft_tokens": 5},
            "--model /w.gguf {} --spec-type ngram-simple --spec-ngram-simple-size-m 5",
        ),
        (
            "acme/w-GGUF:Q4",
            {"method": "draft_model", "draft_tokens": 3, "model": "/d.gguf", "config": {"spec_draft_p_min": 0.5}},
            "--hf-repo acme/w-GGUF:Q4 {} --spec-type draft-simple --spec-draft-model /d.gguf --spec-draft-n-max 3"
            " --spec-draft-p-min 0.5",
        ),
    ],
)
def test_the_command_line_of_llamacpp(weights: str, speculation: dict[str, Any], line: str) -> None:
    """Weights from a file or a repository, for target and drafter alike."""
    mine = profile(engine="llamacpp", weights=weights, speculation=speculation)
    where = "--alias acme/llm --host 127.0.0.1 --port 8000"
    assert " ".join(command_line(mine, host="127.0.0.1", port="8000").options) == line.format(where)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"image": None}, "mine: a simulated server; `loadgen sim --profile mine` starts it"),
        ({"engine": "tensorrt-llm"}, "mine: tensorrt-llm takes its speculation from a file of its own"),
        (
            {"engine": "sglang", "speculation": {"method": "suffix", "draft_tokens": 3}},
            "mine: sglang does not draft by suffix; it knows ngram, draft_model",
        ),
        (
            {
                "engine": "llamacpp",
                "speculation": {"method": "ngram", "draft_tokens": 3, "draft_tokens_by_batch": [[1, 2, 3]]},
            },
            "mine: llamacpp has no draft length by batch size",
        ),
    ],
)
def test_what_no_engine_could_serve_is_said(fields: dict[str, Any], message: str) -> None:
    """By the name of the profile."""
    with pytest.raises(ConfigError, match=message):
        parts(profile(**fields))


def test_forced_acceptance_is_said_to_each_engine_in_its_way() -> None:
    """Once, with all else as it was."""
    vllm, sglang, llamacpp = (
        ours(name) for name in ("llama-3.1-8b-eagle3", "sglang-llama-3.1-8b-eagle3", "llamacpp-qwen3-8b-draft-model")
    )
    forced = parts(vllm, forced_length=2.5)
    assert forced[:-1] == parts(vllm)[:-1]
    told = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.5}
    assert json.loads(forced[-1][1]) == json.loads(parts(vllm)[-1][1]) | told
    line = command_line(sglang, host="127.0.0.1", port="8000", forced_length=4)
    assert line.parts == parts(sglang)
    assert line.environment["SGLANG_SIMULATE_ACC_LEN"] == "4"
    assert parts(llamacpp, forced_length=1) == (*parts(llamacpp), ("--spec-synth-len", "1"))


@pytest.mark.parametrize(
    ("name", "length"), [("llama-3.1-8b-eagle3", 4.5), ("llama-3.1-8b-eagle3", 0.5), ("llama-3.1-8b-baseline", 1)]
)
def test_what_cannot_be_forced_is_refused(name: str, length: float) -> None:
    """Beyond k + 1 or below 1, and without drafts."""
    with pytest.raises(ConfigError, match=f"{name}: "):
        parts(ours(name), forced_length=length)


@pytest.mark.parametrize("found", STARTED, ids=lambda found: found.profile.name)
def test_a_shell_passes_the_command_as_it_is_meant(tmp_path: Path, found: Any) -> None:
    """Every argument whole, quotes of JSON included; the environment with what variables hold."""
    line = command_line(found.profile, host="127.0.0.1", port="9000")
    program = tmp_path / line.program[0]
    program.write_text('#!/bin/sh\nprintf "%s\\0" "$HF_TOKEN" "$VLLM_USE_V2_MODEL_RUNNER" "$@"\n')
    program.chmod(0o755)
    script = shell_command(found.profile, port=9000)
    variables = {"PATH": f"{tmp_path}{os.pathsep}/usr/bin:/bin", "HF_TOKEN": 'a "token" $x'}
    done = subprocess.run(["sh", "-c", script], env=variables, capture_output=True, text=True, timeout=10, check=True)
    token, runner, *arguments = done.stdout.split("\0")[:-1]
    assert token == 'a "token" $x'
    assert runner == found.profile.environment.get("VLLM_USE_V2_MODEL_RUNNER", "")
    assert arguments == [*line.program[1:], *line.options]


def test_a_shell_stops_where_a_variable_has_to_be_set() -> None:
    """One that may be missing does not stop it; text around it stays what it is."""
    script = shell_command(profile(environment={"A": 'x "${MINE}" `y`', "B": "${OTHER:-}"}), port=1)
    assert script.startswith('A="x \\"${MINE:?}\\" \\`y\\`" \\\nB="${OTHER:-}" \\\nvllm serve acme/llm')
    done = subprocess.run(
        ["sh", "-c", script], env={"PATH": "/bin"}, capture_output=True, text=True, timeout=10, check=False
    )
    assert done.returncode != 0
    assert "MINE" in done.stderr


def test_a_compose_service_is_whole() -> None:
    """Loopback alone, no root, no secret, its GPUs, room to share, time to load, weights that stay."""
    service = compose_service(ours("llama-3.3-70b-eagle3"), port=8001, devices=["0", "1", "2", "3"])
    assert service["image"] == "vllm/vllm-openai:v0.33.0"
    assert service["command"][:5] == ["meta-llama/Llama-3.3-70B-Instruct", "--host", "0.0.0.0", "--port", "8000"]
    assert service["ports"] == ["127.0.0.1:8001:8000"]
    assert (service["user"], service["cap_drop"], service["shm_size"]) == ("2000:0", ["ALL"], "16g")
    assert service["environment"]["HF_TOKEN"] == "${HF_TOKEN:-}"
    assert service["volumes"] == ["model-cache:/home/vllm/.cache"]
    (gpus,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert gpus == {"driver": "nvidia", "device_ids": ["0", "1", "2", "3"], "capabilities": ["gpu"]}
    assert service["healthcheck"]["test"][-1] == "http://127.0.0.1:8000/health"
    assert service["healthcheck"]["start_period"] == "20m"


def test_a_compose_service_without_devices_takes_as_many_gpus_as_it_needs() -> None:
    """None on a CPU, where it may place its memory instead."""
    (gpus,) = compose_service(ours("llama-3.3-70b-baseline"), port=1)["deploy"]["resources"]["reservations"]["devices"]
    assert gpus["count"] == 4
    on_cpu = compose_service(ours("qwen3-0.6b-cpu-ngram"), port=1)
    assert "deploy" not in on_cpu
    assert on_cpu["cap_add"] == ["SYS_NICE"]
    assert on_cpu["volumes"] == [f"model-cache:{on_cpu['environment']['XDG_CACHE_HOME']}"]
    assert "deploy" not in compose_service(profile(image="vllm/vllm-openai-rocm:v0.33.0"), port=1)


def test_packages_make_an_image_of_their_own() -> None:
    """Built where the service is, from the published one; a pod says what to build."""
    suffix = ours("llama-3.1-8b-suffix")
    service = compose_service(suffix, port=1)
    assert service["image"] == "vllm-openai:v0.33.0-arctic-inference-0.1.1"
    assert service["build"]["dockerfile_inline"].startswith("FROM vllm/vllm-openai:v0.33.0\nRUN uv pip install ")
    assert kubernetes_pod(suffix, port=1).startswith(
        "# Build vllm-openai:v0.33.0-arctic-inference-0.1.1 from:\n# FROM vllm"
    )


def test_dollars_of_a_command_are_no_variables_of_compose() -> None:
    """They are doubled, as Compose asks for."""
    service = compose_service(profile(arguments={"chat-template": "a $b"}), port=1)
    assert service["command"][-1] == "a $$b"


@pytest.mark.parametrize("found", STARTED, ids=lambda found: found.profile.name)
def test_files_are_yaml_that_says_what_is_meant(found: Any) -> None:
    """A service as it was built, and a pod whose program gets the same options."""
    name = found.profile.name
    file = yaml.safe_load(compose_file(found.profile, port=9000))
    assert file["services"] == {name: compose_service(found.profile, port=9000)}
    owner = "" if found.profile.image.startswith("vllm/vllm-openai:") else "-of-root"
    assert file["name"] == name.replace(".", "-")
    assert file["volumes"] == {"model-cache": {"name": f"loadgen-model-cache{owner}"}}
    pod = yaml.safe_load(kubernetes_pod(found.profile, port=9000))
    (server,) = pod["spec"]["containers"]
    line = command_line(found.profile, host="0.0.0.0", port="9000")
    assert server["args"] == [*line.options]
    assert server.get("command", []) == (list(line.program) if found.profile.engine == "sglang" else [])
    assert server.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", 0) == found.profile.gpus


def test_a_pod_takes_secrets_from_a_secret() -> None:
    """By name; what may be missing is optional. Nothing of a Service's name reaches its environment."""
    spec = yaml.safe_load(kubernetes_pod(ours("llama-3.1-8b-eagle3"), port=8000))["spec"]
    (server,) = spec["containers"]
    (token,) = (variable for variable in server["env"] if variable["name"] == "HF_TOKEN")
    assert token == {
        "name": "HF_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "server-secrets", "key": "HF_TOKEN", "optional": True}},
    }
    needed = yaml.safe_load(kubernetes_pod(profile(environment={"A": "${MINE}", "B": "b"}), port=1))["spec"]
    first, second = needed["containers"][0]["env"]
    assert first["valueFrom"]["secretKeyRef"] == {"name": "server-secrets", "key": "MINE", "optional": False}
    assert second == {"name": "B", "value": "b"}
    assert spec["enableServiceLinks"] is False
    user = {"runAsNonRoot": True, "runAsUser": 2000, "runAsGroup": 0, "fsGroup": 0}
    assert spec["securityContext"] == user | {"seccompProfile": {"type": "RuntimeDefault"}}
    assert server["startupProbe"]["httpGet"] == {"path": "/health", "port": "http"}
    assert {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}} in spec["volumes"]


def test_a_pod_takes_a_variable_whole_or_not_at_all() -> None:
    """A server would get the dollar sign and the braces as they are; a shell and Compose put the value there."""
    within = profile(environment={"HF_HOME": "${BIG_DISK}/hf", "OTHER": "${MAYBE:-}/x"})
    with pytest.raises(ConfigError, match=r"mine: environment\.HF_HOME: in a pod \$\{NAME\} has to be the whole"):
        kubernetes_pod(within, port=1)
    told = compose_service(within, port=1)["environment"]
    assert (told["HF_HOME"], told["OTHER"]) == ("${BIG_DISK:?}/hf", "${MAYBE:-}/x")


def test_a_pod_has_the_devices_and_rights_of_the_container() -> None:
    """GPUs of NVIDIA alone, and on a CPU what a server takes to place its memory."""
    on_gpu, on_cpu, of_others = (
        yaml.safe_load(kubernetes_pod(each, port=1))["spec"]["containers"][0]
        for each in (ours("qwen3-8b-eagle3"), ours("qwen3-0.6b-cpu-ngram"), profile(image="a/vllm-rocm:v1.0"))
    )
    assert on_gpu["resources"]["limits"] == {"nvidia.com/gpu": 1}
    assert on_gpu["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "resources" not in on_cpu
    assert on_cpu["securityContext"]["capabilities"] == {"add": ["SYS_NICE"]}
    assert "resources" not in of_others
