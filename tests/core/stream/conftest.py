"""Bytes of responses, and the answers that they decode to."""

import json
from collections.abc import Callable

import pytest

from loadgen.core.request import Endpoint
from loadgen.core.stream.answer import Answer
from loadgen.core.stream.openai import AnswerDecoder

Decode = Callable[..., Answer]


@pytest.fixture
def chunk() -> Callable[..., bytes]:
    """One chat event: `finish` and the delta's fields, top-level fields in `top`, the choice's in `choice`."""

    def make(finish: str | None = None, *, top: dict | None = None, choice: dict | None = None, **delta) -> bytes:
        whole = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish, **(choice or {})}], **(top or {})}
        return f"data: {json.dumps(whole, ensure_ascii=False)}\n\n".encode()

    return make


@pytest.fixture
def decode() -> Decode:
    """The answer to pieces that arrive at 10, 20, 30 ... ns."""

    def run(
        *pieces: bytes,
        endpoint: Endpoint = Endpoint.CHAT,
        content_type: str | None = "text/event-stream",
        keep_text: bool = True,
        **options: int,
    ) -> Answer:
        decoder = AnswerDecoder(endpoint, keep_text=keep_text, content_type=content_type, **options)
        for number, piece in enumerate(pieces, 1):
            decoder.feed(10 * number, piece)
        return decoder.finish()

    return run
