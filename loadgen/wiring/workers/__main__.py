"""`python -m loadgen.wiring.workers`: one worker."""

import sys

from loadgen.wiring.workers.child import main

if __name__ == "__main__":
    sys.exit(main())
