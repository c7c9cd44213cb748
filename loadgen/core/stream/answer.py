"""What a response said, engine-neutral, whichever endpoint it came from."""

from dataclasses import dataclass
from enum import StrEnum

from loadgen.core.record import RequestSpeculation


class Note(StrEnum):
    """What was odd about an answer that was read all the same. A closed set."""

    NO_DONE = "no_done"
    """A finish reason came, `[DONE]` did not."""
    NO_FINISH_REASON = "no_finish_reason"
    """`[DONE]` came, a finish reason did not."""
    UNTERMINATED_EVENT = "unterminated_event"
    """The stream ended within an event, which was discarded."""
    USAGE_MISSING = "usage_missing"
    """The server gave no output token count."""
    USAGE_IMPLAUSIBLE = "usage_implausible"
    """A count cannot be true: no prompt tokens, or fewer output tokens than token-bearing events. A zero that cannot
    be true is taken as absent."""
    COUNTS_DISAGREE = "counts_disagree"
    """The tokens counted in the stream differ from the server's total."""
    TRAILING_TOKENS = "trailing_tokens"
    """Tokens came after the last token-bearing event, as an end-of-text token does; no event holds them."""
    HIDDEN_REASONING = "hidden_reasoning"
    """The server counted reasoning tokens and streamed no reasoning: a time per token over them would be wrong."""
    SEVERAL_CHOICES = "several_choices"
    """More than one choice shares the stream (n > 1)."""
    ODD_FIELDS = "odd_fields"
    """A field had an undocumented type and was left out."""
    REPAIRED_TEXT = "repaired_text"
    """Invalid UTF-8, a lone surrogate or a NaN was replaced."""
    SPECULATION_INCONSISTENT = "speculation_inconsistent"
    """The acceptance histogram disagrees with the steps or the accepted tokens beside it."""


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

    `event_ns` holds the stamp of each token-bearing event (text, reasoning, tool call or refusal content) of a stream,
    `event_tokens` the tokens of each where the server told them for every one (token ids, continuous usage, else
    logprobs; 0 for an event that shares a step with the one before it), `first_output` the index of the first event
    that is not reasoning. `stream_tokens` are the tokens so counted over the whole stream, those in no event included.

    A body that came as one JSON object has `streamed` False and no events, so no streaming metric; `last_ns`, the
    arrival of the last content of either kind, then is that of the body's last byte. `last_ns` None: no content came.

    `terminal` says that the answer's end was seen (every choice's finish reason, `[DONE]`, or the endpoint's final
    event); `error` is the server's own error text, from anywhere in the body. `malformed` says why the body could not
    be read as what it claimed to be. `body_start` is how a body began that gave no whole answer. `text` is the first
    choice's reasoning and output in order of arrival, `assistant_message` its output as the next turn sends it back;
    both only when asked for.
    """

    event_ns: tuple[int, ...] = ()
    event_tokens: tuple[int, ...] | None = None
    stream_tokens: int | None = None
    first_output: int | None = None
    last_ns: int | None = None
    usage: Usage = Usage()
    finish_reason: str | None = None
    tool_calls: int | None = None
    text: str | None = None
    assistant_message: dict[str, object] | None = None
    speculation: RequestSpeculation | None = None
    terminal: bool = False
    error: str | None = None
    malformed: str | None = None
    body_start: str | None = None
    streamed: bool = True
    notes: tuple[Note, ...] = ()
