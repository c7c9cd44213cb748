"""The login of Locust's page, by variable and by file."""

from pathlib import Path
from typing import Any

import pytest

from loadgen.core.errors import ConfigError
from loadgen.locustio.swarm.login import login_of
from loadgen.options.locust import LocustOptions
from loadgen.options.resolve import resolve


def login(**given: Any) -> tuple[str, str] | None:
    return login_of(resolve(LocustOptions, given, environment={}))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file as its owner keeps it."""
    path = tmp_path / "login"
    path.touch(mode=0o600)
    return path


@pytest.mark.parametrize("mode", [0o600, 0o444])
def test_a_file_has_the_user_before_the_first_colon(file: Path, mode: int) -> None:
    """The line's end is no part of the password; who may read the file, as in a container's volume, is not asked."""
    file.write_text("ada:a long: password\n", encoding="utf-8")
    file.chmod(mode)
    assert login(web_login_file=str(file)) == ("ada", "a long: password")


def test_nobody_is_asked_without_one() -> None:
    """As on a page for this machine alone."""
    assert login() is None


def test_a_variable_does_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked up when the page starts."""
    monkeypatch.setenv("LOADGEN_PAGE", "ada:secret")
    assert login(web_login_env="LOADGEN_PAGE") == ("ada", "secret")
    with pytest.raises(
        ConfigError, match="--web-login-env: expected USER:PASSWORD in the environment variable NO_PAGE"
    ):
        login(web_login_env="NO_PAGE")


@pytest.mark.parametrize("content", [b"", b"ada\n", b":secret", b"ada:", b"ada:secret\nbob:other\n"])
def test_what_is_no_login_is_refused_and_not_shown(file: Path, content: bytes) -> None:
    """With what was expected; what stands there instead may be a secret all the same."""
    file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        login(web_login_file=str(file))
    assert str(refused.value) == f"--web-login-file: expected a line USER:PASSWORD in {file}"


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_is_refused(file: Path, mode: int) -> None:
    """They could let themselves in."""
    file.write_text("ada:secret")
    file.chmod(mode)
    with pytest.raises(ConfigError, match=f"may be written by others than its owner: chmod 600 {file}"):
        login(web_login_file=str(file))


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    """One that is not there, a folder, and what is no text."""
    file.write_bytes(b"ada:\xff")
    for path, said in ((file.parent / "none", "No such file"), (file.parent, "Is a directory"), (file, "no text")):
        with pytest.raises(ConfigError, match=f"--web-login-file: {path} cannot be read: {said}"):
            login(web_login_file=str(path))
