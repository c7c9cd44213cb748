"""`loadgen profiles` as a user calls it, from the repository and from an installed package."""

import json
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadgen.cli.app import run_command_line

ROOT = Path(__file__).parents[2]
OURS = sorted(path.stem for path in (ROOT / "server_profiles").glob("*.yaml"))


@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit code."""

    code: int
    stdout: str
    stderr: str


class Profiles:
    """The command, in this process: it needs no other, and is called often."""

    def __init__(self, captured: pytest.CaptureFixture[str], environment: pytest.MonkeyPatch) -> None:
        self._captured, self._environment = captured, environment

    def __call__(self, *arguments: object, **variables: str) -> Done:
        with self._environment.context() as environment:
            for name, value in variables.items():
                environment.setenv(name, value)
            code = run_command_line(["profiles", *map(str, arguments)])
        printed = self._captured.readouterr()
        return Done(code, printed.out, printed.err)

    def told(self, *arguments: object, **variables: str) -> dict[str, Any]:
        """What `--json` prints."""
        done = self(*arguments, "--json", **variables)
        assert done.code in (0, 1), done.stderr
        return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture
def profiles(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Profiles:
    """The command, and what it prints caught."""
    return Profiles(capsys, monkeypatch)


def test_the_list_names_every_profile(profiles: Profiles) -> None:
    """With what a choice takes; as text a line each."""
    listed = profiles.told("list")
    assert listed["schema"] == "loadgen.profiles/1"
    assert [profile["name"] for profile in listed["profiles"]] == OURS
    (eagle3,) = (profile for profile in listed["profiles"] if profile["name"] == "llama-3.1-8b-eagle3")
    expected = {"engine": "vllm", "method": "eagle3", "draft_tokens": 3, "gpus": 1, "baseline": "llama-3.1-8b-baseline"}
    assert {name: eagle3[name] for name in expected} == expected
    text = profiles("list").stdout
    assert all(f"\n{name} " in f"\n{text}" for name in OURS)


def test_a_profile_is_shown_whole(profiles: Profiles, tmp_path: Path) -> None:
    """What it says, what its baseline says, and what follows; a folder of one's own comes first."""
    shown = profiles.told("show", "llama-3.1-8b-eagle3")
    assert shown["arguments"]["max-model-len"] == 8192
    assert shown["metrics_url"] == "http://127.0.0.1:8000/metrics"
    assert [Path(file).name for file in shown["files"]] == ["llama-3.1-8b-eagle3.yaml", "llama-3.1-8b-baseline.yaml"]
    text = profiles("show", "llama-3.1-8b-eagle3").stdout
    assert "RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3" in text
    mine = (ROOT / "server_profiles" / "sim-baseline.yaml").read_text().replace("an H100", "mine")
    (tmp_path / "sim-baseline.yaml").write_text(mine)
    for found in (
        profiles.told("show", "sim-baseline", "--profiles-dir", tmp_path),
        profiles.told("show", "sim-baseline", LOADGEN_PROFILES_DIR=str(tmp_path)),
        profiles.told("show", tmp_path / "sim-baseline.yaml"),
    ):
        assert "mine" in found["description"]
    assert (
        profiles.told("show", "sim-baseline")["simulated"],
        "mine" in profiles.told("show", "sim-baseline")["description"],
    ) == (
        True,
        False,
    )


