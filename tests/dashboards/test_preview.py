"""Previews of the dashboards, drawn in a real Chromium over what a real Prometheus has."""

import os
import shutil
import time
from collections.abc import Iterator

import pytest

from tests.dashboards.scene import scene
from tools.preview.page import Picture, picture
from tools.preview.preview import preview
from tools.preview.source import Source, Span

pytestmark = pytest.mark.slow

BEFORE_S = {"live": 120, "speculation": 120, "capacity": 28 * 86_400}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Picture]]:
    """All of them, of one scene; without Chromium tests are skipped, and fail in CI."""
    if shutil.which("chromium") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("there is no chromium")
        pytest.skip("there is no chromium")
    with scene(tmp_path_factory.mktemp("scene")) as found:
        url, end_s = found.stores["classic"].url, time.time()
        pages = {
            name: preview(name, Source(url, Span(begin_s=end_s - before_s, end_s=end_s, scrape_interval_s=2)))
            for name, before_s in BEFORE_S.items()
        }
        yield {name: picture(page) for name, page in pages.items()}


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
