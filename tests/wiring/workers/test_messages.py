"""What leader and workers say survives the way between them."""

from pathlib import Path
from typing import Any

import pytest

from loadgen.core.request import Endpoint, RequestTemplate, Sampling
from loadgen.core.run import ClientFacts, Load, LoadMode, TimingSource, Window
from loadgen.core.schedule.share import Share
from loadgen.engine.live import LiveCounts
from loadgen.engine.outlook import Outlook
from loadgen.engine.runner import RunEnd
from loadgen.options.capacity import CapacityOptions
from loadgen.options.load import CommonOptions, RunOptions, SweepOptions
from loadgen.wiring.workers.messages import (
    Abort,
    Axis,
    Began,
    Ended,
    Failed,
    Job,
    Measuring,
    Progress,
    Ready,
    Start,
    Stop,
    command_of,
    decode_from_worker,
    decode_to_worker,
    encode,
    options_in_job,
    options_of,
)

URL = "http://user:secret@127.0.0.1:8000/v1"


def job(options: CommonOptions, **changes: Any) -> Job:
    values = {
        "command": command_of(options),
        "options": options_in_job(options),
        "seed": 2**63 - 1,
        "load": Load(mode=LoadMode.RATE, request_rate_rps=2.5, duration_s=1.5, seed=3),
        "share": Share(index=1, count=3),
        "run_id": "r",
        "template": RequestTemplate(
            endpoint=Endpoint.CHAT, model="m", sampling=Sampling(temperature=0.5), extra_body={"cache_salt": "ab"}
        ),
        "warmup_requests": 4,
        "first_pass": 2,
        "axis": Axis(origin_unix_ns=1_796_019_240_000_000_000, clock_ahead_ns=-5),
        "records": "/runs/r/records.1.jsonl.zst",
        "secrets": ("secret",),
    }
    return Job(**{**values, **changes})


@pytest.mark.parametrize(
    "options",
    [
        RunOptions(url=URL),
        RunOptions(
            url=URL,
            trace=Path("/data/trace.jsonl"),
            replay=True,
            speed=2.0,
            trace_from="10s",
            header={"X-Key": "value=1"},
            label={"gpu": "h100"},
            extra_body={"top_k": 4},
            json_output=True,
            prometheus_port="[::1]:9000",
            metrics_url=["http://127.0.0.1:1/metrics"],
            local_gpus=["0", "1"],
            idle_timeout=None,
        ),
        SweepOptions(url=URL, concurrency=[4, 8], input_tokens="100:20", settle="2s", workers=2),
        SweepOptions(url=URL, request_rate=[0.5, 8.0], slo="ttft=500ms", max_concurrency=9),
        CapacityOptions(url=URL, slo="ttft=1s", variable="request-rate", most=40.0),
    ],
)
def test_options_are_the_same_for_a_worker(options: CommonOptions) -> None:
    """Of each command, with everything that they can hold, secrets included."""
    sent = job(options)
    found = decode_to_worker(encode(sent))
    assert isinstance(found, Job)
    assert found == sent
    assert options_of(found) == options
    assert type(options_of(found)) is type(options)


def test_an_infinite_burstiness_stays_with_the_load() -> None:
    """JSON has no infinity; the load says None for it, and that is what a worker plans by."""
    options = RunOptions(url=URL, request_rate=4.0, burstiness=float("inf"))
    found = decode_to_worker(encode(job(options)))
    assert isinstance(found, Job)
    assert found.load.burstiness is None
    assert options_of(found) == options.model_copy(update={"burstiness": None})


@pytest.mark.parametrize("message", [Start(at_ns=5), Measuring(at_ns=6), Stop(reason="interrupt"), Abort()])
def test_what_a_worker_is_told(message: Any) -> None:
    """One line each, which is the same on the other side."""
    line = encode(message)
    assert b"\n" not in line
    assert decode_to_worker(line) == message


PROGRESS = Progress(
    counts=LiveCounts(sent=5, in_flight=2, completed=3, last_progress_ns=7, stopping="duration"),
    outlook=Outlook(refused=None, connected_ns=6),
)


@pytest.mark.parametrize(
    "message",
    [
        Ready(requests=5, sha256="ab"),
        Began(at_ns=7),
        PROGRESS,
        Failed(kind="StoreError", message="the disk is full\nreally"),
        Ended(
            end=RunEnd(
                ended_by="duration",
                interrupted=False,
                requests=9,
                window=Window(start_ns=1, end_ns=2, kind="duration"),
                client=ClientFacts(timing_source=TimingSource.KERNEL, cpu_ratio=0.5),
                late_preparations=1,
                exhausted_ns=3,
            ),
            last=PROGRESS,
        ),
    ],
)
def test_what_a_worker_tells(message: Any) -> None:
    """One line each, which is the same on the other side."""
    line = encode(message)
    assert b"\n" not in line
    assert decode_from_worker(line) == message
