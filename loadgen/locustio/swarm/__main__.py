"""`python -m loadgen.locustio.swarm FD`: Locust, with the options that stand in the file of that number."""

import locust  # noqa: F401 (first of all: it has gevent replace what blocks)

# isort: split
import json
import os
import sys

from loadgen.core.errors import LoadgenError
from loadgen.locustio.swarm.run import run
from loadgen.options.locust import LocustOptions
from loadgen.options.resolve import resolve


def main() -> int:
    """Reads the options and runs; the exit code is that of the ladder, or of what was wrong."""
    with os.fdopen(int(sys.argv[1]), encoding="utf-8") as file:
        given = json.load(file)
    del sys.argv[1:]  # Locust reads the command line again for its form
    try:
        return run(resolve(LocustOptions, given, environment={}))
    except LoadgenError as fault:
        print(f"loadgen: {fault}", file=sys.stderr)  # noqa: T201
        return int(fault.exit_code)


if __name__ == "__main__":
    sys.exit(main())
