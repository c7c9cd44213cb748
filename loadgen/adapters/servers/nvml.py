"""The GPUs of this machine, read through NVIDIA's management library (`pynvml`, package `nvidia-ml-py`)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from loadgen.core.errors import ConfigError
from loadgen.core.server.sample import GpuSample


@dataclass(frozen=True, slots=True)
class GpuReader:
    """Reads GPUs by their handles, named by their indices; `nvml` is the library's module, or what acts like it."""

    nvml: Any
    handles: dict[str, Any]

    def read(self) -> tuple[GpuSample, ...]:
        """One sample a GPU. A figure that a GPU does not give is None; raises ValueError for a GPU that gives none."""
        return tuple(self._gpu(name, handle) for name, handle in self.handles.items())

    def _gpu(self, name: str, handle: Any) -> GpuSample:
        nvml, said = self.nvml, list[str]()

        def figure(ask: Callable[[], float]) -> float | None:
            try:
                return float(ask())
            except nvml.NVMLError as fault:
                said.append(str(fault))
                return None

        sample = GpuSample(
            gpu=name,
            power_w=figure(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
            utilisation_ratio=figure(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100),
            memory_used_bytes=figure(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used),
            energy_j=figure(lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000),
        )
        if sample == GpuSample(gpu=name):
            raise ValueError(f"GPU {name}: {said[0]}")
        return sample


@contextmanager
def local_gpus(indices: Sequence[int] | None = None) -> Iterator[GpuReader]:
    """A reader of these GPUs, or of all. Raises ConfigError where they are not there, or the library is not."""
    with opened(load_nvml(), indices) as reader:
        yield reader


@contextmanager
def opened(nvml: Any, indices: Sequence[int] | None = None) -> Iterator[GpuReader]:
    """The library, until the block ends. Raises ConfigError without a driver, without a GPU and for one too many."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as fault:
        raise ConfigError(f"GPUs cannot be read: {fault}") from fault
    try:
        yield GpuReader(nvml, _handles(nvml, indices))
    finally:
        nvml.nvmlShutdown()


def _handles(nvml: Any, indices: Sequence[int] | None) -> dict[str, Any]:
    try:
        count = nvml.nvmlDeviceGetCount()
        wanted = range(count) if indices is None else indices
        if beyond := [index for index in wanted if index >= count]:
            raise ConfigError(f"GPUs cannot be read: this machine has {count} of them, and none with index {beyond[0]}")
        found = {str(index): nvml.nvmlDeviceGetHandleByIndex(index) for index in wanted}
    except nvml.NVMLError as fault:
        raise ConfigError(f"GPUs cannot be read: {fault}") from fault
    if not found:
        raise ConfigError("GPUs cannot be read: this machine has none")
    return found


def load_nvml() -> Any:
    """The library's module, imported here alone. Raises ConfigError where it is not installed."""
    try:
        return import_module("pynvml")
    except ImportError as fault:
        raise ConfigError(
            "GPUs cannot be read without nvidia-ml-py: pip install '.[gpu]' in a clone of Loadgen adds it"
        ) from fault
