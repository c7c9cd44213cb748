"""The stored capacity that a series of capacity tests is held against."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from loadgen.service.jobs import queue
from loadgen.service.store import named
from loadgen.service.store.tables import baselines, schedules


def baseline_of(connection: Connection, latest: Mapping[str, Any]) -> dict[str, Any] | None:
    """The baseline of a series by its latest test: its name, run, and the capacity with its bounds.

    The schedule of that test says which, since it may have been given another one meanwhile; without a schedule the
    test itself does. None where there is none, none any more, and none in the same unit.
    """
    run = queue.load(connection, latest["run_id"])
    baseline_id = None if run is None else _wanted(connection, run)
    baseline = None if baseline_id is None else named.load(connection, baselines, baseline_id)
    held = None if baseline is None else queue.load(connection, baseline["run_id"])
    if baseline is None or held is None:
        return None
    result = held["result"] or {}
    if result.get("level") is None or result.get("variable") != latest["variable"]:
        return None
    bounds = {name: result.get(name) for name in ("level", "low", "high")}
    return {"name": baseline["name"], "run_id": baseline["run_id"], **bounds}


def _wanted(connection: Connection, run: Mapping[str, Any]) -> str | None:
    schedule = None if run["schedule_id"] is None else named.load(connection, schedules, run["schedule_id"])
    found: str | None = run["baseline_id"] if schedule is None else schedule["request"].get("baseline_id")
    return found
