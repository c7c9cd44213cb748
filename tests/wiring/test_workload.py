"""The data behind a run."""

import json
from itertools import islice
from pathlib import Path

import pytest

from loadgen.core.request import Endpoint, RequestTemplate, Text
from loadgen.core.run import Load, LoadMode
from loadgen.options.load import CommonOptions, RunOptions, SweepOptions
from loadgen.wiring.workload import level_plan, open_workload, passes_needed


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A trace of six rows of lengths, and one prompt for all of them."""
    trace, prompts = tmp_path / "trace.jsonl", tmp_path / "prompts.jsonl"
    row = {"input_length": 40, "output_length": 8}
    trace.write_text("".join(json.dumps({"timestamp": 1_000 * i, "hash_ids": [i], **row}) + "\n" for i in range(6)))
    prompts.write_text(json.dumps({"prompt": "Why is the sky blue?"}) + "\n")
    return {"trace": trace, "prompts": prompts}


def texts(files: dict[str, Path], seed: int) -> list[str]:
    options = RunOptions(url="http://127.0.0.1:8000", trace=files["trace"], prompts=files["prompts"])
    workload = open_workload(options, seed=seed)
    try:
        prompts = [conversation.turns[0].prompt for conversation in workload.source.conversations()]
    finally:
        workload.close()
    assert all(isinstance(prompt, Text) for prompt in prompts)
    return [prompt.text for prompt in prompts if isinstance(prompt, Text)]


def test_a_borrowed_prompt_is_sent_to_no_server_twice(files: dict[str, Path]) -> None:
    """Rows that get the same real prompt differ in the number before it, in a run and between seeds."""
    sent = [*texts(files, 1), *texts(files, 2)]
    assert all(text.endswith("] Why is the sky blue?") for text in sent)
    assert len(set(sent)) == 12
    assert texts(files, 1) == sent[:6]


@pytest.mark.parametrize("data", ["synthetic", "prompts", "prompts, by time"])
def test_no_level_begins_in_the_passes_of_another(data: str, tmp_path: Path) -> None:
    """Warm-up and small data take more than one pass; the next level's prompts are none of those before it."""
    changes: dict[str, object] = {"input_tokens": "20"}
    if data != "synthetic":
        prompts = tmp_path / "prompts.jsonl"
        prompts.write_text("".join(json.dumps({"prompt": f"Question {i}"}) + "\n" for i in range(5)))
        changes = {"prompts": prompts}
    by_time = data.endswith("by time")
    changes |= {"duration": 10.0} if by_time else {"num_requests": 16}
    options: CommonOptions = SweepOptions.model_validate({"url": "http://127.0.0.1:8000", **changes})
    workload = open_workload(options, seed=7)
    template = RequestTemplate(endpoint=Endpoint.COMPLETIONS, model="tiny")
    sent: list[bytes] = []
    first_pass = 0
    for slots in (1, 4, 8):
        load = Load(
            mode=LoadMode.CONCURRENCY,
            concurrency=slots,
            num_requests=None if by_time else 16,
            duration_s=10.0 if by_time else None,
        )
        plan = level_plan(workload, load, template, run_id="r", warmup_requests=slots, first_pass=first_pass)
        bodies = [planned.requests[0].body for planned in islice(plan.conversations, 24)]
        assert len(bodies) == (24 if by_time else 16 + slots)
        sent += [body for body in bodies if body is not None]
        first_pass += passes_needed(workload, load, warmup_requests=slots)
    workload.close()
    assert len(set(sent)) == len(sent) > 50


def test_the_manifests_first_body_is_shortened_and_says_so(tmp_path: Path) -> None:
    """A prompt of 100 kB is sent whole and stands in the manifest by its beginning, with its length."""
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(json.dumps({"messages": [{"role": "user", "content": "word " * 20_000}]}) + "\n")
    options = RunOptions(url="http://127.0.0.1:8000", prompts=prompts)
    workload = open_workload(options, seed=1)
    template = RequestTemplate(endpoint=Endpoint.CHAT, model="tiny")
    try:
        load = Load(mode=LoadMode.CONCURRENCY, concurrency=1)
        plan = level_plan(workload, load, template, run_id="r", warmup_requests=0)
        (conversation,) = plan.conversations
    finally:
        workload.close()
    (request,) = conversation.requests
    assert request.body is not None
    assert len(request.body) > 100_000
    assert plan.first_request is not None
    shown = plan.first_request["messages"][0]["content"]
    assert len(shown) < 2_100
    assert shown.endswith("(100000 characters)")
