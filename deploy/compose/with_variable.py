"""Becomes a command that has the text of a file in an environment variable, for programs that take a secret so alone.

python with_variable.py NAME FILE COMMAND …
"""

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    name, path, *command = sys.argv[1:]
    os.environ[name] = Path(path).read_text(encoding="utf-8").strip()
    os.execvp(command[0], command)  # noqa: S606