def test_a_profile_is_rendered_in_three_forms(profiles: Profiles) -> None:
    """For a shell, for Compose, for Kubernetes; port and GPUs as asked; a secret's value nowhere."""
    name, secret = "llama-3.1-8b-eagle3", "my own secret"
    shell = profiles("render", name, "--port", "9000", HF_TOKEN=secret).stdout
    assert "vllm serve meta-llama/Llama-3.1-8B-Instruct \\\n  --host 127.0.0.1 \\\n  --port 9000 \\\n" in shell
    compose = profiles("render", name, "--as", "compose", "--port", 9000, "--devices", "2", HF_TOKEN=secret).stdout
    service = yaml.safe_load(compose)["services"][name]
    assert service["ports"] == ["127.0.0.1:9000:8000"]
    assert service["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"] == ["2"]
    pod = profiles("render", name, "--as", "kubernetes", "--forced", "4", HF_TOKEN=secret).stdout
    assert yaml.safe_load(pod)["kind"] == "Pod"
    assert '"synthetic_acceptance_length":4' in pod
    assert "my own secret" not in shell + compose + pod


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("render", "llama-3.1-8b-eagel3"), "no such profile: 'llama-3.1-8b-eagel3'"),
        (("render", "sim-eagle3"), "`loadgen sim --profile sim-eagle3` starts it"),
        (("render", "llama-3.1-8b-eagle3", "--devices", "0"), "--devices is for --as compose"),
        (("render", "llama-3.3-70b-eagle3", "--as", "compose", "--devices", "0"), "takes 4 GPUs, got 1"),
        (("render", "llama-3.1-8b-eagle3", "--forced", "5"), "expected a forced acceptance length from 1 to 4, got 5"),
        (("show", "absent.yaml"), "absent.yaml: cannot be read: No such file"),
        (("list", "--profiles-dir", "absent"), "absent: expected a folder with profiles"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(profiles: Profiles, arguments: tuple[str, ...], message: str) -> None:
    """Exit code 2, nothing on stdout."""
    done = profiles(*arguments)
    assert (done.code, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_all_of_ours_are_in_order(profiles: Profiles) -> None:
    """The check of everything ends well and has nothing to say."""
    done = profiles("check")
    assert (done.code, done.stdout) == (0, f"{len(OURS)} profiles checked: nothing wrong\n")


def test_what_is_wrong_is_said_with_file_and_line(profiles: Profiles, tmp_path: Path) -> None:
    """Every file that is wrong, the unreadable one too, and exit code 1."""
    baseline = (ROOT / "server_profiles" / "llama-3.1-8b-baseline.yaml").read_text()
    (tmp_path / "base.yaml").write_text(baseline.replace("name: llama-3.1-8b-baseline", "name: base"))
    drafting = "speculation: {method: ngram, draft_tokens: 3, config: {prompt_lookup: 3}}\n"
    unlike = baseline.replace("name: llama-3.1-8b-baseline", "name: unlike").replace("128", "64")
    (tmp_path / "unlike.yaml").write_text(unlike + drafting)
    (tmp_path / "broken.yaml").write_text("name: broken\nengin: vllm\n")
    done = profiles("check", tmp_path / "unlike.yaml", tmp_path / "broken.yaml", tmp_path / "base.yaml")
    assert done.code == 1
    lines = done.stdout.splitlines()
    assert any("broken.yaml:2: engin: no such field; did you mean engine?" in line for line in lines)
    assert any(
        "unlike.yaml:1: name: differs from base in more than speculation: --max-num-seqs 64" in line for line in lines
    )
    assert any("speculation.config.prompt_lookup: vLLM knows no such key" in line for line in lines)
    assert lines[-1] == "3 profiles checked: 2 wrong, by 5 faults"
    checked = profiles.told("check", tmp_path / "unlike.yaml")
    assert (checked["checked"], checked["faults"], len(checked["objections"])) == (1, 2, 2)


def test_a_baseline_is_looked_for_among_the_shipped_ones(profiles: Profiles, tmp_path: Path) -> None:
    """Whether a profile is named, given by its file or checked among all."""
    text = (ROOT / "server_profiles" / "qwen3-8b-baseline.yaml").read_text().replace("qwen3-8b-baseline", "mine")
    (tmp_path / "mine.yaml").write_text(text + "speculation: {method: ngram, draft_tokens: 3}\n")
    by_file = profiles("check", tmp_path / "mine.yaml")
    by_name = profiles("check", "mine", "--profiles-dir", tmp_path)
    every = profiles("check", "--profiles-dir", tmp_path)
    assert (by_file.stdout, by_file.code) == ("1 profile checked: nothing wrong\n", 0)
    assert (by_name.stdout, by_name.code) == ("1 profile checked: nothing wrong\n", 0)
    assert every.code == 0


def test_a_file_that_cannot_be_read_does_not_end_the_list(profiles: Profiles, tmp_path: Path) -> None:
    """The others are listed, it is named with its line, and the exit code tells."""
    (tmp_path / "broken.yaml").write_text("name: broken\nengin: vllm\n")
    done = profiles("list", "--profiles-dir", tmp_path)
    assert done.code == 2
    assert "\nllama-3.1-8b-eagle3 " in done.stdout
    assert "broken.yaml:2: engin: no such field; did you mean engine?" in done.stderr
    assert len(profiles("list", "--profiles-dir", tmp_path, "--json").stdout) > 1000


def test_a_stand_in_that_cannot_be_is_found(profiles: Profiles, tmp_path: Path) -> None:
    """What `simulator` says is an option of the simulator, and the model one that it knows."""
    text = (ROOT / "server_profiles" / "sim-eagle3.yaml").read_text().replace("sim-eagle3", "mine")
    (tmp_path / "mine.yaml").write_text(text.replace("gpu: h100", "gpu: h1000"))
    done = profiles("check", tmp_path / "mine.yaml")
    assert done.code == 1
    assert "h1000" in done.stdout


def test_a_simulator_takes_a_profile_by_name() -> None:
    """As it does by file."""
    line = [sys.executable, "-m", "loadgen", "sim", "--profile", "sim-eagle9"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "no such profile: 'sim-eagle9'" in done.stderr
    assert "did you mean sim-eagle3?" in done.stderr


@pytest.mark.slow
def test_an_installed_package_has_them(tmp_path: Path) -> None:
    """Built as a wheel and installed without the repository: the same profiles, found from anywhere."""
    wheels, environment = tmp_path / "wheels", tmp_path / "installed"
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(wheels),
    ]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True, timeout=300)
    venv.create(environment, with_pip=False, system_site_packages=False)
    (wheel,) = wheels.glob("loadgen-*.whl")
    site = next((environment / "lib").glob("python3*")) / "site-packages"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True, timeout=300)
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    code = f"import sys; sys.path.append({libraries!r}); from loadgen.cli import main; sys.argv[0] = 'loadgen'; main()"
    done = subprocess.run(
        [environment / "bin" / "python", "-c", code, "profiles", "list", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)["profiles"]
    assert [profile["name"] for profile in listed] == OURS
    assert all(profile["file"].startswith(str(site)) for profile in listed)
