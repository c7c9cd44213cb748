"""Whether it makes sense to go on: what the records of a run say so far."""

from collections.abc import Collection
from dataclasses import dataclass

from loadgen.core.record import FailureKind, RequestRecord

REFUSALS = 20
"""So many 4xx answers and nothing else from the first request on: the rest would be refused as well."""

UNREACHABLE_NS = 30_000_000_000
"""So long without a connection: a server that restarts would be back, this one is gone."""

NOT_CONNECTED = frozenset({FailureKind.CONNECT, FailureKind.CONNECT_TIMEOUT})


@dataclass(slots=True, kw_only=True)
class Outlook:
    """What one process has seen. Instants are of the run's axis.

    `refused` counts records as long as all of them are 4xx answers, and is None from the first other one on.
    `connected_ns` is the end of the last request that had a connection, `unreachable_ns` when the first of those was
    sent that have had none since, `tried_ns` the end of the last of them.
    """

    refused: int | None = 0
    connected_ns: int | None = None
    unreachable_ns: int | None = None
    tried_ns: int | None = None

    def observe(self, record: RequestRecord) -> None:
        """Adds a record, in the order in which requests end."""
        kind = None if record.failure is None else record.failure.kind
        if self.refused is not None:
            self.refused = self.refused + 1 if kind is FailureKind.HTTP_4XX else None
        if kind not in NOT_CONNECTED:
            self.connected_ns = record.closed_ns or self.connected_ns
            self.unreachable_ns = self.tried_ns = None
            return
        self.tried_ns = record.closed_ns
        if self.unreachable_ns is None:
            self.unreachable_ns = record.sent_ns


def reason_to_give_up(outlooks: Collection[Outlook]) -> str | None:
    """Why to end a run whose processes have seen this, None as long as there is hope.

    `refused`: the first REFUSALS answers of all together were 4xx. `unreachable`: no connection could be opened for
    UNREACHABLE_NS.
    """
    refused = [outlook.refused for outlook in outlooks]
    if None not in refused and sum(each or 0 for each in refused) >= REFUSALS:
        return "refused"
    connected_ns = max((each.connected_ns for each in outlooks if each.connected_ns is not None), default=None)
    since = [
        each.unreachable_ns if connected_ns is None else max(each.unreachable_ns, connected_ns)
        for each in outlooks
        if each.unreachable_ns is not None
    ]
    tried_ns = max((each.tried_ns for each in outlooks if each.tried_ns is not None), default=0)
    return "unreachable" if since and tried_ns - min(since) >= UNREACHABLE_NS else None
