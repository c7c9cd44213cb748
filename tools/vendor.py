"""Copies the pinned third-party files of the HTML report out of their npm packages.

Run `python tools/vendor.py` after changing a version here: it calls `npm pack`, takes the files that the report inlines
and the licence, and writes VERSION.json with what they are. `python tools/vendor.py --check` only compares the files
in the tree with VERSION.json and ends with 1 when one was edited by hand.
"""

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "uplot"
VERSION = "1.6.32"
FILES = ("dist/uPlot.iife.min.js", "dist/uPlot.min.css", "LICENSE")
DESTINATION = Path(__file__).resolve().parent.parent / "loadgen" / "report" / "vendor" / "uplot"


def fetch(folder: Path) -> Path:
    """The package's archive, as npm delivers it into `folder`; npm checks its integrity."""
    subprocess.run(
        ["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    return folder / f"{PACKAGE}-{VERSION}.tgz"


def vendor() -> None:
    """Replaces the vendored files by those of the pinned version."""
    DESTINATION.mkdir(parents=True, exist_ok=True)
    digests = {}
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(fetch(Path(scratch))) as archive:
        for name in FILES:
            member = archive.extractfile(f"package/{name}")
            if member is None:
                sys.exit(f"{PACKAGE}@{VERSION} has no file {name}")
            content = member.read()
            target = DESTINATION / Path(name).name
            target.write_bytes(content)
            digests[target.name] = hashlib.sha256(content).hexdigest()
    about = {"package": PACKAGE, "version": VERSION, "licence": "MIT", "sha256": digests}
    (DESTINATION / "VERSION.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def check() -> list[str]:
    """Names of vendored files that differ from VERSION.json."""
    about = json.loads((DESTINATION / "VERSION.json").read_text(encoding="utf-8"))
    expected: dict[str, str] = about["sha256"]
    return [
        name
        for name, digest in expected.items()
        if hashlib.sha256((DESTINATION / name).read_bytes()).hexdigest() != digest
    ]


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        changed = check()
        sys.exit(f"changed by hand: {', '.join(changed)}" if changed else 0)
    vendor()
