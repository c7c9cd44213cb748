"""What tests need of the machine that they run on. Where it is missing they are skipped; in CI, where all of it has to
be there, they fail.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

_PACKAGES = {
    "node": "nodejs",
    "promtool": "prometheus",
    "unshare": "util-linux",
    **dict.fromkeys(("createdb", "initdb", "pg_ctl"), "postgresql"),
}
"""Debian's, by program, where they have another name."""
_OFF_THE_PATH = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
"""Where Debian has programs that are for servers only, the newest first."""
_NO_NAMESPACES = (
    *("Operation not permitted", "Function not implemented", "Invalid argument", "No space left on device"),
    "unrecognized option",
)
"""Forbidden, unknown to the kernel, or none allowed; unknown to the program."""


def missing(what: str, environment: Mapping[str, str] = os.environ) -> NoReturn:
    """Skips the test that needs it, with these words; fails it where CI=true."""
    __tracebackhide__ = True
    if environment.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


def program(*names: str, environment: Mapping[str, str] = os.environ) -> str:
    """The path of a program, which may have several names."""
    __tracebackhide__ = True
    folders = os.pathsep.join((environment.get("PATH", os.defpath), *_OFF_THE_PATH))
    found = next((path for name in names if (path := shutil.which(name, path=folders)) is not None), None)
    if found is None:
        missing(f"there is no {names[0]}: install Debian's package {_PACKAGES.get(names[0], names[0])}", environment)
    return found


def chromium() -> str:
    """The path of a browser to open pages in."""
    return program("chromium", "chromium-browser", "google-chrome")


def namespaces(*flags: str) -> list[str]:
    """What runs a command in namespaces of its own, for whoever is not root in one in which he is.

    Where the system has none to give, that is certain by what it says; whatever else goes wrong is a failure.
    """
    line = [program("unshare"), *(() if os.geteuid() == 0 else ("--user", "--map-root-user")), *flags]
    tried = subprocess.run(
        [*line, "true"], capture_output=True, text=True, timeout=30, env={**os.environ, "LC_ALL": "C"}
    )
    if tried.returncode:
        assert any(said in tried.stderr for said in _NO_NAMESPACES), tried.stderr
        missing(f"no namespaces here: {tried.stderr.strip()}")
    return line


def material(*parts: str, environment: Mapping[str, str] = os.environ) -> Path:
    """A part of the test material: of LOADGEN_TEST_MATERIAL, else of `shared` beside the repository."""
    __tracebackhide__ = True
    beside = Path(__file__).parents[2] / "shared"
    path = Path(environment.get("LOADGEN_TEST_MATERIAL") or beside).joinpath(*parts)
    if not path.exists():
        missing(f"{path} is not there; LOADGEN_TEST_MATERIAL names the folder of the test material", environment)
    return path


def real_engine(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of a vLLM that was set up: REAL_ENGINE_HOME, else one in the user's cache."""
    __tracebackhide__ = True
    home = Path(environment.get("REAL_ENGINE_HOME") or Path.home() / ".cache" / "real-engine")
    if not (home / ".ready").exists():
        missing(
            f"{home} holds no set-up engine: run real-engine/setup.sh of the test material, or name another"
            " REAL_ENGINE_HOME",
            environment,
        )
    return home
