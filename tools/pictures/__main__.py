"""Takes the pictures of the service's page that its document shows.

    python -m tools.pictures [--into docs/images] [--only runs live …]

Takes about ten minutes: what the pictures show is measured, against simulated servers.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests import needs
from tools.pictures.filling import filled
from tools.pictures.views import VIEWS, taken

_ROOT = Path(__file__).parents[2]


def main() -> None:
    """Measures, visits, and writes what is seen."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--into", type=Path, default=_ROOT / "docs" / "images")
    parser.add_argument("--only", nargs="+", choices=VIEWS, default=list(VIEWS))
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        filled(Path(folder)) as service,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=needs.chromium(), args=["--no-sandbox", "--lang=en-GB"]) as browser,
    ):
        for name in options.only:
            (options.into / f"service-{name}.png").write_bytes(taken(browser, service, VIEWS[name]))
            print(name, file=sys.stderr)


if __name__ == "__main__":
    main()
