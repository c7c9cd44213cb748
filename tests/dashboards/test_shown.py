"""What dashboards and rules show of all that they are about, as Debian's real Prometheus saw it: the result of every
expression, and previews of whole dashboards, drawn in a real Chromium.
"""

import math
from collections.abc import Iterator

import pytest

from tests.dashboards.scene import Scene, scene
from tests.dashboards.written import Asked, asked_by_dashboards, asked_by_rules, filled
from tests.needs import chromium
from tools.preview.page import Picture, picture
from tools.preview.preview import preview
from tools.preview.source import Source, Span

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
BEFORE_S = {"live": 120, "speculation": 120, "capacity": 28 * 86_400}
"""How far back a preview looks."""


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


@pytest.fixture(scope="module")
def pictures(seen: Scene) -> dict[str, Picture]:
    """A preview of each dashboard, up to that instant."""
    chromium()
    url = seen.stores["classic"].url
    drawn = {}
    for name, before_s in BEFORE_S.items():
        span = Span(begin_s=seen.at_s - before_s, end_s=seen.at_s, scrape_interval_s=2)
        drawn[name] = picture(preview(name, Source(url, span)))
    return drawn


@pytest.mark.parametrize("name", BEFORE_S)
def test_a_preview_shows_every_panel(name: str, pictures: dict[str, Picture]) -> None:
    """None is without values or wider than its place, and the browser has nothing to object to."""
    drawn = pictures[name]
    assert (list(drawn.empty), list(drawn.cut), list(drawn.console)) == ([], [], [])


@pytest.mark.parametrize("name", BEFORE_S)
def test_a_picture_is_fit_for_a_document(name: str, pictures: dict[str, Picture]) -> None:
    """A PNG that is soon there."""
    png = pictures[name].png
    assert png.startswith(b"\x89PNG")
    assert len(png) < 300_000
