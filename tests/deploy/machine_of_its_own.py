"""A script that plays Docker's network in namespaces of its own: names, addresses, a port 8000 for everybody.

    unshare --mount --net --pid --fork --kill-child python machine_of_its_own.py FOLDER JSON

JSON is `{"names": {NAME: ADDRESS}, "commands": [[…]]}`, FOLDER is for what it must write. It brings up the loopback
device, answers for names where Docker's own name server is, runs the commands, asks Prometheus for its targets until
all are up, and prints them as JSON.
"""

import fcntl
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.request import urlopen

DOCKERS_NAMES = "127.0.0.11"
SET_FLAGS, UP_AND_RUNNING = 0x8914, 0x41
WAIT_S = 60.0
TARGETS = "http://127.0.0.1:9090/api/v1/targets?state=active"


def main(folder: Path, names: dict[str, str], commands: list[list[str]]) -> None:
    """See the module."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh14x", b"lo", UP_AND_RUNNING))
    (folder / "resolv.conf").write_text(f"nameserver {DOCKERS_NAMES}\noptions ndots:0\n", encoding="utf-8")
    subprocess.run(["mount", "--bind", folder / "resolv.conf", "/etc/resolv.conf"], check=True)
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.bind((DOCKERS_NAMES, 53))
    threading.Thread(target=answer, args=(listening, names), daemon=True).start()
    for command in commands:
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end, found = time.monotonic() + WAIT_S, []
    while time.monotonic() < end and [each["health"] for each in found] != ["up"] * (len(names) + 1):
        time.sleep(0.5)
        found = targets()
    print(json.dumps([{**each["labels"], "health": each["health"]} for each in found]))  # noqa: T201


def targets() -> list[dict[str, object]]:
    """What Prometheus scrapes; nothing while it does not answer."""
    try:
        with urlopen(TARGETS, timeout=5) as page:
            return json.load(page)["data"]["activeTargets"]  # type: ignore[no-any-return]
    except OSError:
        return []


def answer(listening: socket.socket, names: dict[str, str]) -> None:
    """Name server for addresses: those it knows, and for all others that there is no such name."""
    while True:
        query, asker = listening.recvfrom(512)
        labels, end = [], 12
        while query[end]:
            labels.append(query[end + 1 : end + 1 + query[end]].decode())
            end += 1 + query[end]
        address = names.get(".".join(labels))
        head = query[:2] + struct.pack(">HHHHH", 0x8180 if address else 0x8183, 1, int(address is not None), 0, 0)
        record = b"" if address is None else b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 5, 4) + socket.inet_aton(address)
        listening.sendto(head + query[12 : end + 5] + record, asker)


if __name__ == "__main__":
    main(Path(sys.argv[1]), **json.loads(sys.argv[2]))
