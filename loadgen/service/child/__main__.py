"""`python -m loadgen.service.child`: takes one order, carries it out, tells of it in lines of JSON.

The end of standard input is the order to stop, which comes by itself when the service dies. What libraries print goes
to standard error, which the service keeps as the run's log.
"""

import os
import signal
import threading
from io import FileIO
from pathlib import Path

import msgspec

from loadgen.adapters.store.files import reason
from loadgen.core.errors import ExitCode, StoreError
from loadgen.service.admission.addresses import AllowList
from loadgen.service.admission.guard import guard_connections
from loadgen.service.child.perform import perform
from loadgen.service.child.telling import Teller
from loadgen.service.jobs.order import Order, Outcome, begin, save_outcome


def main() -> None:
    """From the order to the outcome. Without an order, and when another process has begun on it, nothing is done."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    teller = Teller(os.dup(1))
    os.dup2(2, 1)
    orders = FileIO(0, closefd=False)  # without a buffer, whose lock a thread that waits would hold at the very end
    line = orders.readline()
    if not line.endswith(b"\n"):
        return
    order = msgspec.json.decode(line, type=Order)
    folder = Path(order.folder)
    try:
        if not begin(folder):
            return
    except OSError as fault:
        said = f"nothing can be written: {reason(fault)}"
        teller.tell_outcome(Outcome(exit_code=StoreError.exit_code, message=said, storage=True))
        teller.close()
        return
    guard_connections(AllowList.parse(order.allowed_hosts))
    try:
        threading.Thread(target=_stop_when_told, args=(orders,), name="orders", daemon=True).start()
        outcome = perform(order, teller)
    except KeyboardInterrupt:  # before anything could be stopped in order
        outcome = Outcome(exit_code=ExitCode.INTERRUPTED, message="stopped before the first request")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        save_outcome(folder, outcome)
    except StoreError:  # a disk that is full: what is told at least comes through
        teller.tell_outcome(outcome)
    teller.close()


def _stop_when_told(orders: FileIO) -> None:
    """Each line is an order to stop, the second one at once; so is the end."""
    for _ in orders:
        os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    main()
