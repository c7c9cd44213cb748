"""What a server of one kind looks like from outside: its events, bodies, errors and pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from loadgen.core.simulation.speculator import Speculator
from loadgen.core.simulation.step import Step
from loadgen.sim.server.exchange import Answer, Part, RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What the server is, for its pages: `model` is the served name, `max_model_len` its context in tokens.

    `speculator` is None for a baseline. `speculation` is the draft configuration in the server's own words, as its
    command line would have it; `per_request_speculation` is vLLM's `summary` or `detailed`, None when it is off.
    """

    model: str
    max_model_len: int
    kv_blocks: int
    block_tokens: int
    max_sequences: int
    token_budget: int
    prefix_caching: bool
    gpus: int = 1
    speculator: Speculator | None = None
    speculation: Mapping[str, Any] = field(default_factory=dict)
    per_request_speculation: str | None = "detailed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The engine's state after a step, for gauges."""

    running: int
    waiting: int
    kv_used_ratio: float


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer to a request that is not a generation."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheReset:
    """The page that empties the prefix cache: how it is asked, and what it says when it has and when it cannot."""

    path: str
    methods: tuple[str, ...]
    done: Reply
    refused: Reply


class Statistics(Protocol):
    """What a server counts since it was started. A restart makes a new one."""

    def received(self, answer: Answer) -> None:
        """A request was taken in."""
        ...

    def stepped(self, step: Step, parts: Sequence[tuple[Answer, Part]], load: Load) -> None:
        """A step ended and gave these parts; answers already hold what it added."""
        ...

    def finished(self, answer: Answer, reason: str) -> None:
        """An answer ended: `stop`, `length`, or `abort` when its client left."""
        ...


class Dialect(Protocol):
    """One kind of server. Holds no state but what it was made with; `Statistics` counts."""

    name: str
    health: bytes
    """The body of `/health` when all is well; empty for most."""
    cache_reset: CacheReset | None
    """None where a server has no such page."""

    def statistics(self) -> Statistics:
        """A new set of counters, at zero."""
        ...

    def opening(self, answer: Answer) -> bytes:
        """What goes before an answer's first part in a stream: a chat's role event; empty where there is none."""
        ...

    def part(self, answer: Answer, part: Part) -> bytes:
        """What a stream gets for one part: most often one event, with its blank line. Where a server writes the finish
        reason as an event of its own, that comes with `closing`.
        """
        ...

    def closing(self, answers: Sequence[Answer]) -> bytes:
        """What ends the stream after the last part of all choices: usage if asked for, and the end marker."""
        ...

    def whole(self, answers: Sequence[Answer]) -> bytes:
        """The body of an answer that is not streamed."""
        ...

    def refusal(self, refused: RefusedError) -> bytes:
        """The body of an error response."""
        ...

    def error_event(self, message: str) -> bytes:
        """What a stream that had begun says when the engine fails, with its end marker."""
        ...

    def model_card(self, created_s: int) -> dict[str, Any]:
        """The served model as `/v1/models` has it; Unix second of its making."""
        ...

    def page(self, method: str, path: str, body: bytes, statistics: Statistics) -> Reply | None:
        """A page of its own (`/metrics`, `/version`, `/server_info` and the like); None where it has no such page.

        `/health`, `/v1/models`, tokenizing and cache resets, which need the engine, are not asked for here.
        """
        ...
