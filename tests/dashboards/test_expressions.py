"""Every expression of dashboards and rules, asked of Debian's real Prometheus that saw everything they are about."""

import math
from collections.abc import Iterator

import pytest

from tests.dashboards.scene import Scene, scene
from tests.dashboards.written import Asked, asked_by_dashboards, asked_by_rules, filled

pytestmark = pytest.mark.slow

EMPTY = {
    "loadgen_server:preemptions:rate1m sglang": "the simulated SGLang retracts nobody, and has no counter of it",
}
"""What has no result here, and why. The rules' unit tests have one for it."""

STORES = pytest.mark.parametrize("histograms", ["native", "classic"])
VARIABLES = {
    **dict.fromkeys(("server", "method", "model", "workload", "job", "instance"), ".*"),
    "baseline": "baseline",
    "__rate_interval": "10m",
    "__interval": "1h",
    "__range": "1h",
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """All of it, once."""
    with scene(tmp_path_factory.mktemp("scene")) as found:
        yield found


@STORES
@pytest.mark.parametrize("asked", [*asked_by_dashboards(), *asked_by_rules()], ids=str)
def test_it_has_something_to_show(seen: Scene, asked: Asked, histograms: str) -> None:
    """A result at an instant when everything goes on, every value of it a number. Alerts hold there, too."""
    store, expr = seen.stores[histograms], filled(asked.expr, VARIABLES)
    if asked.kind.startswith("label"):
        found = store.labels(expr, asked.kind.split(" ")[1])
        assert found
        assert all(found)
        return
    results = store.query(expr, time=f"{seen.at_s:.3f}")
    assert bool(results) is (asked.place not in EMPTY)
    for result in results:
        if "histogram" in result:
            assert float(result["histogram"][1]["count"]) > 0
        else:
            assert math.isfinite(float(result["value"][1])), result
