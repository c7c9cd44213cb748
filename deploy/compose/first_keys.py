"""Makes keys and passwords that nobody has given before the first start: each into the file that it is named by, once.

python first_keys.py /keys/service/admin_key /keys/locust/login …
"""

import sys
from pathlib import Path
from secrets import token_urlsafe

from key_file import write

from loadgen.service.auth.keys import made_up

DATABASE = "postgresql://loadgen:{}@postgres/loadgen"


def made(path: Path) -> str:
    """What belongs into the file of that name. Raises SystemExit for a name that nothing has."""
    match path.parent.name, path.name:
        case "service", "admin_key":
            return made_up()
        case "locust", "login":
            return f"loadgen:{token_urlsafe()}"
        case "database", "password":
            return token_urlsafe()
        case "database", "url":
            return DATABASE.format(path.with_name("password").read_text(encoding="utf-8").strip())
    raise SystemExit(f"first_keys: nothing is known that is called {path}")


def main(paths: list[Path]) -> None:
    """Leaves what is there as it is."""
    for path in paths:
        if not path.exists():
            write(path, made(path))


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
