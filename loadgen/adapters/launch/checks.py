"""What can be known to go wrong before a server is started: its port, its program, its GPUs."""

import asyncio
import os
import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from loadgen.core.errors import ConfigError, TargetError

_MIB_WORTH_TELLING = 1024
_QUERY = ("--query-gpu=index,uuid,name,memory.used,memory.total", "--format=csv,noheader,nounits")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def port_is_free(port: int) -> bool:
    """Whether a server could listen there, on any address. Connections that linger do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def check_port(port: int) -> None:
    """Raises TargetError that names a port which is taken."""
    if not port_is_free(port):
        raise TargetError(f"port {port} is taken: something listens there already; end it, or choose another port")


def check_program(arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path) -> None:
    """Raises ConfigError for a folder that is not there or a program that cannot be run from it."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: expected a folder to run the server in, found none")
    program = arguments[0]
    where = str(folder / program) if os.sep in program else program
    if shutil.which(where, path=environment.get("PATH")) is None:
        raise ConfigError(f"{program}: expected a program that can be run, found none of this name")


async def check_gpus(
    *, environment: Mapping[str, str], warn: Callable[[str], None], query: Sequence[str] = ("nvidia-smi",)
) -> None:
    """Raises TargetError when no GPU is visible to the server; `warn` gets a sentence for each that is in use."""
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    try:
        process = await asyncio.create_subprocess_exec(
            *query, *_QUERY, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=dict(environment)
        )
    except OSError as fault:
        raise TargetError(
            f"the server needs a GPU, but {query[0]} cannot be run ({fault.strerror}): is the driver there?"
        ) from None
    said = (await process.communicate())[0].decode("utf-8", "replace").strip()
    if process.returncode != 0:
        raise TargetError(f"the server needs a GPU, but {query[0]} says: {said[:500]}")
    visible = [
        row for row in (line.split(", ") for line in said.splitlines()) if len(row) == 5 and _chosen(row, chosen)
    ]
    if not visible:
        hidden = "" if chosen is None else f" under CUDA_VISIBLE_DEVICES={chosen}"
        raise TargetError(f"the server needs a GPU, but none is visible{hidden}")
    for index, _, name, used, total in visible:
        if used.isdigit() and total.isdigit() and int(used) >= _MIB_WORTH_TELLING:
            warn(
                f"GPU {index} ({name}): {int(used) / 1024:.1f} of {int(total) / 1024:.1f} GiB of its memory are in use"
                " before the server starts; whoever holds them also competes with it"
            )


def _chosen(row: Sequence[str], devices: str | None) -> bool:
    """Whether CUDA shows this GPU: by its index, or by the beginning of its UUID."""
    if devices is None:
        return True
    names = [name.strip() for name in devices.split(",")]
    return row[0] in names or any(row[1].startswith(name) for name in names if name.startswith("GPU-"))
