"""The service as a process: listens, works, ends in order."""

import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from loadgen.core.errors import ConfigError
from loadgen.options.serve import ServeOptions
from loadgen.service.admission.guard import guard_connections
from loadgen.service.app import application
from loadgen.service.head_limit import BoundedHead
from loadgen.service.logs import set_up_logs
from loadgen.service.priority import step_back
from loadgen.service.services import Services, build

_SHUTDOWN_S = 5
_KEEP_ALIVE_S = 15
_BACKLOG = 512


def serve(options: ServeOptions, *, listening: Callable[[str], None]) -> None:
    """Serves until a signal to stop. Raises ConfigError and StoreError. `listening` is told the URL."""
    set_up_logs(options.log_level)
    services = build(options)
    guard_connections(services.receivers)  # webhooks are all that this process itself connects to
    sock = _bound(options)
    host, port = sock.getsockname()[:2]
    config = uvicorn.Config(
        application(services),
        http=BoundedHead,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_S,
        timeout_keep_alive=_KEEP_ALIVE_S,
        lifespan="on",
        proxy_headers=False,
    )
    signal.signal(signal.SIGTERM, lambda *_: None)  # the server raises it once more when it has ended in order
    listening(f"http://{f'[{host}]' if ':' in host else host}:{port}")
    try:
        _Server(config, services).run(sockets=[sock])
    finally:
        sock.close()


class _Server(uvicorn.Server):
    """One that steps back behind its runs, and whose readers of events go at once when it is to end."""

    def __init__(self, config: uvicorn.Config, services: Services) -> None:
        super().__init__(config)
        self._services = services

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Once the threads that start processes are there, this one and those of requests step back behind them."""
        await super().startup(sockets)
        step_back()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal to stop."""
        self._services.closing.set()
        self._services.hub.tell()
        super().handle_exit(sig, frame)


def _bound(options: ServeOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    sock = socket.socket(family)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((options.host, options.port))
        sock.listen(_BACKLOG)
    except OSError as fault:
        sock.close()
        raise ConfigError(f"--port: {options.host}:{options.port} cannot be listened on: {fault.strerror}") from None
    return sock
