"""Copies the pinned third-party files of the pages out of their npm packages.

Run `python tools/vendor.py` after changing a version here: it calls `npm pack`, takes the files that the pages use and
the licence, and writes VERSION.json with what they are. `python tools/vendor.py --check` only compares the files
in the tree with VERSION.json and ends with 1 when one was edited by hand.
"""

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent / "loadgen"


@dataclass(frozen=True)
class Package:
    """Files of a package, and the folder for them."""

    name: str
    version: str
    files: tuple[str, ...]
    folder: Path


PACKAGES = (
    Package(
        "uplot", "1.6.32", ("dist/uPlot.iife.min.js", "dist/uPlot.min.css", "LICENSE"), HOME / "report/vendor/uplot"
    ),
    Package("js-yaml", "5.5.0", ("dist/browser/js-yaml.esm.min.mjs", "LICENSE"), HOME / "service/page/vendor/js-yaml"),
)


def fetch(package: Package, folder: Path) -> Path:
    """The package's archive, as npm delivers it into `folder`; npm checks its integrity."""
    asked = f"{package.name}@{package.version}"
    subprocess.run(["npm", "pack", "--silent", asked], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / f"{package.name}-{package.version}.tgz"


def vendor(package: Package) -> None:
    """Replaces the vendored files by those of the pinned version."""
    package.folder.mkdir(parents=True, exist_ok=True)
    digests = {}
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(fetch(package, Path(scratch))) as archive:
        for name in package.files:
            member = archive.extractfile(f"package/{name}")
            if member is None:
                sys.exit(f"{package.name}@{package.version} has no file {name}")
            content = member.read()
            target = package.folder / Path(name).name
            target.write_bytes(content)
            digests[target.name] = hashlib.sha256(content).hexdigest()
    about = {"package": package.name, "version": package.version, "licence": "MIT", "sha256": digests}
    (package.folder / "VERSION.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def check(package: Package) -> list[str]:
    """Names of vendored files that differ from VERSION.json."""
    about = json.loads((package.folder / "VERSION.json").read_text(encoding="utf-8"))
    expected: dict[str, str] = about["sha256"]
    return [
        name
        for name, digest in expected.items()
        if hashlib.sha256((package.folder / name).read_bytes()).hexdigest() != digest
    ]


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        changed = [name for package in PACKAGES for name in check(package)]
        sys.exit(f"changed by hand: {', '.join(changed)}" if changed else 0)
    for each in PACKAGES:
        vendor(each)
