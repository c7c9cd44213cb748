"""A file of results: which tool wrote it, by its content, and the runs in it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from loadgen.adapters.imports import aiperf, guidellm, vllm_bench
from loadgen.adapters.imports.own import check_summary
from loadgen.adapters.imports.values import ImpossibleFigureError
from loadgen.core.comparison.side import Side, side_of
from loadgen.core.errors import StoreError
from loadgen.core.metrics.summary import SUMMARY_SCHEMA, SWEEP_SCHEMA, Summary, Sweep

EXPORTS = "a summary of Loadgen, or results of vllm bench serve, GuideLLM or AIPerf"
"""What can be read, in words."""

_TOOLS: tuple[Callable[[Any], tuple[Side, ...] | None], ...] = (
    vllm_bench.sides_of,
    guidellm.sides_of,
    aiperf.sides_of,
)


def read_export(path: Path) -> tuple[Side, ...]:
    """The runs in a JSON file, one a level; several objects one after another are several runs.

    Raises StoreError for a file that cannot be read, that none of these tools wrote, or with a number that cannot be.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as fault:
        raise StoreError(f"{path}: cannot be read: {fault.strerror or fault}") from fault
    except UnicodeDecodeError as fault:
        raise StoreError(f"{path}: expected {EXPORTS} as JSON: {fault}") from fault
    values, sides = _objects(text, path), list[Side]()
    for number, value in enumerate(values, start=1):
        try:
            sides += _sides(value, path)
        except ImpossibleFigureError as fault:
            where = f"{path}: object {number}" if len(values) > 1 else str(path)
            raise StoreError(f"{where}: {fault}") from fault
    if not sides:
        raise StoreError(f"{path}: expected {EXPORTS}, found no run in it")
    return tuple(sides)


def _objects(text: str, path: Path) -> list[Any]:
    decoder, values, place = json.JSONDecoder(), [], 0
    while rest := text[place:].lstrip():
        place = len(text) - len(rest)
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as fault:  # among them a number of thousands of digits
            raise StoreError(f"{path}: expected {EXPORTS} as JSON: {fault}") from fault
        values.append(value)
    return values


def _sides(value: Any, path: Path) -> tuple[Side, ...]:
    schema = value.get("schema") if isinstance(value, dict) else None
    try:
        if schema == SUMMARY_SCHEMA:
            check_summary(value)
            return (side_of(msgspec.convert(value, Summary)),)
        if schema == SWEEP_SCHEMA:
            levels = msgspec.convert(value, Sweep).levels
            for place in range(len(levels)):
                check_summary(value, "levels", place, "summary")
            return tuple(side_of(level.summary) for level in levels)
    except msgspec.ValidationError as fault:
        raise StoreError(f"{path}: expected {schema}: {fault}") from fault
    for sides_of in _TOOLS:
        if (sides := sides_of(value)) is not None:
            return sides
    raise StoreError(f"{path}: expected {EXPORTS}, found other JSON")
