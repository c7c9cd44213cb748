"""What the process of a run makes of an order, without the service around it."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadgen.service.child.perform import perform
from loadgen.service.child.telling import Teller
from loadgen.service.jobs.order import REPORT, SUMMARY, VIEW, Order, Outcome
from tests.cli.commands import ChatServer
from tests.fakes.scripted_server import plain


def performed(kind: str, options: dict[str, Any], folder: Path) -> Outcome:
    """What becomes of an order, while nobody listens."""
    nobody = os.open(os.devnull, os.O_WRONLY)
    teller = Teller(nobody)
    try:
        return perform(
            Order(run_id="r", kind=kind, options=options, folder=str(folder), allowed_hosts=[]),
            teller,
        )
    finally:
        teller.close()
        os.close(nobody)


def test_a_server_that_dies_between_two_levels_takes_nothing_with_it(tmp_path: Path) -> None:
    """The run has failed, with the reason, and has the result of the level before."""
    with ChatServer(closes_at=4) as server:
        url = server.url
        load = {"concurrency": [1, 2], "num_requests": 4, "warmup_requests": 0, "settle": 0, "grace": 0}
        outcome = performed("sweep", {"url": url, **load}, tmp_path)
    assert (outcome.exit_code, str(outcome.message).startswith(f"{url}: ")) == (4, True), outcome
    assert outcome.artefact is not None
    assert [level["level"] for level in msgspec.json.decode((tmp_path / SUMMARY).read_bytes())["levels"]] == [1]


def test_a_server_that_dies_between_two_probes_takes_nothing_with_it(tmp_path: Path) -> None:
    """The search has failed, with the reason, and has the probe before."""
    with ChatServer(closes_at=4) as server:
        url = server.url
        search = {"slo": "ttft=10s", "slo_attainment": 0.5, "num_requests": 4, "warmup_requests": 0, "settle": 0}
        outcome = performed("capacity", {"url": url, **search}, tmp_path)
    assert (outcome.exit_code, str(outcome.message).startswith(f"{url}: ")) == (4, True), outcome
    assert [probe["level"] for probe in msgspec.json.decode((tmp_path / SUMMARY).read_bytes())["probes"]] == [1]


@pytest.mark.slow
def test_an_experiment_in_which_nothing_completes_is_reported(tmp_path: Path) -> None:
    """Its runs are there, the baseline's included, and the page says what became of them. The gate decides, as it does
    at the command line."""
    with ChatServer(answer=(plain(b"no", status="500 Internal Server Error"),)) as server:
        options = {
            "name": "silent",
            "workload": {"synthetic": {"input_tokens": 16, "output_tokens": 2}},
            "load": {"concurrency": [1]},
            "level": {"num_requests": 3, "warmup_requests": 0},
            "arms": {"baseline": {"url": server.url}, "other": {"url": server.url}},
            "repeats": 1,
            "noise": "none",
            "cooldown": 0,
            "grace": 0,
            "gates": ["error_ratio > 1%"],
        }
        outcome = performed("experiment", options, tmp_path)
    assert outcome.message is None
    assert outcome.exit_code == 1
    (gate,) = outcome.gates
    assert gate.startswith("other at concurrency 1: error_ratio is 100%")
    assert "ran, and nothing completed (http_5xx 3)" in (tmp_path / REPORT).read_text()
    (part,) = msgspec.json.decode((tmp_path / VIEW).read_bytes())["parts"]
    assert part["headline"]["kind"] == "invalid"
