"""`python -m loadgen.locustio.swarm FD`: Locust, with the options that stand in the file of that number."""

import os

# What blocks is to be replaced by gevent before anything else is imported. Locust does that unless it is asked not to.
os.environ.pop("LOCUST_SKIP_MONKEY_PATCH", None)
import locust  # noqa: F401

# isort: split
import json
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
