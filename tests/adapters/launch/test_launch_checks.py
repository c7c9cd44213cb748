"""What is checked before a server is started."""

import socket
from pathlib import Path

import pytest

from loadgen.adapters.launch.checks import check_gpus, free_port, port_is_free
from loadgen.core.errors import TargetError

IDLE = "0, GPU-aaaa-1, NVIDIA H100 80GB HBM3, 4, 81559"
BUSY = "1, GPU-bbbb-2, NVIDIA H100 80GB HBM3, 40960, 81559"
UNIFIED = "2, GPU-cccc-3, NVIDIA GB10, [N/A], [N/A]"


def smi(folder: Path, *rows: str, status: int = 0) -> tuple[str]:
    """A stand-in for nvidia-smi that prints these rows when it is asked for what is needed."""
    path = folder / "smi"
    lines = "\n".join(rows)
    asked = "--query-gpu=index,uuid,name,memory.used,memory.total"
    path.write_text(f"#!/bin/sh\n[ $1 = {asked} ] || exit 9\ncat <<'.'\n{lines}\n.\nexit {status}\n")
    path.chmod(0o755)
    return (str(path),)


async def warnings(folder: Path, *rows: str, devices: str | None = None) -> list[str]:
    """What is said about GPUs that look like that."""
    said: list[str] = []
    environment = {"PATH": "/bin:/usr/bin"} | ({} if devices is None else {"CUDA_VISIBLE_DEVICES": devices})
    await check_gpus(environment=environment, warn=said.append, query=smi(folder, *rows))
    return said


async def test_memory_in_use_is_told(tmp_path: Path) -> None:
    """Of each GPU that is visible to the server, where the driver tells it at all."""
    (said,) = await warnings(tmp_path, IDLE, BUSY, UNIFIED)
    assert said.startswith("GPU 1 (NVIDIA H100 80GB HBM3): 40.0 of 79.6 GiB of its memory are in use before")
    assert await warnings(tmp_path, IDLE, BUSY, devices="0") == []
    assert len(await warnings(tmp_path, IDLE, BUSY, devices="GPU-bbbb")) == 1


async def test_a_server_that_needs_a_gpu_is_not_started_without(tmp_path: Path) -> None:
    """No driver, a driver that fails, no GPU, none that CUDA is let to see: each in words."""
    with pytest.raises(TargetError, match=r"needs a GPU, but no-smi cannot be run \(No such file or directory\)"):
        await check_gpus(environment={}, warn=lambda _: None, query=("no-smi",))
    failing = smi(tmp_path, "Failed to initialize NVML: Driver/library version mismatch", status=18)
    with pytest.raises(TargetError, match=r"smi says: Failed to initialize NVML"):
        await check_gpus(environment={"PATH": "/bin:/usr/bin"}, warn=lambda _: None, query=failing)
    with pytest.raises(TargetError, match=r"none is visible$"):
        await warnings(tmp_path, "No devices were found")
    with pytest.raises(TargetError, match=r"none is visible under CUDA_VISIBLE_DEVICES=$"):
        await warnings(tmp_path, IDLE, devices="")


def test_a_port_is_free_or_not() -> None:
    """On whichever address somebody listens; a connection that lingers is no obstacle."""
    port = free_port()
    assert port_is_free(port)
    with socket.create_server(("127.0.0.1", port)) as listener:
        assert not port_is_free(port)
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = listener.accept()
            accepted.close()
    assert port_is_free(port)
