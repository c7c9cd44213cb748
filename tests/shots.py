"""Pictures of what tests see in a browser, where they are wanted."""

import os
from pathlib import Path

from playwright.sync_api import Page

FOLDER = os.environ.get("LOADGEN_TEST_SHOTS")
"""Where they go; docs/images for those of the documents."""


def shot(page: Page, name: str) -> None:
    """A picture of what is seen of a page, as PNG. None where no folder is named."""
    if FOLDER is not None:
        page.screenshot(path=Path(FOLDER) / f"{name}.png")
