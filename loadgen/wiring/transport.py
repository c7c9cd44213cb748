"""How requests of a run are carried, by what the options say."""

from loadgen.adapters.clock import MonotonicClock
from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.httpx_transport import HttpxTransport
from loadgen.adapters.http.native import NativeTransport
from loadgen.core.run import LoadMode
from loadgen.engine.ports import Timeouts, Transport
from loadgen.options.load import CommonOptions

_SPARES = 8
_GATHER_S = 0.0009


def transport_of(options: CommonOptions, destination: Destination, clock: MonotonicClock, mode: LoadMode) -> Transport:
    """A transport of its own for one run.

    An open loop keeps connections ready and wakes for every read, since its next request is due when it is due; a
    closed loop gathers reads, which costs it nothing but fractions of a millisecond between requests.
    """
    timeouts = Timeouts(connect_s=options.connect_timeout, idle_s=options.idle_timeout, total_s=options.timeout)
    path = "/v1" + options.endpoint.path
    if options.transport == "httpx":
        return HttpxTransport(
            destination, clock, path=path, timeouts=timeouts, http2=options.http2, proxy=options.proxy
        )
    closed = mode is LoadMode.CONCURRENCY
    return NativeTransport(
        destination,
        clock,
        path=path,
        timeouts=timeouts,
        spares=0 if closed else _SPARES,
        gather_s=_GATHER_S if closed else 0.0,
    )
