"""One run that a process of this service works on, and how it is brought to its end."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.service.jobs.process import Child
from loadgen.service.jobs.states import Reason

LOG = logging.getLogger("loadgen.service.jobs")

STOP_S = 120.0
"""From the order to stop to the second one, which does not wait for requests in flight."""
ABORT_S = 60.0
"""From that one to the process' end by force."""


@dataclass(slots=True, kw_only=True)
class Work:
    """`deadline_s` is an instant of the monotonic clock, as `asked_s` and `aborted_s`: when it was told to stop."""

    run: dict[str, Any]
    folder: Path
    child: Child
    deadline_s: float
    stopped_for: Reason | None = None
    asked_s: float | None = None
    aborted_s: float | None = None

    def stop(self, reason: Reason, now_s: float) -> None:
        """Asks for its end in order, once."""
        if self.asked_s is None:
            self.stopped_for, self.asked_s = reason, now_s
            LOG.info("run is stopped", extra={"run_id": self.run["id"], "reason": reason})
            self.child.stop()

    def press(self, now_s: float) -> None:
        """Asks again, and then ends by force, what was asked to stop and does not."""
        if self.asked_s is None:
            return
        if self.aborted_s is None:
            if now_s - self.asked_s > STOP_S:
                self.aborted_s = now_s
                self.child.stop()
        elif now_s - self.aborted_s > ABORT_S:
            self.child.kill()
