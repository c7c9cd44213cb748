"""The page of NVIDIA's DCGM exporter: power, use, memory and energy of each GPU.

Fields and units are those of `etc/default-counters.csv` in its repository: W, mJ, MiB, percent, and a ratio for the
share of time in which the graphics or compute engine was active.
"""

from loadgen.adapters.servers.exposition import Page, read_page
from loadgen.core.server.sample import GpuSample

_POWER_W = "DCGM_FI_DEV_POWER_USAGE"
_ACTIVE_RATIO = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_BUSY_PERCENT = "DCGM_FI_DEV_GPU_UTIL"
_MEMORY_MIB = "DCGM_FI_DEV_FB_USED"
_ENERGY_MJ = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
_WANTED = frozenset({_POWER_W, _ACTIVE_RATIO, _BUSY_PERCENT, _MEMORY_MIB, _ENERGY_MJ})


def dcgm_samples(text: str) -> tuple[GpuSample, ...]:
    """One sample a GPU, named by its index, with the host before it where the page is about several.

    A figure that the page gives differently for parts of one GPU is None. Raises ValueError for a page without GPUs.
    """
    page = read_page(text, _WANTED)
    if not page.series:
        raise ValueError("nothing on the page is a metric of the DCGM exporter that is known")
    hosts = page.values("Hostname")
    if len(hosts) <= 1:
        return _gpus(page)
    return tuple(gpu for host in hosts for gpu in _gpus(page.where("Hostname", host), f"{host}/"))


def _gpus(page: Page, before_index: str = "") -> tuple[GpuSample, ...]:
    indices = sorted(page.values("gpu"), key=lambda index: (len(index), index))
    return tuple(_gpu(before_index + index, page.where("gpu", index)) for index in indices)


def _gpu(name: str, page: Page) -> GpuSample:
    active = _figure(page, _ACTIVE_RATIO)
    return GpuSample(
        gpu=name,
        power_w=_figure(page, _POWER_W),
        utilisation_ratio=active if active is not None else _figure(page, _BUSY_PERCENT, 0.01),
        memory_used_bytes=_figure(page, _MEMORY_MIB, 2.0**20),
        energy_j=_figure(page, _ENERGY_MJ, 1e-3),
    )


def _figure(page: Page, name: str, unit: float = 1.0) -> float | None:
    """The one value under a name, in units of ours; None where there is none, or more than one."""
    values = {each.value for each in page.named((name,))}
    value = values.pop() if len(values) == 1 else None
    return None if value is None else value * unit
