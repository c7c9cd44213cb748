"""The knee of a ladder of numbers."""

import pytest

from loadgen.core.stats.knee import knee_index


@pytest.mark.parametrize(
    ("levels", "throughput", "place"),
    [
        ([1, 2, 4, 8, 16], [10, 19, 35, 40, 41], 2),
        ([1, 2, 4], [10, 20, 40], None),
        ([1, 2, 4], [10, 10, 10], 0),
        ([5, 10, 20, 40], [5, 10, 18, 12], 2),
        ([1], [10], None),
        ([], [], None),
        ([1, 2], [0, 5], None),
    ],
)
def test_knee(levels: list[float], throughput: list[float], place: int | None) -> None:
    """The last level worth stepping up to; None when throughput follows to the top or there is nothing to compare."""
    assert knee_index(levels, throughput) == place
