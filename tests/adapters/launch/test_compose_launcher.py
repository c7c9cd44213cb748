"""Services of a Compose file, against a stand-in for Docker."""

import os
import sys
from pathlib import Path

import pytest

from loadgen.adapters.launch.compose import ComposeService, check_compose, env_file_in, variables_in
from loadgen.adapters.launch.process import ProcessLauncher
from loadgen.adapters.launch.waiting import Waiting
from loadgen.core.errors import ConfigError, TargetError
from loadgen.engine.ports import StopKind
from tests.adapters.launch.launching import ask, log_of

DOCKER = Path(__file__).with_name("docker.py")
SERVICE = ComposeService(
    file=Path("docker-compose.yml"),
    service="vllm",
    project="loadgen-eagle3",
    url="http://127.0.0.1:{port}",
    profile="eagle3",
)
BASE = "compose --file docker-compose.yml --project-name loadgen-eagle3 --profile eagle3"


def launcher(folder: Path) -> ProcessLauncher:
    """A launcher of the service on a free port."""
    command = SERVICE.command(
        environment={**os.environ, "SERVER_PORT": "{port}"},
        grace_s=30,
        compose=(sys.executable, "-S", str(DOCKER), str(folder), "compose"),
    )
    return ProcessLauncher(command, log=folder / "log", waiting=Waiting(ask=ask, timeout_s=20))


async def test_a_service_is_brought_up_and_taken_down(tmp_path: Path) -> None:
    """What an accident left goes first; afterwards no container is left, whatever became of the service."""
    (tmp_path / "container").touch()
    it = launcher(tmp_path)
    await it.start()
    stopped = await it.stop()
    assert (stopped.how, stopped.exit_status) == (StopKind.ASKED, 0)
    assert (tmp_path / "calls").read_text().splitlines() == [
        f"{BASE} down --timeout 15",
        f"{BASE} up --no-color --no-log-prefix --timeout 15 --exit-code-from vllm vllm",
        f"{BASE} down --timeout 15",
    ]
    assert not (tmp_path / "container").exists()
    assert log_of(tmp_path) == "serving\n"


async def test_what_docker_says_is_passed_on(tmp_path: Path) -> None:
    """When there is no Docker to talk to, or the file is no good, before anything is brought up."""
    (tmp_path / "refusal").write_text("Cannot connect to the Docker daemon\n")
    with pytest.raises(TargetError, match=r"down --timeout 15: exit status 1: Cannot connect to the Docker daemon$"):
        await launcher(tmp_path).start()
    assert len((tmp_path / "calls").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("url", "port"),
    [("http://localhost:8000", 8000), ("http://gpu-box:8000", None), ("http://127.0.0.1:{port}", None)],
)
def test_only_a_port_of_this_machine_is_watched(url: str, port: int | None) -> None:
    """The one that the URL says; elsewhere there is nothing to be seen from here."""
    service = ComposeService(file=Path("f"), service="s", project="p", url=url)
    assert service.command(environment={}).port == port


def test_variables_of_a_folder_stand_before_the_file() -> None:
    """Compose takes its first options before those of the command."""
    service = ComposeService(file=Path("f"), service="s", project="p", url="http://h", env_file=Path("/here/.env"))
    command = service.command(environment={})
    assert command.arguments[:7] == ("docker", "compose", "--env-file", "/here/.env", "--file", "f", "--project-name")
    assert command.before[:4] == command.behind[:4] == ("docker", "compose", "--env-file", "/here/.env")


def test_a_folder_has_a_file_of_variables_or_none(tmp_path: Path) -> None:
    """Its values are those that Compose reads."""
    assert env_file_in(tmp_path) is None
    (tmp_path / ".env").write_text(
        "# HF_TOKEN=commented\nPLAIN=no\nHF_TOKEN=one # a comment\nexport API_KEY='two # three'\n"
        'DB_PASSWORD="four"\nEMPTY_TOKEN=\nnot a setting\n'
    )
    file = env_file_in(tmp_path)
    assert file == tmp_path / ".env"
    assert variables_in(file) == {
        "PLAIN": "no",
        "HF_TOKEN": "one",
        "API_KEY": "two # three",
        "DB_PASSWORD": "four",
        "EMPTY_TOKEN": "",
    }
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"\.env: expected text in UTF-8"):
        variables_in(file)


def test_compose_is_called_before_it_is_needed(tmp_path: Path) -> None:
    """Docker that is not there, one without the plugin with what it says, and one that answers."""
    with pytest.raises(ConfigError, match="Compose plugin, and there is no `docker` here"):
        check_compose({"PATH": str(tmp_path)})
    stand_in = (sys.executable, "-S", str(DOCKER), str(tmp_path), "compose")
    (tmp_path / "refusal").write_text("docker: 'compose' is not a docker command.\nSee 'docker --help'\n")
    with pytest.raises(ConfigError, match=r"version` says: docker: 'compose' is not a docker command\. Install"):
        check_compose(os.environ, stand_in)
    check_compose(os.environ, (sys.executable, "-c", "pass"))
