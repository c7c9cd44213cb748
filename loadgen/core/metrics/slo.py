"""Service-level objectives: which metrics may have one, and how they are written."""

from loadgen.core.units import parse_duration_ns, seconds

SLO_METRICS = ("ttft_s", "ttft_from_due_s", "ttfo_s", "tpot_s", "e2el_s", "e2el_from_due_s")
"""A request is judged by itself, so only metrics with one value a request can be an objective."""

_POOLED = ("icl_s", "itl_s")


def parse_slo(text: str) -> dict[str, float]:
    """Metric to limit in seconds from `ttft=500ms,tpot=50ms,e2el=10s`; names with or without `_s`, any order.

    A limit needs its unit: other tools take a bare number as milliseconds.

    Raises ValueError, naming the part that is wrong and what was expected.
    """
    objectives: dict[str, float] = {}
    for part in text.split(","):
        name, equals, limit = (piece.strip().lower() for piece in part.partition("="))
        if not equals or not name:
            raise ValueError(f"expected METRIC=TIME pairs such as ttft=500ms,tpot=50ms, got {part.strip()!r}")
        metric = name if name.endswith("_s") else f"{name}_s"
        if metric in _POOLED:
            raise ValueError(f"{name}: gaps are pooled over requests and judge none by itself; use tpot")
        if metric not in SLO_METRICS:
            known = ", ".join(each.removesuffix("_s") for each in SLO_METRICS)
            raise ValueError(f"{name}: not a metric that can have an objective; expected one of {known}")
        if metric in objectives:
            raise ValueError(f"{name}: given twice")
        if limit.replace(".", "", 1).isdigit() and float(limit):
            raise ValueError(f"{name}: expected a time with its unit, such as {limit}ms, got {limit!r}")
        try:
            objectives[metric] = seconds(parse_duration_ns(limit))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if objectives[metric] <= 0:
            raise ValueError(f"{name}: expected a time above zero, got {limit!r}")
    return objectives
