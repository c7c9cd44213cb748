"""Arms by server profile: what they become, what really starts, and what is refused before anything does."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadgen.adapters.profiles.files import load_profile, profile_paths, search_path
from loadgen.core.errors import ConfigError, TargetError
from loadgen.engine.ports import Launcher
from loadgen.options.experiment import ExperimentFile, load_experiment
from loadgen.wiring.experiment_plan import START_S, planned
from loadgen.wiring.launch import launched, launcher_of
from tests.wiring.fake_programs import fake_docker, fake_engine, path_with, resolving_docker

ROOT = Path(__file__).parents[2]
FILE = """\
name: by profile
workload: {synthetic: {}, ignore_eos: true}
load: {concurrency: [1]}
level: {num_requests: 600}
arms:
  baseline: {profile: llama-3.1-8b-baseline}
  eagle3: {profile: llama-3.1-8b-eagle3}
"""


def experiment(folder: Path, text: str = FILE) -> ExperimentFile:
    (folder / "mine.yaml").write_text(text)
    return load_experiment(folder / "mine.yaml")


def launcher(folder: Path, arm: str, *, text: str = FILE, variables: dict[str, str], **how: Any) -> Launcher:
    return launcher_of(
        experiment(folder, text).arms[arm],
        log=folder / "server.log",
        kept=folder / "kept.json",
        start_timeout_s=20.0,
        variables=variables,
        **how,
    )


def test_an_arm_has_what_its_profile_says(tmp_path: Path) -> None:
    """Method and drafts for the report, the health page, the whole command for the digest, and no secret."""
    arm = experiment(tmp_path).arms["eagle3"]
    assert (arm.server, arm.speculation, arm.health) == ("profile", ("eagle3", 3), "/health")
    stored = arm.stored()
    assert stored["profile"] == "llama-3.1-8b-eagle3"
    assert stored["command"][:4] == ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct", "--host"]
    assert stored["command"][4:7] == ["127.0.0.1", "--port", "{port}"]
    composed = experiment(tmp_path, FILE + "launch: compose\n").arms["eagle3"].stored()
    assert composed == stored | {"launch": "compose", "image": "vllm/vllm-openai:v0.33.0"}


def test_a_forced_arm_says_its_configuration_last(tmp_path: Path) -> None:
    """The profile's own, with the length that is forced; vLLM takes the last of two."""
    arm = experiment(tmp_path).arms["eagle3"]
    *_, option, text = arm.arguments(forced_length=4)
    forced = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 4}
    assert option == "--speculative-config"
    assert json.loads(text) == json.loads(arm.arguments()[-1]) | forced


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        ("{profile: eagle9}", r"mine\.yaml:7: arms\.eagle3\.profile: no such profile: 'eagle9'"),
        ("{profile: llama-3.1-8b-eagle}", None),
        ("{profile: ./p.yaml}", r"arms\.eagle3\.profile: .*/p\.yaml: cannot be read"),
        (
            "{profile: llama-3.1-8b-eagle3, command: 'x {port}'}",
            r"arms\.eagle3\.command: expected no such field beside",
        ),
        ("{profile: llama-3.1-8b-eagle3, draft_tokens: 5}", r"arms\.eagle3\.draft_tokens: the profile .* says 3"),
        ("{profile: llama-3.1-8b-baseline, method: eagle3}", r"arms\.eagle3\.method: the profile .* says none"),
        ("{profile: sim-eagle3, launch: compose}", r"arms\.eagle3\.profile: sim-eagle3 has no image"),
        (
            "{profile: llama-3.1-8b-eagle3, launch: magic}",
            r"arms\.eagle3\.launch: input should be 'process', 'compose'",
        ),
        ("{url: 'http://h', launch: sim}", r"arms\.eagle3\.launch: this is for an arm with a profile"),
        (
            "{profile: qwen3.5-9b-mtp, launch: sim}",
            r"arms\.eagle3\.sim: .*the simulator does not know 'Qwen/Qwen3\.5-9B'",
        ),
    ],
)
def test_a_wrong_arm_is_named_with_its_line(tmp_path: Path, arm: str, message: str | None) -> None:
    """Before anything is read or started."""
    text = FILE.replace("{profile: llama-3.1-8b-eagle3}", arm)
    if message is None:
        experiment(tmp_path, text)
        return
    with pytest.raises(ConfigError, match=message):
        experiment(tmp_path, text)


