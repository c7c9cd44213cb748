"""What tests of pages need, wherever they stand."""

from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING

import pytest

from tests import needs

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Browser]":
    """A real one, driven by Playwright, whose event loop runs until the module is through: no test in it is async."""
    from playwright.sync_api import sync_playwright  # which takes its time, of which other tests have none to lose

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=needs.chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The rules of axe-core as a script."""
    try:
        return resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        needs.missing("there is no axe-core-python: rules of accessibility are not checked")
