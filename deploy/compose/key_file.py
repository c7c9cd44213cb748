"""Keys and passwords in files of volumes.

Each is on a volume of its own, which only those mount who need it; so all users of their containers may read it.
"""

from pathlib import Path


def write(path: Path, text: str) -> None:
    """A line; the file is whole, or not there."""
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)  # of a start that was cut off: nobody may write to it any more
    partial.write_text(f"{text}\n", encoding="utf-8")
    partial.chmod(0o444)
    partial.replace(path)


def bearer(path: Path) -> dict[str, str]:
    """The header that shows the key to the service."""
    return {"Authorization": f"Bearer {path.read_text(encoding='utf-8').strip()}"}
