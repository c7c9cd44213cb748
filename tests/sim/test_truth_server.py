"""The known-truth server as a process: what it sends, and what it says that it sent."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest

from loadgen.sim.script import Script
from loadgen.sim.truth import Lateness, TruthEntry, TruthServer, lateness_of, spawn_truth_server

FAST = {"ttft_ms": 5, "gap_ms": 2}


@pytest.fixture(scope="module")
def truth() -> Iterator[TruthServer]:
    """One server for the module; each request brings its own script."""
    with spawn_truth_server(Script(ttft_ms=5, gap_ms=2)) as server:
        yield server


def get(server: TruthServer, path: str) -> tuple[int, str, bytes]:
    """Status, content type and body."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    found = response.status, response.getheader("content-type"), response.read()
    connection.close()
    return found


@contextmanager
def posted(server: TruthServer, request_id: str, body: dict, path: str = "/v1/completions") -> Iterator[socket.socket]:
    """A raw connection on which the request has been sent."""
    data = json.dumps({"prompt": "a b c", "stream": True, "max_tokens": 4} | body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: {request_id}\r\nContent-Length: {len(data)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(head.encode() + data)
        yield connection


def read_until(connection: socket.socket, ending: bytes) -> bytes:
    """Everything up to the ending."""
    received = b""
    while not received.endswith(ending):
        piece = connection.recv(65536)
        assert piece, f"the connection ended after {received!r}"
        received += piece
    return received


def entry(server: TruthServer, request_id: str) -> TruthEntry:
    """The log's entry about a request, as soon as it is there."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        found = [item for item in server.log().entries if item.request_id == request_id]
        if found:
            return found[0]
        time.sleep(0.005)
    raise AssertionError(f"no entry about {request_id}")


def test_it_says_what_it_is(truth):
    """Models, version, health and metrics answer; an unknown path is a 404 in JSON."""
    status, kind, models = get(truth, "/v1/models")
    assert (status, kind) == (200, "application/json")
    assert [model["id"] for model in json.loads(models)["data"]] == ["truth"]
    assert json.loads(get(truth, "/version")[2])["engine"] == "loadgen-truth"
    assert get(truth, "/health")[::2] == (200, b"ok")
    assert b"truth_requests_total" in get(truth, "/metrics")[2]
    status, _, body = get(truth, "/v1/nothing")
    assert status == 404
    assert json.loads(body)["error"]["code"] == 404


def test_a_stream_arrives_after_it_was_emitted_and_on_time(truth):
    """Each event is logged before it can arrive, never before it is due, and the client's stamps bracket the log's."""
    before = time.monotonic_ns()
    with posted(truth, "on-time", {"max_tokens": 10}) as connection:
        received = read_until(connection, b"0\r\n\r\n")
    after = time.monotonic_ns()
    assert received.count(b"data: {") == 10
    assert b"[DONE]" in received
    found = entry(truth, "on-time")
    assert (found.status, found.http_status, found.events, found.tokens) == ("ok", 200, 10, 10)
    assert before < found.recv_ns < found.first_ns < found.last_ns < after
    assert found.last_ns <= found.done_ns
    assert found.event_ns == sorted(found.event_ns)
    assert (found.event_ns[0], found.event_ns[-1]) == (found.first_ns, found.last_ns)
    assert [at - found.recv_ns - (5 + 2 * i) * 1_000_000 for i, at in enumerate(found.event_ns)] == found.late_ns
    assert min(found.late_ns) >= 0, "nothing leaves before it is due"


def test_a_connection_carries_one_answer_after_the_other(truth):
    """Keep-alive works, streams and single bodies in turn."""
    with posted(truth, "first", {}) as connection:
        read_until(connection, b"0\r\n\r\n")
        data = json.dumps({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}).encode()
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nX-Request-Id: second\r\nContent-Length: %d\r\n\r\n%b"
            % (len(data), data)
        )
        received = read_until(connection, b"}}")
    body = json.loads(received.partition(b"\r\n\r\n")[2])
    assert body["choices"][0]["message"]["content"] == " tok tok"
    found = entry(truth, "second")
    assert (found.events, found.tokens) == (1, 2)
    assert found.first_ns - found.recv_ns >= 7_000_000


@pytest.mark.parametrize(("status", "retry"), [(400, None), (429, 3), (500, None), (503, 1.5)])
def test_an_error_status_comes_with_a_json_body(truth, status, retry):
    """A scripted status answers at once with an OpenAI error object, and Retry-After if asked for."""
    script = {"status": status, "retry_after_s": retry}
    with posted(truth, f"status-{status}", {"truth": script}) as connection:
        received = read_until(connection, b"}}")
    assert received.startswith(b"HTTP/1.1 %d " % status)
    assert (b"Retry-After: " in received) == (retry is not None)
    assert json.loads(received.partition(b"\r\n\r\n")[2])["error"]["code"] == status
    assert entry(truth, f"status-{status}").http_status == status


def test_a_script_that_there_is_not_is_a_bad_request(truth):
    """A wrong field gets a 400 that names it."""
    with posted(truth, "wrong", {"truth": {"ttft": 1}}) as connection:
        received = read_until(connection, b"}}")
    assert received.startswith(b"HTTP/1.1 400 ")
    assert b"unknown field 'ttft'" in received
    assert entry(truth, "wrong").status == "bad_request"


def test_a_truncated_stream_ends_without_its_last_chunk(truth):
    """The connection closes cleanly in the middle of the body."""
    with posted(truth, "cut", {"truth": {"fault": "truncated", "after_events": 2}}) as connection:
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    assert received.count(b"data: {") == 2
    assert not received.endswith(b"0\r\n\r\n")
    assert (entry(truth, "cut").status, entry(truth, "cut").events) == ("truncated", 2)


def test_a_reset_is_a_reset(truth):
    """The client gets the events and then a reset connection."""
    with posted(truth, "rst", {"truth": {"fault": "reset", "after_events": 2, "gap_ms": 20}}) as connection:
        received = read_until(connection, b"\n\n\r\n")
        while received.count(b"data: {") < 2:
            received += read_until(connection, b"\n\n\r\n")
        with pytest.raises(ConnectionResetError):
            connection.recv(65536)
    assert received.count(b"data: {") == 2


def test_a_stalled_stream_is_silent_until_the_client_leaves(truth):
    """Nothing comes after the events, the socket stays open, and the log says what the script was."""
    with posted(truth, "stalled", {"truth": {"fault": "stall", "after_events": 1}}) as connection:
        received = b""
        while b"data: {" not in received:
            received += connection.recv(65536)
        connection.settimeout(0.1)
        with pytest.raises(TimeoutError):
            connection.recv(65536)
    assert entry(truth, "stalled").status == "stall"


def test_a_late_head_is_late(truth):
    """The response head waits as long as the script says."""
    started = time.monotonic()
    with posted(truth, "slow", {"truth": {"headers_ms": 60, "ttft_ms": 70}}) as connection:
        connection.recv(1)
        assert time.monotonic() - started >= 0.06


@pytest.mark.parametrize(
    ("fault", "kind", "ending"),
    [
        ("wrong_type", b"text/html", b"works."),
        ("not_streamed", b"application/json", b"}}"),
        ("empty", b"event-stream", b"0\r\n\r\n"),
        ("no_finish", b"event-stream", b"0\r\n\r\n"),
        ("error_event", b"event-stream", b"0\r\n\r\n"),
    ],
)
def test_other_faults_keep_the_status(truth, fault, kind, ending):
    """A page, a body that is not streamed, and streams that go wrong in words all say 200 and end as HTTP wants it."""
    with posted(truth, fault, {"truth": {"fault": fault}}) as connection:
        received = read_until(connection, ending)
    assert received.startswith(b"HTTP/1.1 200 ")
    assert kind in received
    assert entry(truth, fault).status == fault


def test_a_client_that_leaves_early_is_logged(truth):
    """An answer that nobody read to the end is `gone`, with the events that were sent."""
    with posted(truth, "left", {"max_tokens": 1000}) as connection:
        connection.recv(1)
    found = entry(truth, "left")
    assert found.status == "gone"
    assert found.events < 1000


def test_rubbish_is_closed(truth):
    """Bytes that are no HTTP close the connection and nothing else."""
    with socket.create_connection(("127.0.0.1", truth.port), timeout=10) as connection:
        connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert connection.recv(65536) == b""
    assert get(truth, "/health")[0] == 200


def test_lateness_is_pooled_over_writes():
    """Percentiles are over all content writes; none gives no value."""
    assert lateness_of([]) == Lateness(n=0, p50_s=None, p99_s=None, max_s=None)
    entries = [TruthEntry(request_id="r", recv_ns=0, late_ns=[k * 1_000_000 for k in range(1, 101)])]
    assert lateness_of(entries) == Lateness(n=100, p50_s=0.05, p99_s=0.099, max_s=0.1)


def test_the_log_file_has_a_line_a_request(tmp_path):
    """With `--log` each finished request is a line of JSON at once."""
    log = tmp_path / "truth.jsonl"
    command = [sys.executable, "-m", "loadgen.sim.truth", "--script", json.dumps(FAST), "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        said = json.loads(process.stdout.readline())
        server = TruthServer(url=said["url"], port=said["port"], model=said["model"], pid=process.pid)
        with posted(server, "logged", {}) as connection:
            read_until(connection, b"0\r\n\r\n")
        assert entry(server, "logged").events == 4
        assert json.loads(log.read_text())["request_id"] == "logged"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_a_wrong_option_is_named():
    """A script that there is not ends the process with the field's name."""
    command = [sys.executable, "-m", "loadgen.sim.truth", "--script", '{"ttft": 1}']
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert "unknown field 'ttft'" in done.stderr


def test_a_port_in_use_ends_the_process(truth):
    """A server that cannot listen says so with its exit code."""
    command = [sys.executable, "-m", "loadgen.sim.truth", "--port", str(truth.port)]
    assert subprocess.run(command, capture_output=True, timeout=30, check=False).returncode != 0


def test_it_ends_with_its_parent():
    """A server whose parent was killed does not stay behind."""
    parent_code = (
        "import sys, time\n"
        "from loadgen.sim.truth import spawn_truth_server\n"
        "with spawn_truth_server() as server:\n"
        "    print(server.pid, server.port, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", parent_code], stdout=subprocess.PIPE, text=True) as parent:
        pid, port = map(int, parent.stdout.readline().split())
        parent.kill()
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            break
        time.sleep(0.02)
    else:
        os.kill(pid, signal.SIGKILL)
        pytest.fail("the server outlived its parent")
