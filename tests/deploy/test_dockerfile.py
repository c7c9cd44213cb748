"""What the Dockerfile says, and what its build leaves."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.compose import ROOT, image_of, instructions, stage, words_of

TARGETS = ("loadgen", "simulator")
HADOLINT = Path(sys.executable).with_name("hadolint")


def test_hadolint_has_nothing_to_say() -> None:
    """With every rule it has."""
    done = subprocess.run([HADOLINT, ROOT / "Dockerfile"], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_base_is_pinned() -> None:
    """By digest, and there is but one: what was built runs on what it was built on."""
    (argument,) = (rest for name, rest in instructions() if name == "ARG")
    assert re.fullmatch(r"PYTHON_IMAGE=python:\d+\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", argument)
    bases = {rest.split()[0] for name, rest in instructions() if name == "FROM"}
    assert bases == {"${PYTHON_IMAGE}", "loadgen"}


@pytest.mark.parametrize("target", TARGETS)
def test_signals_reach_the_program(target: str) -> None:
    """Exec form everywhere, so that no shell is process 1; and the user is none in particular, by number."""
    image = image_of(target)
    assert words_of(image["ENTRYPOINT"]) == ["loadgen"]
    assert words_of(image["CMD"])
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", image["USER"])


def test_the_simulator_tells_of_its_health() -> None:
    """Without a shell, and often at the start."""
    check = image_of("simulator")["HEALTHCHECK"]
    assert words_of(check.partition("CMD ")[2])[0] == "python"
    assert "--start-interval=1s" in check


def test_what_is_copied_is_let_through_and_nothing_else() -> None:
    """The ignore file lists exactly what the Dockerfile takes, so that no secret of a checkout is in an image."""
    copied = {
        source
        for name, rest in instructions()
        if name == "COPY" and not rest.startswith("--from")
        for source in shlex.split(rest)[:-1]
    }
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    nothing, *rules = [line for line in lines if line and not line.startswith("#")]
    assert nothing == "*"
    listed = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    assert listed == copied


@pytest.mark.parametrize("name", ["requirements.lock", "build.lock"])
def test_the_image_takes_the_versions_of_development(name: str) -> None:
    """What is tested is what is shipped: each locked version, with its hashes, is that of the other lock."""
    ours, theirs = (_locked(path) for path in (ROOT / "deploy" / name, ROOT / "requirements.lock"))
    assert ours.items() <= theirs.items()


def _locked(path: Path) -> dict[str, str]:
    """Hashes by name, version and marker."""
    blocks = re.split(r"\n(?=\S)", re.sub(r"^ +#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
    return {block.partition(" \\")[0]: " ".join(sorted(re.findall(r"sha256:\w+", block))) for block in blocks}


@pytest.mark.slow
def test_the_build_stage_leaves_a_command_that_works(tmp_path: Path) -> None:
    """Its instructions, carried out here: dependencies by hash, then the package, with its profiles and without pip."""
    source, python = tmp_path / "src", tmp_path / "python"
    source.mkdir()
    subprocess.run([sys.executable, "-m", "venv", python], check=True)
    for name, rest in stage("build"):
        if name == "COPY":
            *files, to = shlex.split(rest)
            for file in files:
                _copy(ROOT / file, source / to / Path(file).name if to.endswith("/") else source / to)
        elif name == "RUN":
            command = rest.replace("/opt/loadgen", str(tmp_path / "loadgen")).replace(
                "/wheels", str(tmp_path / "wheels")
            )
            environment = {**os.environ, "PATH": f"{python / 'bin'}{os.pathsep}{os.environ['PATH']}"}
            subprocess.run(["sh", "-euc", command], cwd=source, env=environment, check=True, timeout=300)
    folder = tmp_path / "loadgen" / "bin"
    line = [folder / "loadgen", "profiles", "list", "--json"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    assert '"sim-eagle3"' in done.stdout
    assert not list(folder.glob("pip*"))
    assert not list(folder.glob("pytest*"))


def _copy(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, to, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, to)
