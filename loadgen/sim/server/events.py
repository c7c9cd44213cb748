"""What the servers' answers have in common: server-sent events, and usage, log-probabilities and errors as JSON."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import msgspec

from loadgen.sim.server.dialect import ServerFacts
from loadgen.sim.server.exchange import Answer, Output, Part, RefusedError

DONE = b"data: [DONE]\n\n"

encode = msgspec.json.Encoder().encode


def sse(event: object) -> bytes:
    """One event with this JSON, and the blank line that ends it."""
    return b"data: %b\n\n" % encode(event)


def text_of(answer: Answer, part: Part) -> str:
    """The text that a part adds."""
    return "".join(answer.output.texts[part.start : part.stop])


def usage_of(answers: Sequence[Answer]) -> dict[str, Any]:
    """The tokens of all choices so far; the prompt counts once."""
    return usage_at(answers[0], sum(answer.emitted for answer in answers))


def usage_at(answer: Answer, completion: int) -> dict[str, Any]:
    """Usage after this many output tokens."""
    prompt = len(answer.asked.prompt_ids)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def model_card(facts: ServerFacts, created_s: int) -> dict[str, Any]:
    """The served model in `/v1/models`, but for its owner."""
    card = {"id": facts.model, "object": "model", "created": created_s, "root": facts.model, "parent": None}
    return card | {"max_model_len": facts.max_model_len}


def flat_error(refused: RefusedError) -> dict[str, Any]:
    """An error as SGLang and TensorRT-LLM have it, without OpenAI's `error` around it."""
    told = {"message": refused.message, "type": refused.kind, "param": refused.param}
    return {"object": "error"} | told | {"code": refused.status}


def chat_logprobs(output: Output, start: int, stop: int) -> dict[str, Any]:
    """Log-probabilities of the tokens [start, stop) in a chat's layout, with the alternatives asked for."""
    content = []
    for place in range(start, stop):
        others = output.top_logprobs[place] if output.top_logprobs else ()
        own = _entry(output.tokens[place], output.logprobs[place])
        content.append(own | {"top_logprobs": [_entry(text, logprob) for text, logprob in others]})
    return {"content": content}


def completions_logprobs(output: Output, start: int, stop: int) -> dict[str, Any]:
    """The same in the layout of completions; offsets count characters from the beginning of the answer."""
    return {
        "tokens": output.tokens[start:stop],
        "token_logprobs": output.logprobs[start:stop],
        "top_logprobs": [dict(others) for others in output.top_logprobs[start:stop]] or None,
        "text_offset": text_offsets(output, start, stop),
    }


def text_offsets(output: Output, start: int, stop: int) -> list[int]:
    """Where the tokens [start, stop) begin, in characters of all tokens from the beginning of the answer."""
    return [*accumulate(map(len, output.tokens[:stop]), initial=0)][start:stop]


def _entry(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}
