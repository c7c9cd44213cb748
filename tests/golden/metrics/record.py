"""Records the pages of a real vLLM server after a few requests of known kinds, byte for byte.

    python record.py http://127.0.0.1:8101 ngram        named after the arm that the server runs

The server has to be fresh. It then has `vllm_0.32_<arm>.txt` here, which is `/metrics`, and `version_<arm>.json` and
`server_info_<arm>.json` under `../pages`; in the last the paths of the host are cut to their last part, and most of
what it says of the host is left out. The servers recorded here were vLLM 0.32 on a CPU with a model of
270M parameters: `baseline`, `ngram` (prompt lookup, 4 tokens) and `eagle` (3 tokens, nothing is ever accepted).
"""

import http.client
import json
import re
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MODEL = "gemma3-270m"
PLAIN = "The lighthouse stands at the end of the pier. " * 15
QUESTION = [{"role": "user", "content": "Say this three times: the keeper lights the great lamp every evening."}]
FIXED = {"model": MODEL, "temperature": 0, "seed": 0}
LONG = {**FIXED, "prompt": PLAIN, "max_tokens": 32, "ignore_eos": True}
REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/completions", LONG),
    ("/v1/completions", LONG),  # its prompt is in the prefix cache now
    ("/v1/completions", {**LONG, "max_tokens": 1}),
    ("/v1/chat/completions", {**FIXED, "messages": QUESTION, "max_tokens": 16, "n": 2, "temperature": 0.8}),
    ("/v1/chat/completions", {**FIXED, "messages": QUESTION, "max_tokens": 16}),
    ("/v1/completions", {**LONG, "max_tokens": 9_000}),  # refused
)
ABOUT_THE_HOST = {
    "vllm_env": ("VLLM_BATCH_INVARIANT", "VLLM_CPU_KVCACHE_SPACE", "VLLM_ENABLE_V1_MULTIPROCESSING"),
    "system_env": ("torch_version", "is_cuda_available", "nvidia_driver_version", "nvidia_gpu_models", "vllm_version"),
}
"""What is kept."""
PATH = re.compile(r"(?:/[\w.+~-]+){2,}/?")


def ask(url: str, path: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=300).read()
    except urllib.error.HTTPError as refused:
        refused.read()


def leave(url: str, body: dict[str, Any]) -> None:
    """Asks for a stream and goes away after its first event."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/v1/completions", json.dumps({**body, "stream": True}), headers)
    connection.getresponse().readline()
    connection.close()


def page(url: str, path: str) -> bytes:
    with urllib.request.urlopen(url + path, timeout=120) as reply:
        return bytes(reply.read())


def without_paths(value: Any) -> Any:
    """Paths of the host cut to their last part."""
    if isinstance(value, dict):
        return {key: without_paths(part) for key, part in value.items()}
    if isinstance(value, list):
        return [without_paths(part) for part in value]
    if isinstance(value, str):
        return PATH.sub(lambda found: found[0].rstrip("/").rpartition("/")[2], value)
    return value


def main(url: str, arm: str) -> None:
    for path, body in REQUESTS:
        ask(url, path, body)
    leave(url, {**LONG, "max_tokens": 400})
    while b'num_requests_running{engine="0",model_name="gemma3-270m"} 0.0' not in page(url, "/metrics"):
        time.sleep(0.2)
    (HERE / f"vllm_0.32_{arm}.txt").write_bytes(page(url, "/metrics"))
    pages = HERE.parent / "pages"
    (pages / f"version_{arm}.json").write_bytes(page(url, "/version"))
    info = without_paths(json.loads(page(url, "/server_info?config_format=json")))
    for part, kept in ABOUT_THE_HOST.items():
        info[part] = {name: info[part].get(name) for name in kept}
    (pages / f"server_info_{arm}.json").write_text(json.dumps(info, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"), sys.argv[2])
