"""The data behind a run."""

import json
from pathlib import Path

import pytest

from loadgen.core.request import Text
from loadgen.options.load import RunOptions
from loadgen.wiring.workload import open_workload


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
