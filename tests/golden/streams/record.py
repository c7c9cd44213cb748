"""Records the bodies of a real vLLM server's responses, byte for byte with transfer coding removed.

    python record.py http://127.0.0.1:8101 ngram        all cases, named after the arm that the server runs
    python record.py http://127.0.0.1:8101 dying        a server that dies at its first draft

Each case becomes `vllm_<arm>_<case>.<sse|json>`; `index.json` says how each was asked for and with which status and
content type it came. The servers recorded here were vLLM on a CPU with a model of 270M parameters: `ngram` with
prompt lookup (4 tokens) and per-request acceptance, `baseline` without speculation, `dying` with synthetic acceptance,
which that build cannot do, so that its engine ends while a stream is under way.
"""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
PLAIN = "The lighthouse stands at the end of the pier. " * 3
QUESTION = [{"role": "user", "content": "Say this three times: the keeper lights the great lamp every evening."}]
USAGE = {"stream": True, "stream_options": {"include_usage": True}}
CONTINUOUS = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
FIXED = {"temperature": 0, "seed": 0}


def chat(**options: object) -> tuple[str, dict[str, object]]:
    return "chat", {"messages": QUESTION, "max_completion_tokens": 32, **FIXED, **options}


def completion(prompt: str = PLAIN, **options: object) -> tuple[str, dict[str, object]]:
    return "completions", {"prompt": prompt, "max_tokens": 32, "ignore_eos": True, **FIXED, **options}


def response(**options: object) -> tuple[str, dict[str, object]]:
    return "responses", {"input": QUESTION[0]["content"], "max_output_tokens": 24, "temperature": 0, **options}


CASES = {
    "chat_usage": chat(**USAGE),
    "chat_no_usage": chat(stream=True),
    "chat_continuous": chat(**CONTINUOUS),
    "chat_token_ids": chat(**USAGE, return_token_ids=True),
    "chat_logprobs": chat(**USAGE, logprobs=True, top_logprobs=1),
    "chat_two_choices": chat(**USAGE | {"n": 2, "temperature": 0.8}),
    "chat_unary": chat(stream=False),
    "completions_usage": completion(**USAGE),
    "completions_continuous": completion(**CONTINUOUS),
    "completions_token_ids": completion(**USAGE, return_token_ids=True),
    "completions_logprobs": completion(**USAGE, logprobs=1),
    "completions_multibyte": completion("春は、あけぼの。夏は、夜。秋は、夕暮れ。春は、あけぼの。夏は、", **USAGE),
    "completions_one_token": completion(**USAGE | {"max_tokens": 1}),
    "completions_unary": completion(stream=False),
    "responses_stream": response(stream=True),
    "responses_unary": response(stream=False),
    "error_too_long": completion(stream=True, max_tokens=9000),
    "error_bad_field": ("chat", {"messages": "not a list", "stream": True}),
    "error_no_model": ("chat", {"messages": QUESTION, "model": "no-such-model"}),
}  # fmt: skip
DYING_CASES = {
    "completions_stream": completion("The weather in northern Norway is", **USAGE | {"max_tokens": 200}),
    "completions_unary": completion(),
}
PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions", "responses": "/v1/responses"}


def ask(url: str, endpoint: str, body: dict[str, object]) -> tuple[int, str, bytes]:
    """Status, content type and the whole body of one response, whatever its status."""
    data = json.dumps({"model": MODEL, **body}).encode()
    request = urllib.request.Request(url + PATHS[endpoint], data, {"Content-Type": "application/json"})
    try:
        reply = urllib.request.urlopen(request, timeout=300)
    except urllib.error.HTTPError as refused:
        reply = refused
    with reply:
        return reply.status, reply.headers["Content-Type"], reply.read()


def main(url: str, arm: str) -> None:
    index_file = HERE / "index.json"
    index = json.loads(index_file.read_text()) if index_file.exists() else {}
    for case, (endpoint, body) in (DYING_CASES if arm == "dying" else CASES).items():
        status, content_type, data = ask(url, endpoint, body)
        suffix = "sse" if "event-stream" in content_type else "json"
        name = f"vllm_{arm}_{case}.{suffix}"
        (HERE / name).write_bytes(data)
        index[name] = {"endpoint": endpoint, "status": status, "content_type": content_type, "request": body}
        sys.stdout.write(f"{status} {len(data):6d} bytes {name}\n")
    index_file.write_text(json.dumps(index, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


MODEL = "gemma3-270m"
if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"), sys.argv[2])
