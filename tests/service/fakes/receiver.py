"""Somebody who is told by webhooks."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Thread
from typing import Any


class Receiver:
    """A little server that notes what it is told, and answers with `status`."""

    def __init__(self) -> None:
        self.status = 204
        self.got: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.got.append((headers | {"path": self.path}, body))
                self.send_response(receiver.status)
                if receiver.status == 302:
                    self.send_header("Location", receiver.url + "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


_ANSWER = b"HTTP/1.1 204 No Content\r\nX-Slow: " + b"." * 100
_DRIP_S = 0.05


@contextmanager
def dripping() -> Iterator[str]:
    """The URL of one that takes a message and then answers byte by byte, for five seconds at most."""
    over = Event()

    def answer() -> None:
        with suppress(OSError):
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                for place in range(len(_ANSWER)):
                    if over.wait(_DRIP_S):
                        return
                    connection.sendall(_ANSWER[place : place + 1])

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)
        thread = Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/hook"
        over.set()
    thread.join()
