"""The outline of a server's answers: what is in it, in which order and of which kind, whatever its text and figures."""

import json
from typing import Any


def shape(value: Any, *, name: str = "") -> Any:
    """Keys in their order with the shapes of their values, elements of a list as the set of theirs, else a type's name.

    `top_logprobs` of a completion has tokens for keys: it is a mapping.
    """
    if isinstance(value, dict):
        if name == "top_logprobs" and all(isinstance(part, float) for part in value.values()):
            return "mapping"
        return [[key, shape(part, name=key)] for key, part in value.items()]
    if isinstance(value, list):
        return ["list", *sorted({json.dumps(shape(part, name=name)) for part in value})]
    return type(value).__name__


def outline(body: bytes) -> Any:
    """A whole body's shape; of a stream, the shapes of each choice's events in order, equal neighbours as one, and what
    comes after the last of them: the usage, an error, the end marker.
    """
    if not body.startswith(b"data: "):
        return shape(json.loads(body))
    choices, rest = dict[int, list[Any]](), list[Any]()
    for event in body.removesuffix(b"\n\n").split(b"\n\n"):
        data = event.removeprefix(b"data: ")
        value = json.loads(data) if data.startswith(b"{") else None
        if value is not None and value.get("choices"):
            assert not rest, "tokens after the end"
            (choice,) = value["choices"]
            seen, found = choices.setdefault(choice["index"], []), shape(value)
            if found not in seen[-1:]:
                seen.append(found)
        else:
            rest.append(data.decode() if value is None else shape(value))
    return [choices, rest]