def test_one_line_simulates_every_profile(tmp_path: Path) -> None:
    """At the top of the file; an arm may say otherwise, and what has no image is simulated anyway."""
    arms = experiment(
        tmp_path,
        FILE + "  sim: {profile: sim-ngram}\n  real: {profile: qwen3-8b-eagle3, launch: process}\nlaunch: sim\n",
    ).arms
    assert {name: arm.server for name, arm in arms.items()} == {
        "baseline": "sim",
        "eagle3": "sim",
        "sim": "sim",
        "real": "profile",
    }
    options = arms["eagle3"].sim_options()
    assert (options.method, options.tokens, options.max_num_seqs, options.gpu) == ("eagle3", 3, 128, "h100")
    assert experiment(tmp_path, FILE + "  sim: {profile: sim-ngram}\n").arms["sim"].server == "sim"


def test_a_profile_beside_the_experiment_is_meant_from_there(tmp_path: Path) -> None:
    """Its place is no part of what is measured; what it says is."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    told = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        (folder / "mine-eagle3.yaml").write_text(
            (ROOT / "server_profiles" / "llama-3.1-8b-eagle3.yaml")
            .read_text()
            .replace("name: llama-3.1-8b", "name: mine")
        )
        (folder / "llama-3.1-8b-baseline.yaml").write_text(
            (ROOT / "server_profiles" / "llama-3.1-8b-baseline.yaml").read_text()
        )
        told.append(
            experiment(folder, FILE.replace("llama-3.1-8b-eagle3", "./mine-eagle3.yaml")).arms["eagle3"].stored()
        )
    assert told[0] == told[1]
    assert told[0]["profile"] == "mine-eagle3"


def test_profiles_tell_the_price_where_the_file_does_not(tmp_path: Path) -> None:
    """If all are started, and agree; it is part of what is stored, and of the plan's estimate."""
    told = experiment(tmp_path)
    assert (told.price, told.stored()["price_per_hour"]) == (3.5, 3.5)
    estimate = planned(told).estimate
    assert estimate.duration_s is not None
    assert estimate.price == pytest.approx(estimate.duration_s / 3600 * 3.5)
    assert experiment(tmp_path, FILE + "price_per_hour: 2\n").price == 2
    assert experiment(tmp_path, FILE + "launch: sim\n").price is None
    assert experiment(tmp_path, FILE.replace("llama-3.1-8b-baseline", "llama-3.3-70b-baseline")).price is None


async def test_an_engine_on_the_path_is_started(tmp_path: Path) -> None:
    """With the profile's options and environment; a secret comes from the environment and not into the log."""
    variables = {**os.environ, "PATH": path_with(fake_engine(tmp_path, "vllm")), "HF_TOKEN": "my own secret"}
    variables |= {"CUDA_VISIBLE_DEVICES": "0"}
    async with launched(launcher(tmp_path, "eagle3", variables=variables, forced_length=1)) as server:
        assert server.how.startswith("vllm serve meta-llama/Llama-3.1-8B-Instruct --host 127.0.0.1 --port ")
    log = (tmp_path / "server.log").read_text()
    assert "VLLM_USE_V2_MODEL_RUNNER=1" in log
    assert '"synthetic_acceptance_length":1}' in log
    assert "HF_TOKEN=[secret]" in log
    assert "my own secret" not in log


@pytest.mark.parametrize(("arm", "starts"), [("llama-3.1-8b-baseline", False), ("qwen3-0.6b-cpu-baseline", True)])
async def test_gpus_are_looked_for_before_an_engine_that_needs_them(tmp_path: Path, arm: str, starts: bool) -> None:
    """And not for one on a CPU."""
    program = fake_engine(tmp_path, "vllm")
    program.with_name("nvidia-smi").write_text("#!/bin/sh\necho no devices were found\nexit 6\n")
    text = FILE.replace("llama-3.1-8b-baseline", arm)
    it = launcher(tmp_path, "baseline", text=text, variables={**os.environ, "PATH": path_with(program)})
    if starts:
        async with launched(it):
            pass
    else:
        with pytest.raises(TargetError, match="the server needs a GPU, but nvidia-smi says: no devices were found"):
            await it.start()


async def test_a_variable_that_may_be_missing_is_empty(tmp_path: Path) -> None:
    """Open models need no token."""
    variables = {name: value for name, value in os.environ.items() if name != "HF_TOKEN"}
    variables["PATH"] = path_with(fake_engine(tmp_path, "vllm"))
    async with launched(launcher(tmp_path, "baseline", variables=variables)):
        pass
    assert "HF_TOKEN=\n" in (tmp_path / "server.log").read_text()


