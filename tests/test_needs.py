"""What is missing skips a test, and fails it in CI."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import needs

LACKING: dict[str, tuple[Callable[[dict[str, str]], object], str]] = {
    "anything": (lambda environment: needs.missing("the sea", environment), "the sea"),
    "a program": (
        lambda environment: needs.program("promtool", environment=environment | {"PATH": "/nowhere"}),
        "there is no promtool: install Debian's package prometheus",
    ),
    "test material": (
        lambda environment: needs.material(
            "data", "x.csv", environment=environment | {"LOADGEN_TEST_MATERIAL": "/nowhere"}
        ),
        "/nowhere/data/x.csv is not there; LOADGEN_TEST_MATERIAL names the folder of the test material",
    ),
    "a real engine": (
        lambda environment: needs.real_engine(environment | {"REAL_ENGINE_HOME": "/nowhere"}),
        "/nowhere holds no set-up engine: run real-engine/setup.sh of the test material, or name another"
        " REAL_ENGINE_HOME",
    ),
}


@pytest.mark.parametrize("what", LACKING)
def test_what_is_missing_fails_in_ci_and_skips_elsewhere(what: str) -> None:
    """With what it is, and what to do about it."""
    need, said = LACKING[what]
    ends = {"true": pytest.fail.Exception, "": pytest.skip.Exception, "false": pytest.skip.Exception}
    for in_ci, end in ends.items():
        with pytest.raises(
            (pytest.fail.Exception, pytest.skip.Exception)
        ) as ended:  # a skip that passed would skip this
            need({"CI": in_ci})
        assert (ended.type, ended.value.msg) == (end, said)


def test_what_is_there_is_found(tmp_path: Path) -> None:
    """A program under its other name where its first is missing, a file of the material, an engine that is set up."""
    other = tmp_path / "google-browser"
    other.touch(mode=0o755)
    environment = {"CI": "true", "PATH": str(tmp_path)}
    assert needs.program("no-browser", "google-browser", environment=environment) == str(other)
    (tmp_path / "data").mkdir()
    assert needs.material("data", environment={"LOADGEN_TEST_MATERIAL": str(tmp_path)}) == tmp_path / "data"
    (tmp_path / ".ready").touch()
    assert needs.real_engine({"REAL_ENGINE_HOME": str(tmp_path)}) == tmp_path
