"""NVIDIA's management library, played: two GPUs, of which the second has no energy counter and no busy share."""

from types import SimpleNamespace


class NVMLError(Exception):
    """The library's error."""


class ScriptedNvml:
    """What acts like `pynvml`. Power and energy go on with each reading; `lost` names a GPU that answers no more."""

    NVMLError = NVMLError

    def __init__(self, *, count: int = 2, driver: bool = True, lost: int | None = None) -> None:
        self.count, self.driver, self.lost = count, driver, lost
        self.open = self.opened = 0

    def nvmlInit(self) -> None:
        if not self.driver:
            raise NVMLError("Driver Not Loaded")
        self.open += 1
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        self._answers(handle)
        return (412_500, 90_000)[handle]

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        self._answers(handle)
        if handle:
            raise NVMLError("Not Supported")
        return SimpleNamespace(gpu=75, memory=30)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        self._answers(handle)
        return SimpleNamespace(used=2**30)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:
        self._answers(handle)
        if handle:
            raise NVMLError("Not Supported")
        return 2_500_000

    def _answers(self, handle: int) -> None:
        if handle == self.lost:
            raise NVMLError("GPU is lost")
