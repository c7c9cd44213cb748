"""Starts a server as its arguments say and waits to be killed: `starting.py FOLDER MANNER…`."""

import asyncio
import sys
from pathlib import Path

from tests.adapters.launch.launching import launcher


async def main() -> None:
    server = await launcher(Path(sys.argv[1]), *sys.argv[2:], grace_s=0.3).start()
    sys.stdout.write(f"{server.pid}\n")
    sys.stdout.flush()
    await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main())
