"""Records what a real vLLM server answers to requests that it refuses, into vllm_refusals.json.

    python record_refusals.py http://127.0.0.1:8101

The server recorded here was vLLM on a CPU with a model of 270M parameters, 2,048 tokens of context and prompt lookup,
because some parameters are refused only where a server speculates.
"""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

FILE = Path(__file__).with_name("vllm_refusals.json")
PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}
QUESTION = [{"role": "user", "content": "How high is the lamp?"}]


def chat(**fields: object) -> tuple[str, str]:
    return "chat", json.dumps({"messages": QUESTION, **fields})


def completion(**fields: object) -> tuple[str, str]:
    return "completions", json.dumps({"prompt": "The lamp is", **fields})


CASES = {
    "no_json": ("chat", '{"messages": nothing}'),
    "cut_json": ("completions", '{"prompt": "The lamp'),
    "empty_body": ("completions", ""),
    "list_body": ("completions", "[1, 2]"),
    "no_messages": ("chat", '{"model": "gemma3-270m"}'),
    "no_prompt": ("completions", "{}"),
    "messages_text": chat(messages="How high?"),
    "messages_empty": chat(messages=[]),
    "other_model": chat(model="no-such-model"),
    "other_model_completions": completion(model="no-such-model"),
    "model_number": completion(model=5),
    "stream_text": completion(stream="perhaps"),
    "two_faults": completion(stream="perhaps", ignore_eos=7),
    "stream_options_without_stream": chat(stream_options={"include_usage": True}),
    "stream_options_list": chat(stream=True, stream_options=[1]),
    "prompt_empty": completion(prompt=""),
    "prompt_no_ids": completion(prompt=[]),
    "prompt_negative_id": completion(prompt=[5, -1]),
    "prompt_unknown_id": completion(prompt=[5, 999_999_999]),
    "prompt_too_long": completion(prompt="lamp " * 2_100),
    "prompt_too_many_ids": completion(prompt=[5] * 3_000),
    "chat_too_long": chat(messages=[{"role": "user", "content": "lamp " * 2_100}]),
    "prompt_fills_context": completion(prompt=[5] * 2_048),
    "max_tokens_zero": completion(max_tokens=0),
    "max_tokens_negative": completion(max_tokens=-1),
    "max_tokens_text": completion(max_tokens="many"),
    "max_tokens_over_context": completion(max_tokens=9_000),
    "chat_max_tokens_zero": chat(max_tokens=0),
    "chat_max_tokens_over_context": chat(max_tokens=9_000),
    "chat_max_completion_tokens_over_context": chat(max_completion_tokens=9_000),
    "min_tokens_over_max": completion(min_tokens=9, max_tokens=8),
    "min_tokens_negative": completion(min_tokens=-1),
    "n_zero": chat(n=0),
    "n_greedy": chat(n=2, temperature=0),
    "temperature_negative": chat(temperature=-1),
    "temperature_high": chat(temperature=2.5),
    "temperature_text": chat(temperature="hot"),
    "top_p_zero": chat(top_p=0),
    "top_p_high": chat(top_p=1.5),
    "seed_text": chat(seed="abc"),
    "seed_long": chat(seed=2**63),
    "stop_empty": chat(stop=[""]),
    "stop_number": chat(stop=5),
    "logprobs_negative": completion(logprobs=-2),
    "logprobs_many": completion(logprobs=21),
    "logprobs_text": completion(logprobs="x"),
    "top_logprobs_alone": chat(top_logprobs=2),
    "top_logprobs_negative": chat(logprobs=True, top_logprobs=-2),
    "top_logprobs_many": chat(logprobs=True, top_logprobs=21),
    "top_logprobs_text": chat(logprobs=True, top_logprobs="x"),
    "stream_interval_zero": completion(stream_interval=0),
    "cache_salt_empty": chat(cache_salt=""),
    "cache_salt_sign": chat(cache_salt="a@b"),
    "cache_salt_number": completion(cache_salt=5),
    "min_p": chat(min_p=0.1),
    "min_p_high": chat(min_p=1.5),
    "logit_bias": completion(logit_bias={"5": 1}),
}  # fmt: skip


def ask(url: str, route: str, body: str) -> tuple[int, str]:
    """Status and body of the response."""
    request = urllib.request.Request(url + PATHS[route], body.encode(), {"Content-Type": "application/json"})
    try:
        reply = urllib.request.urlopen(request, timeout=300)
    except urllib.error.HTTPError as refused:
        reply = refused
    with reply:
        return reply.status, reply.read().decode()


def main(url: str) -> None:
    recorded = {}
    for name, (route, body) in CASES.items():
        status, reply = ask(url, route, body)
        recorded[name] = {"route": route, "body": body, "status": status, "reply": json.loads(reply)}
        sys.stdout.write(f"{status} {name}: {reply}\n")
    FILE.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"))
