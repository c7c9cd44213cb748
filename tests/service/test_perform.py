"""What the process of a run makes of an order, without the service around it."""

import os
from pathlib import Path

import msgspec

from loadgen.service.child.perform import perform
from loadgen.service.child.telling import Teller
from loadgen.service.jobs.order import REPORT, VIEW, Order
from tests.cli.commands import ChatServer
from tests.fakes.scripted_server import plain


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
        order = Order(run_id="r", kind="experiment", options=options, folder=str(tmp_path), allowed_hosts=[])
        nobody = os.open(os.devnull, os.O_WRONLY)
        teller = Teller(nobody)
        outcome = perform(order, teller)
        teller.close()
        os.close(nobody)
    assert outcome.message is None
    assert outcome.exit_code == 1
    (gate,) = outcome.gates
    assert gate.startswith("other at concurrency 1: error_ratio is 100%")
    assert "ran, and nothing completed (http_5xx 3)" in (tmp_path / REPORT).read_text()
    (part,) = msgspec.json.decode((tmp_path / VIEW).read_bytes())["parts"]
    assert part["headline"]["kind"] == "invalid"
