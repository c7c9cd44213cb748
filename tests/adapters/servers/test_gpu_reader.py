"""GPUs through NVIDIA's library, acted by a fake of it."""

from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from loadgen.adapters.servers.nvml import GpuReader, load_nvml
from loadgen.core.errors import ConfigError
from loadgen.core.server.sample import GpuSample


class NVMLError(Exception):
    pass


class FakeNvml:
    """Two GPUs, of which the second has no energy counter and no busy share."""

    NVMLError = NVMLError

    def __init__(self, *, driver: bool = True) -> None:
        self.driver, self.open = driver, False

    def nvmlInit(self) -> None:
        if not self.driver:
            raise NVMLError("Driver Not Loaded")
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return (412_500, 90_000)[handle]

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        if handle:
            raise NVMLError("Not Supported")
        return SimpleNamespace(gpu=75, memory=30)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(used=2**30)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:
        if handle:
            raise NVMLError("Not Supported")
        return 2_500_000


def test_each_gpu_is_read_in_our_units_and_what_it_lacks_is_unknown() -> None:
    """mW and mJ to W and J, percent to a share."""
    nvml = FakeNvml()
    reader = GpuReader(nvml)
    assert reader.read() == (
        GpuSample(gpu="0", power_w=412.5, utilisation_ratio=0.75, memory_used_bytes=2.0**30, energy_j=2500.0),
        GpuSample(gpu="1", power_w=90.0, memory_used_bytes=2.0**30),
    )
    reader.close()
    assert not nvml.open


def test_a_machine_without_a_driver_is_a_config_error() -> None:
    """In the library's words."""
    with pytest.raises(ConfigError, match="Driver Not Loaded"):
        GpuReader(FakeNvml(driver=False))


def test_the_library_is_asked_for_only_when_it_is_needed() -> None:
    """Where it is not installed, that is said in words; where it is, it is what the reader takes."""
    if find_spec("pynvml") is None:
        with pytest.raises(ConfigError, match="nvidia-ml-py is not installed"):
            load_nvml()
    else:
        assert callable(load_nvml().nvmlDeviceGetPowerUsage)
