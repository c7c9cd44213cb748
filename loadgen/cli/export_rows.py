"""What is stored, as tables for other tools: which columns tell its runs apart, and a row for each."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from loadgen.cli.stored import Stored, StoredExperiment, StoredRun, StoredSearch, StoredSweep
from loadgen.core.metrics.summary import Summary
from loadgen.core.run import LoadMode
from loadgen.report.columns import NO_PLACES, Place, Places
from loadgen.report.csv import SWEEP_PLACES, sweep_rows

CELLS_SCHEMA = "loadgen.cells/1"

_PROBE_PLACES: Places = {
    "search_id": str,
    "variable": str,
    "probe": int,
    "level": float,
    "repeat": int,
    "verdict": str,
    "ground": str,
    "why": str,
    "capacity": bool,
}
_CELL_PLACES: Places = {
    "experiment_id": str,
    "arm": str,
    "label": str,
    "role": str,
    "method": str,
    "draft_tokens": int,
    "forced_length": int,
    "repeat": int,
    "variable": str,
    "level": float,
}


def request_places(stored: Stored) -> Places:
    """The columns in front of each request and of each bin of a time series."""
    match stored:
        case StoredRun():
            return NO_PLACES
        case StoredSweep():
            return {"level": float}
        case StoredSearch():
            return {"probe": int, "level": float}
        case StoredExperiment():
            return {"arm": str, "repeat": int, "level": float}


def run_rows(stored: Stored) -> tuple[Places, Sequence[tuple[Place, Summary]]]:
    """The columns in front of each summary, and the summaries with what stands in them."""
    match stored:
        case StoredRun():
            return NO_PLACES, [({}, stored.result)]
        case StoredSweep():
            return SWEEP_PLACES, sweep_rows(stored.sweep)
        case StoredSearch():
            return _PROBE_PLACES, _probe_rows(stored)
        case StoredExperiment():
            return _CELL_PLACES, _cell_rows(stored)


def cells_document(stored: StoredExperiment) -> dict[str, Any]:
    """The cells of an experiment for JSON: each with what tells it apart and its summary."""
    return {
        "schema": CELLS_SCHEMA,
        "experiment_id": stored.manifest.experiment_id,
        "name": stored.manifest.plan.name,
        "started_at": stored.manifest.started_at,
        "cells": [{**_without_id(place), "summary": summary} for place, summary in _cell_rows(stored)],
    }


def _without_id(place: Place) -> Place:
    return {name: value for name, value in place.items() if name != "experiment_id"}


def _probe_rows(stored: StoredSearch) -> list[tuple[Place, Summary]]:
    """`capacity` marks the probe of the highest level that passed, of several runs at it the last."""
    result = stored.result
    found = None if result.capacity is None else result.capacity.level
    decided = [probe for probe in result.probes if probe.level == found]
    return [
        (
            {
                "search_id": stored.search_id,
                "variable": result.variable,
                **run.place,
                "repeat": probe.repeat,
                "verdict": probe.verdict.value,
                "ground": None if probe.ground is None else probe.ground.value,
                "why": probe.why,
                "capacity": bool(decided) and probe is decided[-1],
            },
            run.result,
        )
        for run, probe in zip(stored.runs, result.probes, strict=True)
    ]


def _cell_rows(stored: StoredExperiment) -> list[tuple[Place, Summary]]:
    rows: list[tuple[Place, Summary]] = []
    for run, cell in zip(stored.runs, stored.cells, strict=True):
        arm = asdict(cell.arm)
        of_arm = {name: arm[name] for name in ("label", "role", "method", "draft_tokens", "forced_length")}
        variable = "concurrency" if cell.level.load.mode is LoadMode.CONCURRENCY else "request_rate_rps"
        place = {"experiment_id": stored.manifest.experiment_id, **run.place, **of_arm, "variable": variable}
        rows.append(({name: place[name] for name in _CELL_PLACES}, run.result))
    return rows
