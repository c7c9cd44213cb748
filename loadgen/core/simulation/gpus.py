"""Known GPUs: what their data sheets promise. Peaks are without sparsity, for 16-bit floats summed in 32 bits."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU: memory bandwidth, peak arithmetic and memory of its data sheet."""

    name: str
    bandwidth_bytes_per_s: float
    flops_per_s: float
    memory_bytes: float
    source: str


def _gpu(name: str, terabytes_per_s: float, teraflops: float, gigabytes: float, source: str) -> Gpu:
    return Gpu(
        name=name,
        bandwidth_bytes_per_s=terabytes_per_s * 1e12,
        flops_per_s=teraflops * 1e12,
        memory_bytes=gigabytes * 1e9,
        source=source,
    )


GPUS: Mapping[str, Gpu] = {
    "a100-40g": _gpu("A100 SXM 40 GB", 1.555, 312, 40, "NVIDIA A100 data sheet"),
    "a100": _gpu("A100 SXM 80 GB", 2.039, 312, 80, "NVIDIA A100 data sheet"),
    "h100": _gpu("H100 SXM", 3.35, 989, 80, "NVIDIA H100 data sheet"),
    "h100-pcie": _gpu("H100 PCIe", 2.0, 756, 80, "NVIDIA H100 data sheet"),
    "h200": _gpu("H200 SXM", 4.8, 989, 141, "NVIDIA H200 data sheet"),
    "b200": _gpu("B200 SXM", 8.0, 2250, 180, "NVIDIA HGX B200 data sheet"),
    "l4": _gpu("L4", 0.3, 121, 24, "NVIDIA L4 data sheet"),
    "l40s": _gpu("L40S", 0.864, 362, 48, "NVIDIA L40S data sheet"),
    "rtx-4090": _gpu("GeForce RTX 4090", 1.008, 165.2, 24, "NVIDIA Ada architecture paper"),
    "mi300x": _gpu("Instinct MI300X", 5.3, 1307.4, 192, "AMD Instinct MI300X data sheet"),
    "mi325x": _gpu("Instinct MI325X", 6.0, 1307.4, 256, "AMD Instinct MI325X data sheet"),
}
"""By the name an option takes."""
