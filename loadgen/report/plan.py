"""The plan of an experiment as terminal text and as JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby

from rich.console import Group, RenderableType
from rich.text import Text

from loadgen.core.experiment.estimate import Estimate
from loadgen.core.experiment.plan import Order, Plan, PlannedArm, PlannedLevel, Role
from loadgen.core.run import LoadMode
from loadgen.report import text_parts
from loadgen.report.text_parts import INDENT
from loadgen.report.words import DASH, asked, number, printable, span

_ROLES = {
    Role.BASELINE: "baseline",
    Role.AGAIN: "the baseline once more: the noise floor",
    Role.COMPARED: "compared with the baseline",
}
_SERVERS = {"profile": "profile", "url": "running", "command": "command", "sim": "simulated"}


def plan_json(
    plan: Plan, estimate: Estimate, notes: Sequence[str], *, servers: Mapping[str, str], starts: Mapping[str, str]
) -> str:
    """Strict JSON, indented, with a newline at its end."""
    told = {
        "schema": plan.schema,
        "name": plan.name,
        "order": plan.order,
        "repeats": plan.repeats,
        "baseline": plan.baseline.name,
        "workload_digest": plan.workload_digest,
        "digest": plan.digest,
        "arms": [asdict(arm) | {"server": servers[arm.of], "start": starts[arm.of]} for arm in plan.arms],
        "levels": [{"name": level.name, "value": level.value} | asdict(level) for level in plan.levels],
        "sittings": [
            {
                "name": sitting.name,
                "arm": sitting.arm.name,
                "repeat": sitting.repeat,
                "expected_s": estimate.sittings_s.get(sitting.name),
                "cells": [cell.name for cell in sitting.cells],
            }
            for sitting in plan.sittings
        ],
        "estimate": {key: value for key, value in asdict(estimate).items() if key != "sittings_s"},
        "notes": list(notes),
    }
    return json.dumps(told, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def plan_text(
    plan: Plan,
    estimate: Estimate,
    notes: Sequence[str],
    *,
    servers: Mapping[str, str],
    starts: Mapping[str, str],
    width: int = 100,
    color: bool = False,
) -> str:
    """Arms, levels, the order of the sittings, what it all comes to, and what should be known before it starts."""
    room = width - INDENT
    count = f"{len(plan.arms)} arms x {len(plan.levels)} levels x {plan.repeats} repeats"
    parts: list[RenderableType] = [
        Text("PLAN  ", style="bold cyan").append(f"{printable(plan.name)}", style="bold").append(f"  {count}"),
        *(Text(f"  ! {printable(note)}", style="yellow") for note in notes),
        text_parts.section("Arms", _arms(plan.arms, servers, room)),
        text_parts.section(
            "Servers, as they are started", text_parts.facts([(n, printable(s)) for n, s in starts.items()])
        ),
        text_parts.section("Levels, in this order in every sitting", _levels(plan.levels, room)),
        text_parts.section(f"Sittings, a start of a server each, in the order {_order(plan.order)}", _sittings(plan)),
        text_parts.section("All in all", text_parts.facts(_totals(plan, estimate))),
    ]
    return text_parts.rendered(parts, width, color)


def _arms(arms: Iterable[PlannedArm], servers: Mapping[str, str], room: int) -> RenderableType:
    rows = [
        [
            Text(arm.name),
            Text(_SERVERS[servers[arm.of]]),
            Text(printable(arm.method or DASH)),
            Text(number(arm.draft_tokens)),
            Text(_purpose(arm)),
        ]
        for arm in arms
    ]
    return text_parts.table(["Arm", "Server", "Method", ">Draft tokens", "What for"], rows, room, stretch=4)[0]


def _purpose(arm: PlannedArm) -> str:
    if arm.role is not Role.FORCED:
        return _ROLES[arm.role]
    if arm.forced_length == 1:
        return f"{arm.of}, nothing accepted: the cost"
    return f"{arm.of}, everything accepted: the bound"


def _levels(levels: Sequence[PlannedLevel], room: int) -> RenderableType:
    rows = [
        [
            Text(level.name),
            Text(f"{asked(level.value)} {_unit(level)}"),
            Text(number(level.load.num_requests)),
            Text(number(level.warmup_requests)),
        ]
        for level in levels
    ]
    return text_parts.table(["Level", "Load", ">Requests", ">Warm-up"], rows, room)[0]


def _unit(level: PlannedLevel) -> str:
    return "in flight" if level.load.mode is LoadMode.CONCURRENCY else "requests/s"


def _order(order: Order) -> str:
    return "that cancels drift" if order is Order.ABBA else "of the file"


def _sittings(plan: Plan) -> RenderableType:
    repeats = groupby(plan.sittings, key=lambda sitting: sitting.repeat)
    rows = [(f"repeat {repeat}", ", ".join(sitting.arm.name for sitting in sittings)) for repeat, sittings in repeats]
    return Group(text_parts.facts(rows))


def _totals(plan: Plan, estimate: Estimate) -> list[tuple[str, str]]:
    rows = [
        ("cells", f"{len(plan.sittings) * len(plan.levels)} in {len(plan.sittings)} sittings"),
        ("requests", f"{estimate.requests}, {estimate.warmup_requests} of them warm-up"),
        ("tokens", f"{_count(estimate.input_tokens)} in, {_count(estimate.output_tokens)} out"),
        ("time", span(estimate.duration_s) if estimate.duration_s is not None else "unknown: answers have no length"),
    ]
    rows += [("", f"with {line}") for line in estimate.basis]
    if estimate.price is not None:
        rows.append(("price", number(estimate.price)))
    return [*rows, ("digest", f"{plan.digest[:16]}, of what is sent {plan.workload_digest[:16]}")]


def _count(tokens: int | None) -> str:
    return "unknown" if tokens is None else str(tokens)
