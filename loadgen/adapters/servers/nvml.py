"""The GPUs of this machine, read through NVIDIA's management library (`pynvml`, package `nvidia-ml-py`)."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from loadgen.core.errors import ConfigError
from loadgen.core.server.sample import GpuSample


class GpuReader:
    """Reads every GPU of the machine; `nvml` is the library's module, or what acts like it."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as fault:
            raise ConfigError(f"GPU power cannot be read: {fault}") from fault
        self._handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]

    def read(self) -> tuple[GpuSample, ...]:
        """One sample a GPU, named by its index. A figure that a GPU does not give is None."""
        return tuple(self._gpu(str(index), handle) for index, handle in enumerate(self._handles))

    def close(self) -> None:
        """Lets go of the library."""
        self._nvml.nvmlShutdown()

    def _gpu(self, name: str, handle: Any) -> GpuSample:
        nvml = self._nvml
        return GpuSample(
            gpu=name,
            power_w=self._figure(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
            utilisation_ratio=self._figure(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100),
            memory_used_bytes=self._figure(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used),
            energy_j=self._figure(lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000),
        )

    def _figure(self, ask: Callable[[], float]) -> float | None:
        try:
            return float(ask())
        except self._nvml.NVMLError:
            return None


def load_nvml() -> Any:
    """The library's module, imported here alone. Raises ConfigError where it is not installed."""
    try:
        return import_module("pynvml")
    except ImportError as fault:
        raise ConfigError("GPU power cannot be read: the package nvidia-ml-py is not installed") from fault
