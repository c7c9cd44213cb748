"""Writes the dashboards, or says with `--check` which files are not as they would be written.

python -m dashboards.generate [--check]
"""

import json
import sys
from pathlib import Path

from dashboards.generator import capacity, live, speculation
from dashboards.generator.panels import Json

FOLDER = Path(__file__).parent


def dashboards() -> dict[str, Json]:
    """Dashboards by the name of their file."""
    return {
        "live.json": live.dashboard(),
        "speculation.json": speculation.dashboard(),
        "capacity.json": capacity.dashboard(),
    }


def rendered() -> dict[Path, str]:
    """What each file is to hold."""
    return {
        FOLDER / name: json.dumps(dashboard, indent=2, ensure_ascii=False) + "\n"
        for name, dashboard in dashboards().items()
    }


def main(arguments: list[str]) -> str | None:
    """What is wrong, for `sys.exit`; None for nothing."""
    if arguments not in ([], ["--check"]):
        return "usage: python -m dashboards.generate [--check]"
    texts = rendered()
    differing = [path for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text]
    superfluous = [path for path in FOLDER.glob("*.json") if path not in texts]
    if arguments:
        named = ", ".join(sorted(path.name for path in (*differing, *superfluous)))
        return f"not as generated: {named}; run python -m dashboards.generate" if named else None
    for path in differing:
        path.write_text(texts[path], encoding="utf-8")
    for path in superfluous:
        path.unlink()
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
