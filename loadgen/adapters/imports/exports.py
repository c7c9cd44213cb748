"""A file of results: which tool wrote it, by its content, and the runs in it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from loadgen.adapters.imports import aiperf, guidellm, vllm_bench
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

    Raises StoreError for a file that cannot be read, or that none of these tools wrote.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as fault:
        raise StoreError(f"{path}: cannot be read: {fault.strerror or fault}") from fault
    except UnicodeDecodeError as fault:
        raise StoreError(f"{path}: expected {EXPORTS} as JSON: {fault}") from fault
    sides = tuple(side for value in _objects(text, path) for side in _sides(value, path))
    if not sides:
        raise StoreError(f"{path}: expected {EXPORTS}, found no run in it")
    return sides


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
            return (side_of(msgspec.convert(value, Summary)),)
        if schema == SWEEP_SCHEMA:
            return tuple(side_of(level.summary) for level in msgspec.convert(value, Sweep).levels)
    except msgspec.ValidationError as fault:
        raise StoreError(f"{path}: expected {schema}: {fault}") from fault
    for sides_of in _TOOLS:
        if (sides := sides_of(value)) is not None:
            return sides
    raise StoreError(f"{path}: expected {EXPORTS}, found other JSON")
