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

TARGETS = ("loadgen", "simulator", "service", "locust")
LOCKS = ("requirements", "service", "locust", "build")
BUILDS = {"build": "loadgen", "build-service": "service", "build-locust": "locust"}
"""Stages that install, by the one that takes what they have installed."""
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
    assert bases == {"${PYTHON_IMAGE}", "build", "base", "loadgen"}


@pytest.mark.parametrize("target", TARGETS)
def test_signals_reach_the_program(target: str) -> None:
    """Exec form everywhere, so that no shell is process 1; and the user is none in particular, by number."""
    image = image_of(target)
    assert words_of(image["ENTRYPOINT"]) == ["loadgen"]
    assert words_of(image["CMD"])
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", image["USER"])


@pytest.mark.parametrize("target", ["simulator", "service", "locust"])
def test_a_server_tells_of_its_health(target: str) -> None:
    """Without a shell, and often at the start."""
    check = image_of(target)["HEALTHCHECK"]
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


@pytest.mark.parametrize("name", [f"{lock}.lock" for lock in LOCKS])
def test_the_image_takes_the_versions_of_development(name: str) -> None:
    """What is tested is what is shipped: each locked version, with its hashes, is that of the other lock."""
    ours, theirs = (_locked(path) for path in (ROOT / "deploy" / name, ROOT / "requirements.lock"))
    assert ours
    assert ours.items() <= theirs.items()


@pytest.mark.parametrize("extra", ["service", "locust"])
def test_a_lock_of_an_extra_goes_on_from_the_first(extra: str) -> None:
    """It has what the first one has, so that nothing is replaced, and more."""
    plain, more = (_locked(ROOT / "deploy" / f"{name}.lock") for name in ("requirements", extra))
    assert plain.items() < more.items()


def test_an_image_has_what_was_installed_for_it() -> None:
    """Each takes the environment of its own stage."""
    for build, target in BUILDS.items():
        assert ("COPY", f"--from={build} /opt/loadgen /opt/loadgen") in stage(target)


def _locked(path: Path) -> dict[str, str]:
    """Hashes by name and version. Markers differ: each lock says where its own extras need a package."""
    blocks = re.split(r"\n(?=\S)", re.sub(r"^ +#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
    return {re.split(r" [;\\]", block)[0]: " ".join(sorted(re.findall(r"sha256:\w+", block))) for block in blocks}


@pytest.mark.slow
def test_the_build_stages_leave_commands_that_work(tmp_path: Path) -> None:
    """Their instructions, carried out here: dependencies by hash, then the package, with its profiles and without pip;
    then each extra on top of that."""
    python = tmp_path / "python"
    (tmp_path / "src").mkdir()
    subprocess.run([sys.executable, "-m", "venv", python], check=True)
    environment = {**os.environ, "PATH": f"{python / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    for build, said in {"build": "sim-eagle3", "build-service": "--admin-key-file", "build-locust": "--worker"}.items():
        plain = tmp_path / "plain" / "loadgen"
        if build != "build":
            shutil.rmtree(tmp_path / "loadgen")
            shutil.copytree(plain, tmp_path / "loadgen", symlinks=True)
        _carry_out(build, tmp_path, environment)
        if build == "build":
            shutil.copytree(tmp_path / "loadgen", plain, symlinks=True)
        _check(tmp_path / "loadgen" / "bin", build, said)


def _carry_out(build: str, folder: Path, environment: dict[str, str]) -> None:
    for name, rest in stage(build):
        if name == "COPY":
            *files, to = shlex.split(rest)
            for file in files:
                place = folder / "src" / to
                _copy(ROOT / file, place / Path(file).name if to.endswith("/") else place)
        elif name == "RUN":
            command = rest.replace("/opt/loadgen", str(folder / "loadgen")).replace("/wheels", str(folder / "wheels"))
            subprocess.run(["sh", "-euc", command], cwd=folder / "src", env=environment, check=True, timeout=300)


def _check(programs: Path, build: str, said: str) -> None:
    """The command of the image answers, by what is installed there alone."""
    command = {
        "build": ("profiles", "list", "--json"),
        "build-service": ("serve", "--help"),
        "build-locust": ("locust", "--help"),
    }[build]
    modules = {"build": "loadgen", "build-service": "loadgen.service.serve, psycopg", "build-locust": "locust"}[build]
    for line in (
        [programs / "loadgen", *command],
        [programs / "python", "-I", "-c", f"import {modules}; print({said!r})"],
    ):
        done = subprocess.run(line, capture_output=True, text=True, cwd=programs.parent, timeout=120)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
    assert not list(programs.glob("pip*"))


def _copy(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, to, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, to)
