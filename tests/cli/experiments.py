"""Folders of experiments whose results are known, without a server or a second of waiting."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

from loadgen.adapters.store.experiment_folder import CellEnd, CellState, ExperimentFolder, ExperimentManifest
from loadgen.adapters.store.run_folder import RunFolder
from loadgen.core.analysis.analyse import analyse
from loadgen.core.experiment.plan import Order, Plan, PlannedArm, PlannedCell, PlannedLevel, Role, make_plan
from loadgen.core.run import Load, LoadMode
from loadgen.options.experiment import ExperimentFile
from tests.core.analysis.factory import manifest
from tests.core.comparison.sides import DATA, OPTIONS, TOKENS, records

STARTED = "2026-01-01T00:00:00.000Z"


def planned(name: str, arms: Mapping[str, float], levels: tuple[int, ...], repeats: int, requests: int) -> Plan:
    """The first arm is the baseline, any other drafts three tokens."""
    told = [
        PlannedArm(
            name=arm,
            label=arm.upper(),
            role=Role.COMPARED if place else Role.BASELINE,
            of=arm,
            method="eagle3" if place else None,
            draft_tokens=3 if place else None,
        )
        for place, arm in enumerate(arms)
    ]
    rungs = [
        PlannedLevel(
            load=Load(mode=LoadMode.CONCURRENCY, concurrency=level, num_requests=requests, seed=5), warmup_requests=0
        )
        for level in levels
    ]
    return make_plan(
        name, arms=told, levels=rungs, repeats=repeats, order=Order.ABBA, workload={"data": "d"}, servers={}
    )


def stored_experiment(
    out: Path,
    *,
    name: str = "nightly",
    arms: Mapping[str, float] | None = None,
    levels: tuple[int, ...] = (1, 2),
    repeats: int = 2,
    requests: int = 60,
    unfinished: tuple[str, ...] = (),
    **changes: Any,
) -> Path:
    """An experiment in which an arm takes so many times as long as the records of `sides` do.

    `unfinished` names cells that have no run; `changes` are of the manifests of the runs.
    """
    arms = {"baseline": 1.0, "eagle3": 0.6} if arms is None else arms
    plan = planned(name, arms, levels, repeats, requests)
    file = ExperimentFile.model_validate(
        {
            "name": name,
            "workload": {"synthetic": {"input_tokens": 100, "output_tokens": TOKENS}},
            "load": {"concurrency": list(levels)},
            "level": {"num_requests": requests},
            "arms": {arm: {"url": f"http://127.0.0.1:{8000 + place}"} for place, arm in enumerate(arms)},
            "baseline": next(iter(arms)),
            "repeats": repeats,
        },
        context={"folder": out.parent},
    ).stored()
    folder = ExperimentFolder.create(
        out,
        ExperimentManifest(
            experiment_id=out.name, started_at=STARTED, plan=plan, file=file, data=DATA, client_version="0", host={}
        ),
    )
    for sitting in plan.sittings:
        folder.begin_sitting(sitting)
        for cell in sitting.cells:
            if cell.name not in unfinished:
                _measure(folder.begin_cell(cell), cell, arms[cell.arm.name], requests, changes)
                end = CellEnd(cell=cell.name, state=CellState.FINISHED, valid=True, ended_at=STARTED)
                folder.note(end)
    return out


def _measure(run: RunFolder, cell: PlannedCell, slower: float, requests: int, changes: Mapping[str, Any]) -> None:
    chance = crc32(f"{run.path}".encode()) % 10_000
    made = records(requests, slower=slower * (1 + 0.1 * cell.level.value), noise=chance)
    told = replace(
        manifest(data=DATA, options=OPTIONS, load=cell.level.load, planned=requests, run_id=run.path.name), **changes
    )
    run.save_manifest(told)
    writer = run.record_writer()
    for record in made:
        writer.put(record)
    writer.close()
    run.save_summary(analyse(run.records, told).summary)
