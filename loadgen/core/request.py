"""What we ask of a server: prompts, sampling, one planned request, a conversation of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

JsonObject: TypeAlias = Mapping[str, Any]


class Endpoint(StrEnum):
    """The OpenAI-compatible route that a request goes to."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    RESPONSES = "responses"

    @property
    def path(self) -> str:
        """The path below `/v1`."""
        return {"chat": "/chat/completions", "completions": "/completions", "responses": "/responses"}[self.value]


class Phase(StrEnum):
    """Which part of a run a request belongs to; only `measure` counts in latency and token statistics."""

    WARMUP = "warmup"
    MEASURE = "measure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A prompt as one text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenIds:
    """A prompt as token numbers: an exact input length on `/v1/completions`, without a tokenizer."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """A prompt as chat messages, each an object with `role` and `content`."""

    messages: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A whole request body as a native trace gives it; `model`, `stream` and what the run asks for are set on top."""

    body: JsonObject


LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
"""The fields of a body that limit the answer, by whichever name an endpoint has it; of several the first counts."""


Prompt: TypeAlias = Text | TokenIds | Messages | Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Sampling as sent. None leaves the server's default."""

    temperature: float | None = None
    seed: int | None = None
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One request of a conversation, before it has a place in a plan.

    `prompt` holds what this turn adds when `continues_answers` is set (the history is then the messages and real
    answers of the turns before it) and the whole prompt otherwise. `think_s` is the wait after the previous answer.
    `offset_ns` is the arrival after the trace's first row, None for data without times. `source_line` is the
    physical line of the data file, None for invented data.
    """

    prompt: Prompt
    input_tokens: int | None = None
    output_tokens: int | None = None
    offset_ns: int | None = None
    think_s: float | None = None
    continues_answers: bool = False
    source_line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Turns that are sent in order, each after the answer to the one before. A single request has one turn."""

    turns: tuple[Turn, ...]
    session_id: str | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTemplate:
    """What all requests of a run share."""

    endpoint: Endpoint
    model: str
    sampling: Sampling = field(default_factory=Sampling)
    max_output_tokens: int | None = None
    stream: bool = True
    include_usage: bool = True
    continuous_usage: bool = False
    return_token_ids: bool = False
    extra_body: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRequest:
    """A request with its place in the plan.

    `due_ns` is the planned instant on the run's axis; None in a closed loop and for a turn that waits for its
    predecessor alone. `body` is the JSON that will be sent, encoded before the clock starts; None for a turn whose
    history is not known yet, which then carries `turn` and is encoded when it is due.
    """

    seq: int
    request_id: str
    phase: Phase
    due_ns: int | None
    body: bytes | None
    turn: Turn
    session_id: str | None = None
    turn_index: int | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedConversation:
    """Planned requests to be sent one after the other."""

    requests: tuple[PlannedRequest, ...]
