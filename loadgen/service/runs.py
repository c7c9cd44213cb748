"""Runs as people ask for them: queued once, listed, shown, cancelled."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from loadgen.adapters.store.run_folder import new_run_id
from loadgen.core.errors import ConfigError
from loadgen.service.admission.admit import Admitted, Asked, admit, with_files
from loadgen.service.admission.limits import Limits
from loadgen.service.admission.policy import Policy
from loadgen.service.clock import Clock
from loadgen.service.idempotency import asked_before, fingerprint_of, remember
from loadgen.service.jobs import queue
from loadgen.service.jobs.ending import Follow, ask_to_cancel
from loadgen.service.jobs.hub import Hub
from loadgen.service.jobs.order import OUT, Baseline, Order
from loadgen.service.jobs.states import AT_WORK, State
from loadgen.service.problems import FieldProblem, conflict, invalid, not_found, queue_full
from loadgen.service.run_list import Filters, page, view_of
from loadgen.service.store.database import Database
from loadgen.service.store.tables import baselines, events
from loadgen.service.wire.runs import RunDetail, RunRequest, RunView, Waiting

_AGAIN_S = 60


class Runs:
    """The runs in the database, and what makes them: no more than `most_queued` wait at a time."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        policy: Policy,
        hub: Hub,
        folder: Path,
        *,
        most_queued: int,
        follow: Sequence[Follow] = (),
    ) -> None:
        self._database, self._clock, self._policy, self._hub = database, clock, policy, hub
        self.folder, self._most_queued, self._follow = folder, most_queued, tuple(follow)

    @property
    def limits(self) -> Limits:
        """The most load that anybody may ask for."""
        return self._policy.limits

    def admitted(self, asked: Asked, limits: Limits) -> Admitted:
        """Checks what is asked for. Raises Problem."""
        return admit(asked, self._policy, limits)

    def ask(self, request: RunRequest, *, principal: str, limits: Limits, key: str | None = None) -> tuple[str, bool]:
        """Queues a run; returns its id, and whether it is new. Asked again with the same key it is the same run.

        Raises Problem for what may not be, and for a key that was used for something else.
        """
        fingerprint = fingerprint_of(request)
        if (known := self._asked_before(principal, key, fingerprint)) is not None:
            return known, False
        asked = asked_of(request)
        admitted = self.admitted(asked, limits)
        self.check_baseline(request)
        try:
            with self._database.write() as connection:
                run_id = self.add(connection, request, asked, admitted, principal=principal)
                if key is not None:
                    remember(connection, principal, key, fingerprint, run_id, self._clock.now_unix_ms())
        except IntegrityError:  # two at once with one key
            if (known := self._asked_before(principal, key, fingerprint)) is None:
                raise
            return known, False
        self._hub.tell()
        return run_id, True

    def check_baseline(self, request: RunRequest) -> None:
        """Raises Problem for a baseline that is not there, or of another kind."""
        if request.baseline_id is None:
            return
        with self._database.read() as connection:
            kind = connection.execute(
                select(baselines.c.kind).where(baselines.c.id == request.baseline_id)
            ).scalar_one_or_none()
        if kind != request.kind:
            detail = "no such baseline" if kind is None else f"is a baseline of kind {kind}"
            raise invalid("this baseline will not do", FieldProblem(pointer="/baseline_id", detail=detail))

    def add(
        self,
        connection: Connection,
        request: RunRequest,
        asked: Asked,
        admitted: Admitted,
        *,
        principal: str,
        schedule_id: str | None = None,
        fire_at_unix_ms: int | None = None,
    ) -> str:
        """Queues what was admitted, within a transaction of the caller's. Raises Problem where too many wait."""
        self.check_room(connection)
        now = self._clock.now_unix_ms()
        run_id = new_run_id(now * 1_000_000)
        queue.enqueue(
            connection,
            now,
            id=run_id,
            kind=asked.kind,
            name=request.name,
            labels=dict(request.labels),
            target=admitted.target,
            options=dict(asked.options),
            lease_keys=admitted.lease_keys,
            time_limit_s=admitted.time_limit_s,
            created_by=principal,
            baseline_id=request.baseline_id,
            schedule_id=schedule_id,
            fire_at_unix_ms=fire_at_unix_ms,
        )
        return run_id

    def check_room(self, connection: Connection) -> None:
        """Raises Problem where as many runs wait as may."""
        if queue.length(connection) >= self._most_queued:
            raise queue_full(self._most_queued, again_in_s=_AGAIN_S)

    def order_for(self, run: Mapping[str, Any], folder: Path) -> Order:
        """The order of a run, checked once more: settings may have changed since. Raises LoadgenError or Problem."""
        asked = Asked(kind=run["kind"], target=_asked_target(run), options=run["options"])
        admitted = admit(asked, self._policy, self._policy.limits)
        options = with_files(asked.kind, asked.options, self._policy.files)
        if asked.kind != "experiment":
            options |= {"url": admitted.target["url"], "name": run["name"], "label": dict(run["labels"])}
        return Order(
            run_id=run["id"],
            baseline=None if run["baseline_id"] is None else self._baseline(run["baseline_id"]),
            kind=asked.kind,
            options=options,
            folder=str(folder.resolve()),
            allowed_hosts=list(self._policy.hosts.text),
        )

    def _baseline(self, baseline_id: str) -> Baseline:
        with self._database.read() as connection:
            row = connection.execute(select(baselines).where(baselines.c.id == baseline_id)).mappings().one_or_none()
            run = None if row is None else queue.load(connection, row["run_id"])
        results = None if run is None else results_in(self.folder, run)
        if row is None or run is None or results is None:
            raise ConfigError("the baseline is not there any more")
        return Baseline(name=row["name"], folder=str(results), gates=list(row["gates"]), result=run["result"] or {})

    def row(self, run_id: str) -> dict[str, Any]:
        """All columns. Raises Problem when there is no such run."""
        with self._database.read() as connection:
            row = queue.load(connection, run_id)
        if row is None:
            raise not_found("run")
        return row

    def detail(self, run_id: str) -> RunDetail:
        """One run. Raises Problem."""
        with self._database.read() as connection:
            row = queue.load(connection, run_id)
            if row is None:
                raise not_found("run")
            state = State(row["state"])
            waiting = Waiting(**queue.waits_for(connection, row)) if state is State.QUEUED else None
            progress = None
            if state in AT_WORK:
                progress = connection.execute(
                    select(events.c.data)
                    .where(events.c.run_id == run_id, events.c.kind == "progress")
                    .order_by(events.c.seq.desc())
                    .limit(1)
                ).scalar_one_or_none()
        return RunDetail(**view_of(row).model_dump(), waiting=waiting, progress=progress)

    def page(self, filters: Filters, *, before: str | None, limit: int) -> tuple[list[RunView], str | None]:
        """See `run_list.page`."""
        with self._database.read() as connection:
            return page(connection, filters, before=before, limit=limit)

    def cancel(self, run_id: str) -> None:
        """Asks for a run's end. Raises Problem when there is no such run, or when it has ended."""
        with self._database.write() as connection:
            before = queue.load(connection, run_id)
            if before is None:
                raise not_found("run")
            state = ask_to_cancel(connection, run_id, self._clock.now_unix_ms(), follow=self._follow)
            if State(before["state"]) is state and state not in AT_WORK:
                raise conflict(f"the run is {state} already")
        self._hub.tell()

    def _asked_before(self, principal: str, key: str | None, fingerprint: str) -> str | None:
        if key is None:
            return None
        with self._database.read() as connection:
            return asked_before(connection, principal, key, fingerprint, self._clock.now_unix_ms())


def asked_of(request: RunRequest) -> Asked:
    """What a request asks for."""
    target = {} if request.target is None else request.target.model_dump(exclude_none=True)
    return Asked(kind=request.kind, target=target, options=request.options, time_limit_s=request.time_limit_s)


def results_in(folder: Path, row: Mapping[str, Any]) -> Path | None:
    """The folder of a run's results; None where there is none, or none any more."""
    if row["artefact"] is None or row["files_removed"]:
        return None
    return folder / str(row["id"]) / OUT / str(row["artefact"])


def _asked_target(run: Mapping[str, Any]) -> dict[str, str]:
    target = dict(run["target"])
    return {"profile": target["profile"]} if "profile" in target else target
