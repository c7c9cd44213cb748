"""A server's own token counts over a run."""

from typing import Any

import httpx2
import pytest

from loadgen.adapters.servers.tokens import TokenProbe, token_totals

PAGE = """\
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{{engine="0",model_name="m"}} {prompt}
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{engine="0",model_name="m"}} {first}
vllm:generation_tokens_total{{engine="1",model_name="m"}} {second}
vllm:generation_tokens_total{{engine="0",model_name="other"}} 9999
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} 3
"""


def page(prompt: float = 10, first: float = 100, second: float = 50) -> str:
    return PAGE.format(prompt=prompt, first=first, second=second)


async def probed(*answers: tuple[int, str]) -> dict[str, Any]:
    """The facts of a probe whose page gives these answers in turn."""
    left = list(answers)

    def connect() -> httpx2.AsyncClient:
        status, text = left.pop(0)
        transport = httpx2.MockTransport(lambda request: httpx2.Response(status, text=text))
        return httpx2.AsyncClient(transport=transport, base_url="http://server")

    probe = TokenProbe(connect, "/metrics", engine="vllm", model="m")
    await probe.before()
    return await probe.after()


def test_totals_are_summed_over_engines_and_taken_of_one_model() -> None:
    """Two engine processes add up; another model's tokens are not ours; an absent counter is None."""
    totals = token_totals(page(), "vllm", "m")
    assert (totals.prompt, totals.generation) == (10, 150)
    assert token_totals("# TYPE up gauge\nup 1\n", "vllm", "m").generation is None


async def test_the_difference_over_the_run_is_told() -> None:
    """After minus before, as whole tokens."""
    facts = await probed((200, page()), (200, page(prompt=30, first=160, second=60)))
    assert facts == {"scraped": True, "prompt_tokens_delta": 20, "generation_tokens_delta": 70}


async def test_a_counter_that_fell_is_a_restart_and_no_number() -> None:
    """100 before, 20 after: not minus 80 and not 20."""
    facts = await probed((200, page()), (200, page(first=20, second=0)))
    assert facts["scraped"] is True
    assert facts["generation_tokens_delta"] is None
    assert "started anew" in facts["note"]


@pytest.mark.parametrize("answer", [(500, "no"), (200, "<html>"), (404, "")])
async def test_a_page_that_cannot_be_read_is_said_and_never_zero(answer: tuple[int, str]) -> None:
    """The run goes on; the facts say that nothing was scraped and why."""
    facts = await probed((200, page()), answer)
    assert facts["scraped"] is False
    assert facts["note"]
    assert "generation_tokens_delta" not in facts
