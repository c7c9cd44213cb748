"""`loadgen sim` as a user runs it."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from loadgen.cli.app import run_command_line
from loadgen.sim.child import ChildServer
from loadgen.wiring.sim import spawn_simulator
from tests.cli.commands import loadgen

START_S = 30.0
END_S = 10.0
PROFILES = Path(__file__).parents[2] / "server_profiles"


@contextmanager
def simulator(*arguments: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """The command in a process of its own, that listens: its first line to people was read."""
    line = [sys.executable, "-m", "loadgen", "sim", "--port", "0", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        line, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env={**os.environ, **environment}
    ) as process:
        try:
            assert process.stderr is not None
            assert select.select([process.stderr], [], [], START_S)[0]
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def server() -> Iterator[ChildServer]:
    """Ten times as fast as the H100 of a profile, with half of each position's drafts accepted."""
    profile = str(PROFILES / "sim-eagle3.yaml")
    with spawn_simulator(
        "--profile", profile, "--acceptance", "0.5,0.25", "--draft-tokens", "2", "--speed", "10"
    ) as it:
        yield it


def test_a_run_against_it(server: ChildServer, tmp_path: Path) -> None:
    """All requests complete with the tokens asked for, and what was accepted is what was simulated."""
    load = ("--concurrency", 4, "--num-requests", 20, "--ignore-eos", "--input-tokens", 32, "--output-tokens", 200)
    done = loadgen("run", "--url", server.url, *load, "--json", out=tmp_path)
    assert done.code in (0, 3), done.stderr  # 3: a busy machine is a poor client, which is not this test's matter
    assert done.summary["requests"]["completed"] == 20
    assert done.summary["tokens"]["output"] == 4000
    assert done.summary["target"]["model"] == "meta-llama/Llama-3.1-8B-Instruct"
    speculation = done.summary["speculation"]
    assert speculation["coverage_ratio"] == 1.0
    assert speculation["acceptance_length"] == pytest.approx(1.75, abs=0.1)


def test_it_says_how_late_it_was(server: ChildServer) -> None:
    """A page of its own, beside those of the server it imitates."""
    with urlopen(f"{server.url}/sim/lateness") as page:
        assert json.load(page)["emissions"] >= 0
    with urlopen(f"{server.url}/metrics") as page:
        assert b"vllm:spec_decode_num_drafts_total" in page.read()


def test_it_tells_people_what_it_is_and_what_it_did() -> None:
    """Address, what is imitated, what goes wrong, and at the end what was served. The environment gives options as to
    every command;
    SIGTERM is an orderly end."""
    faults = ("--fault", "reset=3@1%", "--fault", "restart=30s")
    with simulator(
        "--speed", "2", "--method", "ngram", *faults, LOADGEN_MODEL_NAME="mine", LOADGEN_DIALECT="sglang"
    ) as process:
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=END_S)
    assert (process.returncode, out) == (0, "")
    listens, stands_for, goes_wrong, served = said.splitlines()
    assert listens.startswith("mine at http://127.0.0.1:")
    assert listens.endswith(", with the answers of sglang")
    assert stands_for.startswith(
        "simulated: Llama-3.1-8B on 1 x H100 SXM, 2 times as fast; ngram with 3 draft tokens, "
    )
    assert goes_wrong == "goes wrong on purpose: reset=3@1%, restart=30s"
    assert served == "served 0 requests"


@pytest.mark.parametrize("nothing", [{"input": ""}, {"stdin": subprocess.DEVNULL}], ids=["pipe", "device"])
def test_json_is_one_line_and_the_end_of_stdin_is_its_end(nothing: dict[str, Any]) -> None:
    """For a program that starts it: the address on stdout, nothing else, and no orphan."""
    line = [sys.executable, "-m", "loadgen", "sim", "--port", "0", "--json", "--until-stdin-closes"]
    done = subprocess.run(line, **nothing, capture_output=True, text=True, timeout=START_S)
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["url"] == f"http://127.0.0.1:{said['port']}"
    assert said["model"] == "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "magic"), "--method: expected one of none, ngram, draft_model"),
        (("--fault", "explode"), "--fault explode: expected one of delay, stall"),
        (("--fault", "lossy=5%"), "--fault lossy is for a speculative --method"),
        (("--target", "deepseek-v3"), "DeepSeek-V3 does not fit into 1 x H100 SXM"),
        (("--api-key-env", "LOADGEN_TEST_NO_KEY"), "--api-key-env: expected a key in the environment variable"),
        (("--profile", "absent.yaml"), "absent.yaml: cannot be read: No such file"),
        (("--method", "draft_model", "--target", "gpt-oss-20b"), "--draft: no small relative of gpt-oss-20b is known"),
    ],
)
def test_what_cannot_be_served_is_said_before_it_listens(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and one line that says what was expected."""
    assert run_command_line(["sim", "--port", "0", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("loadgen: ")
    assert message in said.err


def test_a_port_in_use_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, with host and port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run_command_line(["sim", "--port", port]) == 2
    assert capsys.readouterr().err == (
        f"loadgen: --host 127.0.0.1 --port {port}: cannot listen there: Address already in use\n"
    )


def test_help_names_what_can_be_chosen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods, servers and faults stand in the help, each under its heading."""
    monkeypatch.setenv("COLUMNS", "200")
    assert run_command_line(["sim", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for name in (
        "none|ngram|draft_model",
        "sglang|llamacpp",
        "restart=30s",
        "--no-prefix-caching",
        "Serving",
        "Faults",
    ):
        assert name in text
