"""What passes between the parts of the simulated server: a request as understood and its answer under way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from loadgen.core.simulation.step import Emission


class Route(StrEnum):
    """Which of OpenAI's two text routes was asked."""

    CHAT = "chat"
    COMPLETIONS = "completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as the server understands it, checked and with its defaults filled in.

    `max_tokens` is the limit on output tokens after the model's context is taken into account. `logprobs` is the number
    of alternatives asked for, None for none at all. `seed` is None where the request has none. `fields` are the body's
    further fields, for what one dialect alone knows.
    """

    route: Route
    request_id: str
    model: str
    prompt_ids: tuple[int, ...]
    stream: bool = False
    n: int = 1
    max_tokens: int
    min_tokens: int = 0
    ignore_eos: bool = False
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    include_usage: bool = False
    continuous_usage: bool = False
    return_token_ids: bool = False
    logprobs: int | None = None
    stream_interval: int = 1
    cache_salt: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


class RefusedError(Exception):
    """A request that the server will not serve: the answer's status, the error's type, message and parameter.

    Half a surrogate pair, which JSON can hold and UTF-8 cannot, is told as a question mark.
    """

    def __init__(self, status: int, kind: str, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, _writable(message)
        self.param = None if param is None else _writable(param)


def _writable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One choice's whole output, known before the first step: token ids, the text and log-probability of each.

    `texts` is what each token adds to the answer. Where stop strings are looked for that comes some characters late, as
    in vLLM, and is not the token's own text: where log-probabilities were asked for, `tokens` holds that.
    `top_logprobs` holds, for each token, the asked number of alternatives as (text, log-probability), best first; empty
    when none were asked for. `finish_reason` is `stop` (the model's own end, or a stop string) or `length`;
    `stop_reason` is the stop string that ended it.
    """

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    logprobs: tuple[float, ...]
    tokens: tuple[str, ...] = ()
    top_logprobs: tuple[tuple[tuple[str, float], ...], ...] = ()
    finish_reason: str
    stop_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """What one step added to an answer: its tokens [start, stop) and whether they are the last."""

    start: int
    stop: int
    finished: bool


@dataclass(slots=True, kw_only=True)
class Answer:
    """One choice of a request while it is generated. Instants are ns of the server's clock; `created_s` is the Unix
    second in which the request came, as answers carry it.

    `drafted` and `accepted` have one entry a step that drafted. `scheduled_ns` is the start of the step that first
    computed its prompt, `first_ns` and `last_ns` the ends of the steps that gave its first and latest token.
    `decode_steps` counts steps after the prompt's that gave it tokens.
    """

    key: int
    index: int
    asked: Asked
    output: Output
    created_s: int
    received_ns: int
    scheduled_ns: int | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    cached_tokens: int = 0
    emitted: int = 0
    decode_steps: int = 0
    preemptions: int = 0
    drafted: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        """Whether its last token was emitted."""
        return self.emitted == len(self.output.ids)

    def take(self, emission: Emission, end_ns: int) -> Part:
        """Adds what a step emitted for it, at the step's end."""
        start = self.emitted
        self.emitted += emission.tokens
        self.first_ns = end_ns if self.first_ns is None else self.first_ns
        self.last_ns = end_ns
        if not emission.prompt_end:
            self.decode_steps += 1
        if emission.drafted:
            self.drafted.append(emission.drafted)
            self.accepted.append(emission.accepted)
        return Part(start, self.emitted, self.finished)
