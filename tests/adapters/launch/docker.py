"""A stand-in for Docker with Compose: `docker.py FOLDER compose …`, which notes its arguments in that folder.

`up` serves in the foreground on the port of the variable SERVER_PORT until SIGTERM; the container, a file, stays until
`down`. Where the folder has a file `refusal`, its text is printed and nothing works.
"""

import os
import signal
import socket
import sys
from pathlib import Path


def main() -> int:
    folder, arguments = Path(sys.argv[1]), sys.argv[2:]
    with (folder / "calls").open("a") as calls:
        calls.write(" ".join(arguments) + "\n")
    if (folder / "refusal").exists():
        sys.stderr.write((folder / "refusal").read_text())
        return 1
    container = folder / "container"
    if "down" in arguments:
        container.unlink(missing_ok=True)
        return 0
    container.touch()
    os.write(1, b"serving\n")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with socket.create_server(("127.0.0.1", int(os.environ["SERVER_PORT"]))) as listener:
        while True:
            with listener.accept()[0] as peer:
                peer.recv(4096)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


if __name__ == "__main__":
    sys.exit(main())
