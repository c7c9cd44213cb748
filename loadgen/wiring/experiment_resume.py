"""What may have changed since an experiment was begun, and what may not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from loadgen.adapters.store.experiment_folder import (
    CellEnd,
    CellState,
    Change,
    ExperimentFolder,
    ExperimentManifest,
)
from loadgen.core.errors import ConfigError, StoreError
from loadgen.core.experiment.plan import Plan
from loadgen.options.experiment import ExperimentFile
from loadgen.wiring.stored_summary import believable_summary

_JUDGES = ("name", "slo", "slo_attainment", "gates", "price_per_hour", "budget", "allow_unequal")
_DRIVES = (
    *("start_time", "start_timeout", "timeout", "idle_timeout", "connect_timeout", "grace", "cooldown"),
    *("api_key_env", "scrape_interval", "gpu_metrics_url", "local_gpus"),
)
MAY_CHANGE = frozenset({*_JUDGES, *_DRIVES})
"""Sections that may be another at a resume: what results are judged by, and how it is gone about. So may labels,
GPUs and folders of arms, which are not stored with it, and the place of the data."""

_OF_WORKLOAD = ("workload.", "load.", "level.", "endpoint ")
_OF_REPORTS = ("label", "gpus")
_PLACES = frozenset({"workload.trace", "workload.prompts"})
_RISING = frozenset({"load.concurrency", "load.request_rate"})
"""Levels, which rise in every sitting however the file has them."""


def resumed(manifest: ExperimentManifest, experiment: ExperimentFile, plan: Plan, *, at: str) -> ExperimentManifest:
    """The manifest of an experiment that goes on by this file: the same object when nothing is another.

    Raises ConfigError that says in what file or data are not what it was begun with, beyond what may change.
    """
    changes = list(_changes(manifest, experiment, plan, at))
    free = [each for each in changes if each.setting.partition(".")[0] in MAY_CHANGE or _is_of_report(each, plan)]
    refused = [each for each in changes if each not in free]
    if manifest.plan.digest == plan.digest:
        refused = [each for each in refused if each.setting not in _PLACES]
    said = [f"{each.setting} was {each.was!r} and is {each.now!r}" for each in refused]
    if manifest.plan.workload_digest != plan.workload_digest and not any(map(_is_of_workload, said)):
        said.append("the data has another content")
    if manifest.plan.digest != plan.digest and not said:
        said.append(_otherwise(manifest.plan, plan))
    if said:
        raise ConfigError(
            f"this is not the experiment that was begun, so its cells cannot stand beside new ones: {'; '.join(said)}"
        )
    if not changes:
        return manifest
    file = msgspec.to_builtins(experiment.stored())
    return replace(manifest, plan=plan, file=file, changes=(*manifest.changes, *changes))


def give_up_damaged(folder: ExperimentFolder, plan: Plan, *, at: str) -> Iterator[CellEnd]:
    """Finished cells whose files are no longer those of a finished run count as failed from now on, and are run again;
    what is left of them is set aside then."""
    finished = folder.finished()
    for cell in plan.cells:
        if cell.name not in finished:
            continue
        try:
            run = folder.cell(cell)
            fault = run.damage()
            believable_summary(run)
        except StoreError as error:
            fault = str(error)
        if fault is not None:
            end = CellEnd(cell=cell.name, state=CellState.FAILED, reason=fault, ended_at=at)
            folder.note(end)
            yield end


def _otherwise(begun: Plan, plan: Plan) -> str:
    """What two plans of the same settings differ in."""
    before, after = ([arm.name for arm in each.arms] for each in (begun, plan))
    if before == after:
        return "its servers or its order are planned otherwise by this version of Loadgen"
    order = "the order in which arms are started is part of what is measured"
    return f"{order}: it was {', '.join(before)} and is {', '.join(after)}"


def _changes(manifest: ExperimentManifest, experiment: ExperimentFile, plan: Plan, at: str) -> Iterator[Change]:
    """What an older version did not store is no change."""
    before_it, after_it = manifest.file, msgspec.to_builtins(experiment.stored())
    arms = [list(file["arms"]) for file in (before_it, after_it)]
    if set(arms[0]) != set(arms[1]):
        yield Change(setting="arms", was=arms[0], now=arms[1], at=at)
    then, now = (_flat({**file, "arms": _of_both(file["arms"], arms)}) for file in (before_it, after_it))
    for name in dict.fromkeys((*then, *now)):
        was, told = (sorted(value) if value and name in _RISING else value for value in (then.get(name), now.get(name)))
        known = name in then or name.partition(".")[0] in manifest.file
        if was != told and known:
            yield Change(setting=name, was=was, now=told, at=at)
    for before, after in zip(manifest.plan.arms, plan.arms, strict=False):
        if before.of != before.name or before.name != after.name:
            continue
        for setting in _OF_REPORTS:
            was, told = getattr(before, setting), getattr(after, setting)
            if was != told:
                yield Change(setting=f"arms.{after.name}.{setting}", was=was, now=told, at=at)


def _of_both(arms: Mapping[str, Any], names: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Those that have the same name then and now: of another one all would be said to have changed."""
    return {name: arm for name, arm in arms.items() if all(name in each for each in names)}


def _is_of_report(change: Change, plan: Plan) -> bool:
    """Whether it is nothing but how results of an arm are told."""
    return change.setting in {f"arms.{arm.name}.{setting}" for arm in plan.arms for setting in _OF_REPORTS}


def _is_of_workload(change: str) -> bool:
    return change.startswith(_OF_WORKLOAD)


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {leaf: item for key, inner in value.items() for leaf, item in _flat(inner, f"{name}.{key}").items()}
    return {name.removeprefix("."): value}
