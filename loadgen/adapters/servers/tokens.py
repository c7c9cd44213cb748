"""A server's own count of tokens over a run, from its metrics page before and after."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
from prometheus_client.parser import text_string_to_metric_families

_SETTLE_S = 0.25
"""Engines publish a step's counts a moment after its last token has left."""

_COUNTERS = {
    "vllm": ("vllm:prompt_tokens_total", "vllm:generation_tokens_total"),
    "sglang": ("sglang:prompt_tokens_total", "sglang:generation_tokens_total"),
    "llamacpp": ("llamacpp:prompt_tokens_total", "llamacpp:tokens_predicted_total"),
}
"""Of each engine: tokens read and tokens generated, whoever asked for them."""


@dataclass(frozen=True, slots=True)
class TokenTotals:
    """Tokens since the server started, summed over its engine processes; None for a counter that is not there."""

    prompt: float | None
    generation: float | None


def token_totals(page: str, engine: str, model: str) -> TokenTotals:
    """The totals on a metrics page. Series of another model are left out. Raises ValueError for a page that is none."""
    names = _COUNTERS[engine]
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name in names and sample.labels.get("model_name", model) == model:
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return TokenTotals(*(found.get(name) for name in names))


class TokenProbe:
    """The ServerProbe port on an engine's token counters. A page that cannot be read is a fact, not an exception."""

    def __init__(self, connect: Callable[[], httpx2.AsyncClient], path: str, *, engine: str, model: str) -> None:
        self._connect, self._path, self._engine, self._model = connect, path, engine, model
        self._before: TokenTotals | str = "it was not read before the run"

    @staticmethod
    def knows(engine: str | None) -> bool:
        """Whether the engine's counters are known."""
        return engine in _COUNTERS

    async def before(self) -> None:
        """Reads the counters; to be called before the first request leaves."""
        self._before = await self._read()

    async def after(self) -> dict[str, Any]:
        """What the server counted since: `prompt_tokens_delta`, `generation_tokens_delta`, or in `note` why not.

        A counter that fell belongs to a server that was started anew: no difference is given.
        """
        await asyncio.sleep(_SETTLE_S)
        before, after = self._before, await self._read()
        for totals in (before, after):
            if isinstance(totals, str):
                return {"scraped": False, "note": f"the metrics page was of no use: {totals}"}
        assert isinstance(before, TokenTotals)
        assert isinstance(after, TokenTotals)
        deltas = {
            "prompt_tokens_delta": _difference(before.prompt, after.prompt),
            "generation_tokens_delta": _difference(before.generation, after.generation),
        }
        facts: dict[str, Any] = {"scraped": True, **deltas}
        if any(delta is not None and delta < 0 for delta in deltas.values()):
            facts |= dict.fromkeys(deltas) | {"note": "a counter fell during the run: the server was started anew"}
        return facts

    async def _read(self) -> TokenTotals | str:
        """The totals, or in words why there are none."""
        try:
            async with self._connect() as client:
                response = await client.get(self._path)
            if response.status_code != 200:
                return f"HTTP {response.status_code}"
            return token_totals(response.text, self._engine, self._model)
        except (httpx2.HTTPError, OSError, ValueError) as fault:
            return f"{type(fault).__name__}: {fault}"


def _difference(before: float | None, after: float | None) -> int | None:
    return None if before is None or after is None else round(after - before)