async def test_compose_is_given_a_file_of_its_own(tmp_path: Path) -> None:
    """One service on a free port of loopback; `down` before and behind; secrets by name in it."""
    variables = {**os.environ, "PATH": path_with(fake_docker(tmp_path)), "HF_TOKEN": "my own secret"}
    it = launcher(tmp_path, "eagle3", text=FILE + "launch: compose\n", variables=variables)
    async with launched(it) as server:
        file = (tmp_path / "compose.yaml").read_text()
        assert "127.0.0.1:${LOADGEN_SERVER_PORT}:8000" in file
        assert "HF_TOKEN: ${HF_TOKEN:-}" in file
        assert "--exit-code-from llama-3.1-8b-eagle3 llama-3.1-8b-eagle3" in server.how
    calls = [line.split() for line in (tmp_path / "docker.calls").read_text().splitlines()]
    assert [call[call.index("--project-name") + 2] for call in calls] == ["down", "up", "down"]
    assert len({call[call.index("--project-name") + 1] for call in calls}) == 1
    assert "my own secret" not in file + (tmp_path / "server.log").read_text()


@pytest.mark.parametrize(
    ("visible", "arm", "chosen"),
    [
        (None, "llama-3.1-8b-eagle3", {"count": 1}),
        ("3", "llama-3.1-8b-eagle3", {"device_ids": ["3"]}),
        ("5, 2", "llama-3.1-8b-eagle3", {"device_ids": ["5"]}),
        ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "llama-3.1-8b-eagle3", None),
        ("4,5,6,7,0", "llama-3.3-70b-eagle3", {"device_ids": ["4", "5", "6", "7"]}),
    ],
)
async def test_a_container_gets_the_gpus_that_are_visible_here(
    tmp_path: Path, visible: str | None, arm: str, chosen: dict[str, Any] | None
) -> None:
    """The first of them, as many as the profile takes, as the real Compose resolves the file."""
    variables = {name: text for name, text in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    variables |= {"PATH": path_with(resolving_docker(tmp_path))}
    variables |= {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    text = FILE.replace("llama-3.1-8b-eagle3", arm) + "launch: compose\n"
    async with launched(launcher(tmp_path, "eagle3", text=text, variables=variables)):
        pass
    (service,) = yaml.safe_load((tmp_path / "server.log").read_text())["services"].values()
    (found,) = service["deploy"]["resources"]["reservations"]["devices"]
    chosen = {"device_ids": [visible]} if chosen is None else chosen
    assert found == {"driver": "nvidia", "capabilities": ["gpu"]} | chosen


@pytest.mark.parametrize(("visible", "seen"), [("0,1,2", 3), ("", 0), ("-1", 0), ("0,${HOME},1,2,3", 1)])
def test_fewer_gpus_than_a_profile_takes_are_said(tmp_path: Path, visible: str, seen: int) -> None:
    """Before anything starts; a server on a CPU takes none."""
    variables = {**os.environ, "PATH": path_with(fake_docker(tmp_path)), "CUDA_VISIBLE_DEVICES": visible}
    text = FILE.replace("llama-3.1-8b-eagle3", "llama-3.3-70b-eagle3") + "launch: compose\n"
    with pytest.raises(ConfigError, match=rf"llama-3.3-70b-eagle3 takes 4 GPUs, and .* names {seen} by index or UUID"):
        launcher(tmp_path, "eagle3", text=text, variables=variables)
    launcher(
        tmp_path, "eagle3", text=text.replace("llama-3.3-70b-eagle3", "qwen3-0.6b-cpu-baseline"), variables=variables
    )


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        ("process", "^vllm is not on the PATH; .*`launch: compose`.*`launch: sim`"),
        ("compose", "launch: compose takes Docker with its Compose plugin, and there is no `docker` here"),
    ],
)
def test_what_is_not_installed_is_said_before_anything_starts(tmp_path: Path, launch: str, message: str) -> None:
    """With what else would do."""
    with pytest.raises(ConfigError, match=message):
        launcher(tmp_path, "eagle3", text=FILE + f"launch: {launch}\n", variables={"PATH": str(tmp_path)})


def test_docker_without_compose_is_told_from_a_refusal(tmp_path: Path) -> None:
    """What Docker says, and what to install."""
    docker = fake_docker(tmp_path)
    docker.write_text("#!/bin/sh\necho \"docker: 'compose' is not a docker command.\" >&2\nexit 1\n")
    with pytest.raises(ConfigError, match=r"'compose' is not a docker command\. Install the plugin"):
        launcher(tmp_path, "eagle3", text=FILE + "launch: compose\n", variables={"PATH": str(docker.parent)})


