"""Measures, and takes the pictures of the dashboards that the documents show.

    python -m tools.preview [--into docs/images] [--only live|speculation|capacity] [--html]

Takes some minutes: what the pictures show is measured, by load tests against the simulated server.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tools.preview.page import picture
from tools.preview.preview import preview
from tools.preview.scenes import SCENES

_ROOT = Path(__file__).parents[2]


def main() -> None:
    """Measures and draws."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--into", type=Path, default=_ROOT / "docs" / "images")
    parser.add_argument("--only", choices=SCENES)
    parser.add_argument("--html", action="store_true", help="keep the page beside its picture")
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    for name, scene in SCENES.items():
        if options.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as folder, scene(Path(folder)) as source:
            html = preview(name, source)
        if options.html:
            (options.into / f"dashboard-{name}.html").write_text(html, encoding="utf-8")
        shown = picture(html)
        (options.into / f"dashboard-{name}.png").write_bytes(shown.png)
        empty, cut = (f"no values: {title}" for title in shown.empty), (f"too wide: {title}" for title in shown.cut)
        for line in (*empty, *cut, *shown.console):
            print(f"{name}: {line}", file=sys.stderr)


if __name__ == "__main__":
    main()
