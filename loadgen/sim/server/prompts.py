"""Prompts as the engine is given them: the chat template, and names for the blocks that the prefix cache keeps."""

from array import array
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from loadgen.sim.server.exchange import RefusedError
from loadgen.sim.server.tokens import END, MESSAGE, START, ids_of


def chat_ids(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """A conversation's tokens, up to where the assistant's next words go.

    A message's tokens do not depend on its neighbours, so the prompt of a next turn begins with this one's and the
    answer to it. Raises RefusedError for a message that cannot be read, and for no message at all.
    """
    if not messages:
        raise _bad_request("Cannot apply chat template to an empty conversation. Provide at least one message.")
    ids: list[int] = []
    for message in messages:
        role = message.get("role")
        if not isinstance(role, str):
            raise _bad_request("a message needs a role, which is text")
        ids += (START, *ids_of(role), MESSAGE, *ids_of(_content(message.get("content"))))
        if calls := message.get("tool_calls"):
            ids += ids_of(msgspec.json.encode(calls).decode())
        ids.append(END)
    ids += (START, *ids_of("assistant"), MESSAGE)
    return ids


def _content(content: Any) -> str:
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "\n".join(_part(part) for part in content)
    raise _bad_request("a message's content is text or a list of parts")


def _part(part: Any) -> str:
    match part:
        case str(text) | {"text": str(text)}:
            return text
    raise _bad_request("this model reads text alone")


def _bad_request(message: str) -> RefusedError:
    return RefusedError(400, "BadRequestError", message)


def block_names(ids: Sequence[int], salt: str | None, size: int) -> tuple[int, ...]:
    """A name of 64 bits for each full block of `size` tokens, made of the salt and all tokens up to the block's end."""
    data = array("I", ids).tobytes()
    width = size * array("I").itemsize
    name = blake2b((salt or "").encode("utf-8", "surrogatepass"), digest_size=8).digest()
    names: list[int] = []
    for end in range(width, len(data) + 1, width):
        name = blake2b(name + data[end - width : end], digest_size=8).digest()
        names.append(int.from_bytes(name))
    return tuple(names)
