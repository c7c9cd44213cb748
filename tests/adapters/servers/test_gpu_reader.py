"""GPUs through NVIDIA's library, acted by a fake of it."""

from importlib.util import find_spec

import pytest

from loadgen.adapters.servers.nvml import load_nvml, opened
from loadgen.core.errors import ConfigError
from loadgen.core.server.sample import GpuSample
from tests.fakes.scripted_nvml import ScriptedNvml

FIRST = GpuSample(gpu="0", power_w=412.5, utilisation_ratio=0.75, memory_used_bytes=2.0**30, energy_j=2500.0)
SECOND = GpuSample(gpu="1", power_w=90.0, memory_used_bytes=2.0**30)


def test_each_gpu_is_read_in_our_units_and_what_it_lacks_is_unknown() -> None:
    """mW and mJ to W and J, percent to a share; the library is let go of at the end."""
    nvml = ScriptedNvml()
    with opened(nvml) as reader:
        assert reader.read() == (FIRST, SECOND)
    assert (nvml.opened, nvml.open) == (1, 0)


def test_only_the_gpus_that_were_named_are_read() -> None:
    """Under their own indices: the others of the machine are not the server's."""
    with opened(ScriptedNvml(), [1]) as reader:
        assert reader.read() == (SECOND,)


def test_a_gpu_that_answers_nothing_is_said() -> None:
    """It is no GPU at rest, and the others do not stand for all."""
    nvml = ScriptedNvml()
    with opened(nvml) as reader:
        nvml.lost = 1
        with pytest.raises(ValueError, match="GPU 1: GPU is lost"):
            reader.read()


@pytest.mark.parametrize(
    ("nvml", "indices", "message"),
    [
        (ScriptedNvml(driver=False), None, "Driver Not Loaded"),
        (ScriptedNvml(count=0), None, "this machine has none"),
        (ScriptedNvml(), [0, 7], "this machine has 2 of them, and none with index 7"),
    ],
)
def test_what_is_not_there_is_a_config_error(nvml: ScriptedNvml, indices: list[int] | None, message: str) -> None:
    """In the library's words or ours, and the library is let go of."""
    with pytest.raises(ConfigError, match=message), opened(nvml, indices):
        pass
    assert nvml.open == 0


def test_the_library_is_asked_for_only_when_it_is_needed() -> None:
    """Where it is not installed, what to install is said; where it is, it is what the reader takes."""
    if find_spec("pynvml") is None:
        with pytest.raises(ConfigError, match="nvidia-ml-py"):
            load_nvml()
    else:
        assert callable(load_nvml().nvmlDeviceGetPowerUsage)
