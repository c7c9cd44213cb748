"""The pictures of the page's document."""

import re
from pathlib import Path

from tools.pictures.views import VIEWS

_DOCS = Path(__file__).parents[3] / "docs"


def test_every_picture_is_shown_and_can_be_taken_again() -> None:
    """Those that the tool takes are those of the folder, and the document shows each once."""
    taken = sorted(f"service-{name}.png" for name in VIEWS)
    text = (_DOCS / "web-page.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\(images/(.*?)\)", text)) == taken
    assert sorted(path.name for path in (_DOCS / "images").glob("service-*")) == taken
