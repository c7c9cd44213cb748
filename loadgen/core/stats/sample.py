"""A pooled sample in bounded memory."""

from array import array

import numpy as np
from numpy.typing import NDArray


class Sample:
    """Values pooled over many requests at four bytes each (float32).

    Ten million gaps take 40 MB and are sorted where they lie. Nanoseconds are exact below 16.7 ms and within one part
    in ten million above.
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values = array("f")

    def __len__(self) -> int:
        return len(self._values)

    def extend(self, values: NDArray[np.generic]) -> None:
        """Adds values, in any order. Raises BufferError once `ascending` has been handed out."""
        self._values.frombytes(values.astype(np.float32).tobytes())

    def ascending(self) -> NDArray[np.float32]:
        """All values, sorted in place: a view, not a copy."""
        if not self._values:
            return np.empty(0, dtype=np.float32)
        view: NDArray[np.float32] = np.frombuffer(self._values, dtype=np.float32)
        view.sort()
        return view


def merged(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    """Two samples as one in ascending order. Percentiles come from merged values, never from averaged percentiles."""
    both = np.concatenate([first, second])
    both.sort()
    return both
