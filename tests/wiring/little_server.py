"""A server that is up in no time: run by path, with `-S`, by the standard library alone.

    little_server.py PORT [LOG WORDS…]

It answers as vLLM does as far as an experiment asks. Words: `PATH=VALUE` is a setting on its page of settings (JSON, a
path of keys joined by dots); `tokens=N` the length of answers; `no-reset` has no way to empty the prefix cache;
`refuse=N` answers the N-th and all later ones with an error; `models=A,B` the models that it lists, instead of `m`;
`hang=FILE` or `die=FILE` does so at the seventh request, while the file is there; `busy=FILE` has a page of metrics, on
which something runs while the file is there; `dead` does not even come up.
Its output has a line for each request: the digest of its body without the salt, and the salt.
"""

import json
import os
import sys
import time
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

PORT, *WORDS = sys.argv[1:]
SETTINGS = dict(word.split("=", 1) for word in WORDS if "=" in word)
FILES = {name: Path(SETTINGS.pop(name)) for name in ("hang", "die", "busy") if name in SETTINGS}
TOKENS = int(SETTINGS.pop("tokens", "3"))
MODELS = [name for name in SETTINGS.pop("models", "m").split(",") if name]
REFUSED_FROM = int(SETTINGS.pop("refuse", "1000000"))
REQUESTS = count(1)


def settings() -> dict:
    page = {"vllm_config": {"model_config": {"dtype": "torch.bfloat16"}, "scheduler_config": {"max_num_seqs": 8}}}
    for path, value in SETTINGS.items():
        *keys, last = path.split(".")
        place = page["vllm_config"]
        for key in keys:
            place = place.setdefault(key, {})
        place[last] = json.loads(value)
    return page


def answer() -> bytes:
    told = [{"choices": [{"index": 0, "delta": {"content": "so "}, "finish_reason": None}]}] * TOKENS
    told.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    told.append({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": TOKENS}})
    return b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in told) + b"data: [DONE]\n\n"


def say(line: str) -> None:
    """In one piece, whatever other threads say."""
    os.write(1, f"{line}\n".encode())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one segment: two would wait for each other's acknowledgement

    def do_GET(self) -> None:
        pages = {
            "/health": {},
            "/v1/models": {"data": [{"id": name, "owned_by": "vllm"} for name in MODELS]},
            "/version": {"version": "0.32.0"},
            "/server_info?config_format=json": settings(),
        }
        if self.path == "/reset_prefix_cache" and "no-reset" not in WORDS:
            self.reply(405, b"no")
        elif self.path == "/metrics" and "busy" in FILES:
            labels = '{engine="0",model_name="m"}'
            running = int(FILES["busy"].exists())
            page = f"vllm:num_requests_running{labels} {running}\nvllm:num_requests_waiting{labels} 0\n"
            self.reply(200, page.encode(), "text/plain")
        elif self.path in pages:
            self.reply(200, json.dumps(pages[self.path]).encode())
        else:
            self.reply(404, b"no")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/reset_prefix_cache":
            say("reset")
            self.reply(200, b"")
            return
        asked = json.loads(body)
        salt = asked.pop("cache_salt", "-")
        say(f"{sha256(json.dumps(asked).encode()).hexdigest()[:16]} {salt}")
        number = next(REQUESTS)
        if number >= REFUSED_FROM:
            self.reply(500, b"no memory")
            return
        if number == 7:
            while "hang" in FILES and FILES["hang"].exists():
                time.sleep(0.02)
            if "die" in FILES and FILES["die"].exists():
                say("out of memory")
                os._exit(9)
        self.reply(200, answer(), "text/event-stream")

    def reply(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: what is to be seen is printed."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


if "dead" in WORDS:
    sys.exit("no such model")
Server(("127.0.0.1", int(PORT)), Handler).serve_forever()
