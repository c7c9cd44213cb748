"""A server with the manners asked for: `server.py PORT [MANNER…]`, on the standard library alone.

deaf: SIGTERM does not end it. family: a child, and a grandchild that has left the session; their numbers are printed.
abandons: ends without its family when asked. dies: says why, not to the end of the line, and ends with status 3.
shut: never listens. warms: answers 503 twice before it is ready. says=TEXT: prints TEXT.
"""

import os
import signal
import socket
import sys
import time


def say(*words: str) -> None:
    """A line of the log, at once."""
    os.write(1, " ".join(words).encode() + b"\n")


def family() -> None:
    """Two processes that only SIGKILL or a SIGTERM of their own can end."""
    for escapes in (False, True):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if escapes:
                os.setsid()
                if os.fork():
                    os._exit(0)
            say("member", str(os.getpid()))
            time.sleep(600)
            os._exit(0)


def main() -> None:
    port, manners = int(sys.argv[1]), sys.argv[2:]
    say("manners:", *manners)
    for text in (manner.removeprefix("says=") for manner in manners if manner.startswith("says=")):
        say(text)
    if "dies" in manners:
        sys.stderr.write("no room for the weights\nNCCL err")
        sys.exit(3)
    if "deaf" in manners:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif "abandons" not in manners:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if "shut" in manners:
        time.sleep(600)
    with socket.create_server(("127.0.0.1", port)) as listener:
        if "family" in manners:
            family()
        refusals = 2 if "warms" in manners else 0
        while True:
            with listener.accept()[0] as peer:
                peer.recv(4096)
                status = b"503 Service Unavailable" if refusals else b"200 OK"
                refusals = max(0, refusals - 1)
                peer.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


if __name__ == "__main__":
    main()
