"""The whole simulator against recorded answers of a real vLLM: the same requests get answers of the same outline."""

from collections.abc import Iterator

import pytest

from tests.real_engine.contract import CHAT, MODEL, TEXT, answer, simulated
from tests.sim.server.outline import outline
from tests.sim.server.recorded import STREAMS, recorded, without_timings

ENDED_BY_THE_MODEL = "vllm_ngram_chat_two_choices.sse"
"""Its model stops at a token that only its own settings name; the simulated one has no such token."""


@pytest.fixture(scope="module", params=["ngram", pytest.param("baseline", marks=pytest.mark.slow)])
def arm(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A simulator like one of the recorded servers: the arm's name, and its URL."""
    with simulated(request.param) as url:
        yield request.param, url


def test_recorded_requests_get_answers_of_the_recorded_outline(arm: tuple[str, str]) -> None:
    """Status, content type, keys at every depth in their order, kinds of values, order of events."""
    name, url = arm
    checked = 0
    for case in sorted(path.name for path in STREAMS.glob(f"vllm_{name}_*")):
        index, body = recorded(case)
        if index["endpoint"] == "responses" or case == ENDED_BY_THE_MODEL:
            continue
        status, kind, given = answer(
            url, CHAT if index["endpoint"] == "chat" else TEXT, {"model": MODEL} | index["request"]
        )
        assert (status, kind) == (index["status"], index["content_type"]), case
        assert outline(given) == outline(without_timings(body)), case
        checked += 1
    assert checked >= 16
