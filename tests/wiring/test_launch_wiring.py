"""From an arm of an experiment to its server, and to its end."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from loadgen.adapters.http.control import control_client
from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.health import missing_for_readiness
from loadgen.adapters.launch.checks import port_is_free
from loadgen.core.errors import ConfigError, TargetError
from loadgen.engine.ports import Launcher, StopKind
from loadgen.options.experiment import ArmSection
from loadgen.wiring.launch import launched, launcher_of
from tests.cli.commands import ChatServer
from tests.fakes.scripted_server import Peer, ScriptedServer, plain

SERVER = Path(__file__).parents[1] / "adapters" / "launch" / "server.py"


def launcher(folder: Path, *, start_timeout_s: float = 30.0, **arm: Any) -> Launcher:
    """What starts the server of an arm that stands in a file like that."""
    how = {name: arm.pop(name) for name in ("variables", "forced_length", "start") if name in arm}
    return launcher_of(
        ArmSection.model_validate(arm),
        log=folder / "log",
        kept=folder / "kept.json",
        start_timeout_s=start_timeout_s,
        **how,
    )


async def test_a_simulated_server_with_all_kinds_of_options(tmp_path: Path) -> None:
    """Lists, mappings, ranges and switches reach it as the file has them; options for the load do not."""
    it = launcher(
        tmp_path,
        sim={
            "acceptance": [0.5, 0.25],
            "prefix-caching": False,
            "fault": ["delay=1ms@1%", "429=2s@1%"],
            "speculation_config": {"model": "a drafter"},
            "draft_tokens_by_batch": [[1, 64, 2], [65, 256, 0]],
            "speed": 10,
            "model_name": "mine",
        },
        method="eagle3",
        draft_tokens=2,
        start=3,
        variables={**os.environ, "LOADGEN_DIALECT": "sglang"},
    )
    async with launched(it) as server:
        for part in (
            "--acceptance 0.5,0.25 --no-prefix-caching --fault delay=1ms@1%,429=2s@1%",
            """--speculation-config '{"model": "a drafter"}' --draft-tokens-by-batch 1-64:2,65-256:0 --speed 10""",
            "--method eagle3 --draft-tokens 2 --seed 2",
        ):
            assert part in server.how
        destination = Destination.from_url(server.url)
        assert await missing_for_readiness(destination, "/health") is None
        async with control_client(destination) as client:
            assert "vllm:" in (await client.get("/metrics")).text
    stopped = await it.stop()
    assert (stopped.how, stopped.exit_status) == (StopKind.ASKED, 0)
    assert port_is_free(int(server.url.rpartition(":")[2]))
    assert "mine at http://127.0.0.1:" in (tmp_path / "log").read_text()


async def test_a_command_with_its_variables(tmp_path: Path) -> None:
    """What they hold, and what the server inherits under the name of a secret, does not stand in its log."""
    script = 'echo "$GIVEN, $HF_TOKEN, $PLAIN"; exec "$0" "$@"'
    it = launcher(
        tmp_path,
        command=["sh", "-c", script, sys.executable, "-S", str(SERVER), "{port}"],
        env={"GIVEN": "${MINE}", "PLAIN": "in plain sight"},
        variables={**os.environ, "MINE": "first secret", "HF_TOKEN": "second secret"},
    )
    async with launched(it):
        pass
    assert (tmp_path / "log").read_text().startswith("[secret], [secret], in plain sight\n")


async def test_the_lengths_of_forced_acceptance_reach_a_command(tmp_path: Path) -> None:
    """Behind its own arguments."""
    it = launcher(
        tmp_path,
        command=f"{sys.executable} -S {SERVER} {{port}}",
        method="eagle3",
        draft_tokens=3,
        forced={"arguments": ["says=length {length}"]},
        forced_length=4,
    )
    async with launched(it) as server:
        assert server.how.endswith("'says=length 4'")


async def test_a_server_that_is_not_well_is_waited_for(tmp_path: Path) -> None:
    """What its health page answers is said in the end."""
    ill = plain(b"loading", status="503 Service Unavailable")

    def answer(peer: Peer) -> None:
        while peer.read_request() is not None:
            peer.send(ill)

    with (
        ScriptedServer(answer) as server,
        pytest.raises(TargetError, match=r"not ready after .*: /ping answers 503$"),
    ):
        await launcher(tmp_path, url=server.url, health="/ping", start_timeout_s=0.1).start()


async def test_a_running_server_without_a_health_page(tmp_path: Path) -> None:
    """It is ready when it lists its models, and it is left running; one that is not there is named, without its
    credentials."""
    with ChatServer() as chat:
        url = "http://${USER_INFO}@" + chat.url.removeprefix("http://")
        shown, variables = chat.url, {"USER_INFO": "me:password"}
        it = launcher(tmp_path, url=url, variables=variables)
        async with launched(it) as server:
            assert server.url == shown
        assert (await it.stop()).how == StopKind.LEFT_RUNNING
    with pytest.raises(TargetError, match=rf"^{shown}: not ready after .*{shown} cannot be reached"):
        await launcher(tmp_path, url=url, variables=variables, start_timeout_s=0.1).start()


def test_what_cannot_be_started_is_said(tmp_path: Path) -> None:
    """A variable that is not set."""
    with pytest.raises(ConfigError, match="NOWHERE"):
        launcher(tmp_path, command="serve {port}", env={"A": "${NOWHERE}"}, variables={})
