"""`loadgen doctor` as a user runs it."""

import json
import socket
import subprocess
import sys

import pytest

from loadgen.cli.doctor import DOCTOR_SCHEMA, as_json, conclusion, doctor_text, exit_code
from loadgen.sim.check import Check
from loadgen.sim.truth import spawn_truth_server
from loadgen.wiring.doctor import Examination


def doctor(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "loadgen", "doctor", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(filter(None, sys.path)), **environment},
    )


@pytest.mark.slow
def test_the_native_client_and_a_target_are_checked_together():
    """Counts, shapes and failures are right, latencies are told, and the target shows what it can; JSON is strict."""
    with spawn_truth_server() as truth:
        done = doctor("--transport", "native", "--url", truth.url, "--json")
    found = json.loads(done.stdout, parse_constant=pytest.fail)
    assert found["schema"] == DOCTOR_SCHEMA
    assert all({"name", "ok", "value", "limit"} <= check.keys() for check in found["checks"])
    checks = {check["name"]: check for check in found["checks"]}
    exact = [name for name, check in checks.items() if check["relation"] == "equal" and check["required"]]
    assert [name for name in exact if not checks[name]["ok"]] == []
    assert len([name for name in exact if name.startswith("native.")]) >= 29
    assert not any(name.startswith("httpx.") for name in checks)
    assert checks["native.ttft_bias_p50_s"]["limit"] == 0.001
    assert checks["target.model"]["value"] == "truth"
    assert checks["target.engine"]["value"] == "loadgen-truth"
    can = ["streaming", "usage_in_stream", "continuous_usage", "token_ids"]
    assert [name for name in can if checks[f"target.{name}"]["value"] is not True] == []
    assert checks["target.metrics"]["value"] == "/metrics"
    failed = [check["name"] for check in found["checks"] if check["required"] and not check["ok"]]
    assert (done.returncode, found["ok"]) == ((1, False) if failed else (0, True)), "only latencies may fail here"
    assert done.stderr == ""


@pytest.mark.slow
def test_the_second_transport_is_checked_too():
    """Through httpx the counts, shapes and failures are right as well; its stamps are a coroutine's."""
    done = doctor("--transport", "httpx", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    exact = [check for check in checks.values() if check["relation"] == "equal" and check["required"]]
    assert [check["name"] for check in exact if not check["ok"]] == []
    assert checks["httpx.timing_source"]["value"] == "coroutine"


def test_an_unreachable_target_ends_with_4_and_still_tells_why():
    """The checks are printed, the target's reason among them, no password anywhere."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://user:hunter2-hunter2@127.0.0.1:{unused.getsockname()[1]}"
        done = doctor("--transport", "none", "--url", url, "--json")
    assert done.returncode == 4
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["target.reachable"]["ok"] is False
    assert "cannot be reached" in checks["target.reachable"]["advice"]
    assert "hunter2" not in done.stdout + done.stderr


@pytest.mark.slow
def test_the_human_form_is_a_table_and_a_sentence():
    """Without --json there is a table, and the last line says how it stands."""
    with spawn_truth_server() as truth:
        done = doctor("--transport", "none", "--url", truth.url + "/v1", "--endpoint", "completions")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("Target\n")
    assert "engine_version" in done.stdout
    assert done.stdout.splitlines()[-1] == "Every required check passed."


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--transport", "carrier-pigeon"], "--transport"),
        (["--url", "ftp://example"], "base URL"),
        (["--url", "http://127.0.0.1:1", "--api-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY"),
        (["-H", "novalue"], "KEY=VALUE"),
    ],
)
def test_a_wrong_option_is_named_before_anything_runs(arguments, expected):
    """Usage errors end with 2 and name the option."""
    done = doctor(*arguments)
    assert done.returncode == 2
    assert expected in done.stderr
    assert done.stdout == ""


def test_a_target_without_its_model_named_is_told():
    """A model that cannot be chosen is a failed check with what to give, not an unreachable target."""
    found = Examination(
        checks=(Check(name="target.model", ok=False, value=None, advice="--model: expected one of …"),), reached=True
    )
    assert exit_code(found) == 1
    assert conclusion(found) == "1 required check failed: target.model"


LATE = "run the doctor alone"
EXAMINED = Examination(
    checks=(
        Check(name="machine.cores", ok=False, value=1, limit=2, relation="at_least", required=False, advice="get two"),
        Check(name="native.ttft_bias_p50_s", ok=True, value=0.0001, limit=0.001, relation="at_most", advice=LATE),
        Check(name="native.ttft_bias_p99_s", ok=False, value=0.02, limit=0.003, relation="at_most", advice=LATE),
        Check(name="native.schedule_lag_p99_s", ok=False, value=0.01, limit=0.003, relation="at_most", advice=LATE),
        Check(name="native.shape.cr", ok=True, value="as sent", limit="as sent"),
        Check(name="native.shape.crlf", ok=True, value="as sent", limit="as sent"),
        Check(name="native.failure.reset", ok=False, value="empty", limit="read"),
        Check(name="target.model", ok=True, value="org/" + "m" * 40, required=False),
    ),
    reached=True,
)


def test_checks_stand_with_what_they_are_of() -> None:
    """A section each; shapes that are as scripted share a row, a failure that is not has its own; advice comes once."""
    assert doctor_text(EXAMINED).splitlines() == [
        "This machine",
        "  note  cores  1  ≥ 2",
        "  cores: get two",
        "",
        "Native transport",
        "  ok    ttft_bias_p50_s     100 µs         ≤ 1 ms",
        "  FAIL  ttft_bias_p99_s     20 ms          ≤ 3 ms",
        "  FAIL  schedule_lag_p99_s  10 ms          ≤ 3 ms",
        "  FAIL  failure.reset       empty          read",
        "  ok    shape.*             2 as scripted",
        "  ttft_bias_p99_s, schedule_lag_p99_s: run the doctor alone",
        "",
        "Target",
        f"  ok  model  org/{'m' * 40}",
        "",
        "3 required checks failed: native.ttft_bias_p99_s, native.schedule_lag_p99_s, native.failure.reset",
    ]
    assert exit_code(EXAMINED) == 1
    assert as_json(EXAMINED)["ok"] is False


def test_a_narrow_terminal_cuts_nothing() -> None:
    """What does not fit goes on in the next line."""
    narrow = doctor_text(EXAMINED, width=40)
    assert all(len(line) <= 40 for line in narrow.splitlines())
    assert "m" * 40 in "".join(narrow.split())


@pytest.mark.slow
def test_what_is_checked_unless_told_otherwise_is_what_runs_use() -> None:
    """The native transport alone; no row wastes the width of a pipe, and no advice names the other transport."""
    done = doctor()
    assert "Native transport" in done.stdout
    assert "httpx" not in done.stdout
    assert all(len(line) <= 100 for line in done.stdout.splitlines())
    assert done.returncode in (0, 1)