async def test_variables_of_the_folder_reach_a_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real Compose resolves the service with the `.env` of the folder that Loadgen is called from.

    What the environment says comes first, as Compose has it; no log shows a secret of that file.
    """
    program = resolving_docker(tmp_path)
    (tmp_path / ".env").write_text('# mine\nHF_TOKEN="from the file" # for Llama\nGRAFANA_ADMIN_PASSWORD=\n')
    monkeypatch.chdir(tmp_path)
    for told, shown in (({}, "[secret]"), ({"HF_TOKEN": ""}, '""')):
        cell = tmp_path / f"cell-{len(told)}"
        cell.mkdir()
        variables = {name: text for name, text in os.environ.items() if name != "HF_TOKEN"}
        it = launcher_of(
            experiment(tmp_path, FILE + "launch: compose\n").arms["eagle3"],
            log=cell / "server.log",
            kept=cell / "kept.json",
            start_timeout_s=20.0,
            variables={**variables, **told, "PATH": path_with(program)},
        )
        async with launched(it):
            pass
        assert f"      HF_TOKEN: {shown}\n" in (cell / "server.log").read_text()


async def test_an_engine_that_dies_leaves_its_words(tmp_path: Path) -> None:
    """The end of its log is in the error, as for any command."""
    variables = {**os.environ, "PATH": path_with(fake_engine(tmp_path, "vllm", dies="no such model"))}
    with pytest.raises(TargetError, match="no such model"):
        await launcher(tmp_path, "eagle3", variables=variables).start()


@pytest.mark.parametrize("path", profile_paths(search_path((), {})).values(), ids=lambda path: path.stem)
def test_each_of_ours_can_be_an_arm(tmp_path: Path, path: Path) -> None:
    """Its method reaches the plan, and with it the report's columns."""
    arm = experiment(tmp_path, FILE.replace("llama-3.1-8b-eagle3", path.stem)).arms["eagle3"]
    method, tokens = arm.speculation
    speculation = load_profile(path).profile.speculation
    expected = (None, None) if speculation is None else (speculation.method, speculation.draft_tokens)
    assert (method, tokens) == expected


def test_the_example_is_planned() -> None:
    """As it stands in the repository."""
    found = planned(load_experiment(ROOT / "examples" / "profiles.yaml"))
    assert {arm.name: (arm.method, arm.draft_tokens) for arm in found.plan.arms} == {
        "baseline": (None, None),
        "ngram": ("ngram", 5),
        "eagle3": ("eagle3", 3),
        "baseline-again": (None, None),
    }
    assert found.starts["eagle3"].startswith(
        "vllm serve meta-llama/Llama-3.1-8B-Instruct --host 127.0.0.1 --port {port} "
    )
    assert not any("more than speculation" in note for note in found.notes)


def test_a_profile_that_names_a_gpu_is_estimated_by_its_model(tmp_path: Path) -> None:
    """As its stand-in would be, starts apart; a server that no model knows is guessed as before."""
    real, simulated = (planned(experiment(tmp_path, FILE + line)).estimate for line in ("", "launch: sim\n"))
    starts_s = {name: real.sittings_s[name] - simulated.sittings_s[name] for name in real.sittings_s}
    assert starts_s == pytest.approx(dict.fromkeys(starts_s, START_S["profile"] - START_S["sim"]))
    assert "steps of servers by profile as modelled for h100, which `simulator` of the profile names" in real.basis
    unknown = planned(experiment(tmp_path, FILE.replace("llama-3.1-8b-eagle3", "qwen3.5-9b-mtp"))).estimate
    assert "20 ms for each token of an answer of the other servers, a rough guess" in unknown.basis


def test_what_will_be_started_is_told_and_in_what_servers_differ(tmp_path: Path) -> None:
    """By launch; suffix decoding has a baseline of its own, and with another one it is said in what they differ."""
    text = FILE.replace("llama-3.1-8b-eagle3", "llama-3.1-8b-suffix") + "  running: {url: 'http://user:${WORD}@h'}\n"
    found = planned(experiment(tmp_path, text + "launch: compose\n"))
    assert found.starts == {
        "baseline": "Docker Compose with profile llama-3.1-8b-baseline, image vllm/vllm-openai:v0.33.0",
        "eagle3": "Docker Compose with profile llama-3.1-8b-suffix, image vllm-openai:v0.33.0-arctic-inference-0.1.1",
        "running": "runs at http://h",
    }
    assert any("VLLM_USE_V2_MODEL_RUNNER 0 and 1; --async-scheduling False and none" in note for note in found.notes)
    own = text.replace("llama-3.1-8b-baseline", "llama-3.1-8b-runner-v1-baseline")
    assert not any("more than speculation" in note for note in planned(experiment(tmp_path, own)).notes)
    simulated = planned(experiment(tmp_path, FILE + "launch: sim\n")).starts["eagle3"]
    assert simulated.startswith("loadgen sim --port {port} --profile ")
