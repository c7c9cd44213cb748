"""Capacities in the database: one row a test, written with the end of its run."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, func, insert, select

from loadgen.core.errors import ExitCode
from loadgen.service.history.changes import LOOKED_AT, Change, Judgement, judged
from loadgen.service.jobs.order import Outcome
from loadgen.service.store.tables import history

Announce = Callable[[Connection, str, dict[str, Any]], None]
_PRECISION = 0.1


def series_of(run: Mapping[str, Any]) -> str:
    """What tests that may be compared share: the server, and every option."""
    alike = {"target": run["target"], "options": run["options"]}
    return sha256(json.dumps(alike, sort_keys=True).encode()).hexdigest()[:32]


class History:
    """Follows ends of runs; see `jobs.ending.Follow`."""

    def __init__(self, announce: Announce) -> None:
        self._announce = announce

    def follow(self, connection: Connection, run: dict[str, Any], outcome: Outcome | None, at_unix_ms: int) -> None:
        """Adds the result of a search for a capacity, and says when it is another than before."""
        if outcome is None or outcome.capacity is None:
            return
        found, series = outcome.capacity, series_of(run)
        valid = outcome.exit_code in (ExitCode.DONE, ExitCode.GATE_FAILED)
        verdict = self._judged(connection, run, found, series) if valid else Judgement(change=Change.INVALID, n=0)
        detail = {**asdict(verdict), "families": found.get("families", []), "name": run["name"]}
        connection.execute(
            insert(history).values(
                run_id=run["id"],
                series=series,
                at_unix_ms=at_unix_ms,
                labels=run["labels"],
                variable=found["variable"],
                level=found["level"],
                low=found["low"],
                high=found["high"],
                attainment_ratio=found["attainment_ratio"],
                requests_per_s=found["requests_per_s"],
                output_tokens_per_s=found["output_tokens_per_s"],
                valid=valid,
                verdict=verdict.change,
                detail=detail,
            )
        )
        if verdict.change in (Change.LOWER, Change.HIGHER):
            facts = {
                "run_id": run["id"],
                "name": run["name"],
                "schedule_id": run["schedule_id"],
                "variable": found["variable"],
                "level": found["level"],
                **{name: value for name, value in asdict(verdict).items() if name != "change"},
            }
            self._announce(connection, f"capacity.{verdict.change}", facts)

    def _judged(
        self, connection: Connection, run: Mapping[str, Any], found: Mapping[str, Any], series: str
    ) -> Judgement:
        before = connection.execute(
            select(history.c.level)
            .where(history.c.series == series, history.c.valid.is_(True), history.c.level.is_not(None))
            .order_by(history.c.at_unix_ms.desc())
            .limit(LOOKED_AT)
        ).scalars()
        resolution = run["options"].get("precision", _PRECISION)
        return judged(
            found["level"],
            [float(level) for level in reversed(list(before)) if level],
            resolution_ratio=float(resolution),
        )


def all_series(connection: Connection) -> list[dict[str, Any]]:
    """Each series with its number of results and its latest one, the latest first."""
    latest = (
        select(history.c.series, func.max(history.c.at_unix_ms).label("at"), func.count().label("n"))
        .group_by(history.c.series)
        .subquery()
    )
    found = connection.execute(
        select(history, latest.c.n)
        .join(latest, (history.c.series == latest.c.series) & (history.c.at_unix_ms == latest.c.at))
        .order_by(history.c.at_unix_ms.desc())
    )
    return [dict(row) for row in found.mappings()]


def points(connection: Connection, series: str, limit: int) -> list[dict[str, Any]]:
    """The latest results of a series, ascending."""
    found = connection.execute(
        select(history).where(history.c.series == series).order_by(history.c.at_unix_ms.desc()).limit(limit)
    )
    return [dict(row) for row in reversed(found.mappings().all())]
