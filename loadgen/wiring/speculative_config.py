"""How an arm's vLLM was told to speculate: what a table of draft lengths for it has to repeat."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loadgen.adapters.profiles.model import DraftMethod
from loadgen.core.comparison.footing import Served

OPTION = "--speculative-config"

_SHORT_OPTION = "-sc"
_LENGTHS = frozenset({"num_speculative_tokens", "num_speculative_tokens_per_batch_size"})
_NEED_DRAFTER = frozenset(method.value for method in DraftMethod if method.needs_drafter)


def speculative_config(arm: Mapping[str, Any], method: str | None, served: Iterable[Served]) -> dict[str, Any]:
    """The keys of `--speculative-config` beside those of draft lengths; none for other engines, and where nobody tells.

    `arm` is as an experiment's manifest has it. They are those of its command or of its simulated vLLM; a drafter that
    is not named there goes by the name that the server told of it at one of its starts.
    """
    found = {name: value for name, value in _given(arm).items() if name not in _LENGTHS}
    if "model" not in found and method in _NEED_DRAFTER:
        told = (
            each.speculation.draft_model for each in served if each.engine == "vllm" and each.speculation is not None
        )
        drafter = next((model for model in told if model is not None), None)
        found |= {} if drafter is None else {"model": drafter}
    return found


def _given(arm: Mapping[str, Any]) -> dict[str, Any]:
    simulated = arm.get("sim")
    if simulated is not None:
        return dict(simulated["speculation_config"]) if simulated["dialect"] == "vllm" else {}
    text = _last_value(arm.get("command", ()))
    try:
        config = {} if text is None else json.loads(text)
    except ValueError:  # a form of its own, such as a file's name: the server knows it, and nothing is made up here
        return {}
    return config if isinstance(config, dict) else {}


def _last_value(command: Sequence[str]) -> str | None:
    """What the option is given in a command; vLLM takes the last of several."""
    value = None
    for place, part in enumerate(command):
        name, joined, rest = part.partition("=")
        if part in (OPTION, _SHORT_OPTION):
            value = command[place + 1] if place + 1 < len(command) else None
        elif joined and name == OPTION:
            value = rest
    return value
