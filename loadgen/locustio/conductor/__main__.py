"""Takes ladders from standard input until that ends."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import closing

from loadgen.adapters.prometheus.server import MetricsServer
from loadgen.adapters.prometheus.upkeep import Upkeep
from loadgen.locustio.conductor.conduct import Conductor, Current
from loadgen.locustio.conductor.stopping import nothing, on_interrupt
from loadgen.locustio.conductor.telling import Teller

_LONGEST_LINE = 64 * 2**20


async def _lines(take: Callable[[bytes], None]) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        take(line)


async def conduct(host: str, port: int) -> None:
    """Serves metrics there and takes ladders until standard input ends."""
    tell, current = Teller(), Current()
    on_interrupt(nothing)
    with closing(MetricsServer(current, host=host, port=port)) as server, closing(Upkeep(current.take_in)):
        tell("ready", metrics=server.url)
        conductor = Conductor(tell, current)
        await _lines(conductor.take)
        await conductor.finish()


if __name__ == "__main__":
    asyncio.run(conduct(sys.argv[1], int(sys.argv[2])))
