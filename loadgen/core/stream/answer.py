"""What a response said, engine-neutral, whichever endpoint it came from."""

from dataclasses import dataclass

from loadgen.core.record import RequestSpeculation


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts as the server gave them; each None when it gave none."""

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One response, decoded.

    `event_ns` holds the stamp of each token-bearing event (text, reasoning, tool call or refusal content),
    `event_tokens` the tokens of each where the server told them for every one (token ids, continuous usage),
    `first_output` the index of the first event that is not reasoning. `terminal` says that the answer's end was seen
    (a finish reason, `[DONE]`, or the endpoint's final event); `error` is the server's own error text, from anywhere in
    the stream. `malformed` says why the body could not be read as what it claimed to be. `notes` are short closed-set
    words (`no_done`, `usage_missing`, `coalesced_reasoning`, …).
    """

    event_ns: tuple[int, ...] = ()
    event_tokens: tuple[int, ...] | None = None
    first_output: int | None = None
    usage: Usage = Usage()
    finish_reason: str | None = None
    tool_calls: int | None = None
    text: str | None = None
    assistant_message: dict[str, object] | None = None
    speculation: RequestSpeculation | None = None
    terminal: bool = False
    error: str | None = None
    malformed: str | None = None
    streamed: bool = True
    notes: tuple[str, ...] = ()
