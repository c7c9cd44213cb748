"""Writes the streams of servers that were not at hand, by hand from documented field names; `made_` marks them.

    python made.py

SGLang and llama.cpp: their servers' documentation and response models. DeepSeek, Moonshot, Mistral: their API
references. TensorRT-LLM's `trtllm-serve` documents plain OpenAI chunks. OpenAI's `/v1/responses`: its API reference.
"""

import json
from pathlib import Path

HERE = Path(__file__).parent


def events(*chunks: object, end: str = "\n\n", done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(chunk, ensure_ascii=False)}{end}" for chunk in chunks]
    return "".join([*lines, f"data: [DONE]{end}" if done else ""]).encode()


def delta(finish: str | None = None, extra: dict[str, object] | None = None, **fields: object) -> dict[str, object]:
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **(extra or {}),
    }


def named(*payloads: dict[str, object]) -> bytes:
    lines = [f"event: {payload['type']}\ndata: {json.dumps(payload, ensure_ascii=False)}\n\n" for payload in payloads]
    return "".join(lines).encode()


SGLANG = events(
    delta(role="assistant", content="", reasoning_content=None, tool_calls=None, extra={"usage": None}),
    delta(content=None, reasoning_content="The user", tool_calls=None, extra={"usage": None}),
    delta(content=None, reasoning_content=" greets.", tool_calls=None, extra={"usage": None}),
    delta(content="Hello", reasoning_content=None, tool_calls=None, extra={"usage": None}),
    delta(content=" there.", reasoning_content=None, tool_calls=None, extra={"usage": None}),
    {**delta(content=None, finish="stop"), "matched_stop": 151645},
    {
        "choices": [],
        "usage": {
            "prompt_tokens": 11,
            "completion_tokens": 12,
            "total_tokens": 23,
            "prompt_tokens_details": {"cached_tokens": 4},
            "reasoning_tokens": 6,
        },
        "sglext": {
            "spec_tokens_details": {
                "spec_accept_rate": 0.625,
                "spec_accept_length": 2.75,
                "spec_cap_length": 0.0,
                "spec_block_accept_length": 0.0,
                "spec_num_correct_drafts": 7,
                "spec_num_proposed_drafts": 12,
                "spec_verify_ct": 4,
                "spec_correct_drafts_histogram": [0, 2, 1, 1],
                "spec_cap_lens_histogram": [],
            }
        },
    },
)
LLAMA = events(
    delta(role="assistant", content=None),
    delta(content="Once"),
    delta(content=" upon a"),
    delta(content=" time"),
    delta(finish="length"),
    {
        "choices": [],
        "usage": {"prompt_tokens": 30, "completion_tokens": 6, "total_tokens": 36},
        "timings": {
            "cache_n": 12,
            "prompt_n": 18,
            "prompt_ms": 21.5,
            "predicted_n": 6,
            "predicted_ms": 80.1,
            "predicted_per_second": 74.9,
            "draft_n": 5,
            "draft_n_accepted": 3,
        },
    },
)
TENSORRT_LLM = events(
    delta(role="assistant", content="", reasoning_content="", tool_calls=[]),
    delta(content="four", reasoning_content="", tool_calls=[]),
    delta(content=" five", reasoning_content="", tool_calls=[], finish="length", extra={"usage": None}),
    {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}},
)
DEEPSEEK = events(
    delta(role="assistant", content=None, reasoning_content=""),
    delta(content=None, reasoning_content="Zwölf"),
    delta(content="12", reasoning_content=None),
    delta(
        content="",
        finish="stop",
        extra={
            "usage": {
                "prompt_tokens": 20,
                "completion_tokens": 9,
                "prompt_cache_hit_tokens": 16,
                "prompt_cache_miss_tokens": 4,
                "completion_tokens_details": {"reasoning_tokens": 7},
            }
        },
    ),
)
MOONSHOT = events(
    delta(role="assistant", content=""),
    delta(content="月"),
    {
        "choices": [
            {
                "index": 0,
                "delta": {},
                "finish_reason": "stop",
                "usage": {"prompt_tokens": 8, "completion_tokens": 1, "total_tokens": 9},
            }
        ]
    },
)
TOOLS = events(
    delta(role="assistant", content=None),
    delta(tool_calls=[{"index": 0, "id": "call_a", "type": "function", "function": {"name": "add", "arguments": ""}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": '{"a": 1'}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": ', "b": 2}'}}]),
    delta(
        tool_calls=[{"index": 1, "id": "call_b", "type": "function", "function": {"name": "now", "arguments": "{}"}}]
    ),
    delta(finish="tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 31}},
)
GATEWAY = (
    b": PROCESSING\r\n\r\n"
    + b"event: ping\r\ndata: still here\r\n\r\n"
    + events(delta(role="assistant", content=""), delta(content="über"), end="\r\n\r\n", done=False)
    + b"retry: 12500\r\nid: 41\r\n\r\ndata:\r\n\r\n"
    + events(delta(content=" Nacht\u2028bald", finish="stop"), end="\r\n\r\n")
)
USAGE = {
    "input_tokens": 40,
    "input_tokens_details": {"cached_tokens": 32},
    "output_tokens": 25,
    "output_tokens_details": {"reasoning_tokens": 9},
    "total_tokens": 65,
}
RESPONSES = named(
    {"type": "response.created", "response": {"status": "in_progress", "output": [], "usage": None, "error": None}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "r", "summary": []}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Add"},
    {"type": "response.reasoning_text.delta", "output_index": 0, "delta": " them"},
    {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "content": []}},
    {"type": "response.output_text.delta", "output_index": 1, "delta": "Let me"},
    {"type": "response.output_text.delta", "output_index": 1, "delta": " see."},
    {"type": "response.output_text.done", "output_index": 1, "text": "Let me see."},
    {
        "type": "response.output_item.added",
        "output_index": 2,
        "item": {"type": "function_call", "id": "fc", "call_id": "call_1", "name": "add", "arguments": ""},
    },
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"a":1}'},
    {"type": "response.function_call_arguments.done", "output_index": 2, "arguments": '{"a":1}'},
    {
        "type": "response.completed",
        "response": {"status": "completed", "error": None, "incomplete_details": None, "usage": USAGE},
    },
)
RESPONSES_INCOMPLETE = named(
    {"type": "response.output_text.delta", "output_index": 0, "delta": "So long"},
    {
        "type": "response.incomplete",
        "response": {
            "status": "incomplete",
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"},
            "usage": {**USAGE, "output_tokens_details": {"reasoning_tokens": 0}},
        },
    },
)
RESPONSES_FAILED = named(
    {"type": "response.output_text.delta", "output_index": 0, "delta": "So"},
    {
        "type": "response.failed",
        "response": {"status": "failed", "error": {"code": "server_error", "message": "The model went away."}},
    },
)
STREAMS = {
    "made_sglang_chat.sse": ("chat", SGLANG),
    "made_llamacpp_chat.sse": ("chat", LLAMA),
    "made_tensorrt_llm_chat.sse": ("chat", TENSORRT_LLM),
    "made_deepseek_chat.sse": ("chat", DEEPSEEK),
    "made_moonshot_chat.sse": ("chat", MOONSHOT),
    "made_tool_calls_chat.sse": ("chat", TOOLS),
    "made_gateway_chat.sse": ("chat", GATEWAY),
    "made_responses.sse": ("responses", RESPONSES),
    "made_responses_incomplete.sse": ("responses", RESPONSES_INCOMPLETE),
    "made_responses_failed.sse": ("responses", RESPONSES_FAILED),
}

if __name__ == "__main__":
    index_file = HERE / "index.json"
    index = json.loads(index_file.read_text())
    for name, (endpoint, data) in STREAMS.items():
        (HERE / name).write_bytes(data)
        index[name] = {"endpoint": endpoint, "status": 200, "content_type": "text/event-stream", "made": True}
    index_file.write_text(json.dumps(index, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
