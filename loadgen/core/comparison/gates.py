"""Gates of a comparison: conditions on a metric of a candidate under which it fails."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from operator import ge, gt, le, lt

from loadgen.core.comparison.metric_pair import METRICS, POOLED, STATISTICS, MetricPair, is_share, is_time
from loadgen.core.errors import ConfigError
from loadgen.core.stats.quantiles import PERCENTILES

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {">=": ge, "<=": le, ">": gt, "<": lt}
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_METRIC = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
_OPERATOR = re.compile(r">=|<=|>|<")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_MOST_DIGITS = 15
_MOST_NEAREST, _NEAR_RATIO = 3, 0.5


class Limit(StrEnum):
    """What a limit is: a multiple of the baseline's value, or a value of its own."""

    RELATIVE = "relative"
    ABSOLUTE = "absolute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A condition that fails a candidate. `limit` is a factor, or a value in seconds, as a share, or as it is counted.

    `certain`: only when the whole interval of the ratio is beyond the limit.
    """

    text: str
    metric: str
    operator: str
    limit: float
    kind: Limit
    certain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedGate:
    """A gate at one level of a candidate. `value` is what was held against `limit`, None when it was missing.

    `evidence` says in words how it ended; it holds no name from outside.
    """

    gate: str
    metric: str
    candidate: str
    at: str
    failed: bool
    value: float | None
    limit: float
    evidence: str


def parse_gate(text: str, *, certain: bool = False) -> Gate:
    """The gate meant by `METRIC OP VALUE`, such as `tpot_s.p99 > 1.05x`.

    VALUE is relative as `1.05x` or with a sign as `+5%`; else absolute: `50ms` of a time, `1%` or `0.01` of a share, a
    number of anything else. Raises ConfigError that points at what is wrong.
    """
    metric, place = _next(text, 0, _METRIC, "the name of a metric, such as tpot_s.p99")
    _check_metric(text, metric)
    operator, place = _next(text, place, _OPERATOR, "one of > < >= <=")
    number, unit_place = _next(text, place, _NUMBER, "a number, such as 1.05x, +5% or 50ms")
    unit = text[unit_place:].strip()
    limit, kind = _limit(text, metric, number, unit, unit_place)
    if certain and kind is Limit.ABSOLUTE:
        raise _wrong(
            text, unit_place, "expected a limit relative to the baseline, 1.05x or +5%: only a ratio has an interval"
        )
    return Gate(text=text.strip(), metric=metric, operator=operator, limit=limit, kind=kind, certain=certain)


def never_kept(gate: Gate, requests: int) -> str | None:
    """Why the gate would fail whatever happens, with so many requests: its percentile has no value. None when it has.

    Gaps between events are pooled, and one request has many of them.
    """
    name, _, statistic = gate.metric.rpartition(".")
    least = PERCENTILES[statistic][1] if statistic in PERCENTILES and name not in POOLED else 1
    if requests >= least:
        return None
    return f"{gate.text!r} can never be kept: {requests} requests have no {statistic}, which takes {least}"


def judged(
    gate: Gate,
    found: MetricPair | None,
    *,
    candidate: str,
    at: str,
    reason: str | None = None,
) -> JudgedGate:
    """Whether the gate fails there. A value that it needs and that is missing fails it, with the `reason` if known."""
    value = _value(gate, found)
    limit = gate.limit
    if gate.kind is Limit.RELATIVE and value is None and found is not None and found.baseline == 0:
        value, limit = found.candidate, 0.0  # any multiple of nothing is nothing
    if value is None or found is None or (gate.certain and found.low is None):
        failed = True
        evidence = f"{gate.metric} cannot be judged: {reason or _why_missing(gate, found)}"
    else:
        failed = _OPERATORS[gate.operator](_tested(gate, found, value), limit)
        condition = f"{gate.operator} {gate.text.partition(gate.operator)[2].strip()}"
        shown = _shown(gate, found, value, limit)
        evidence = f"{gate.metric} is {shown}: {'' if failed else 'not '}{condition}"
    return JudgedGate(
        gate=gate.text,
        metric=gate.metric,
        candidate=candidate,
        at=at,
        failed=failed,
        value=value,
        limit=limit,
        evidence=evidence,
    )


def _next(text: str, place: int, pattern: re.Pattern[str], expected: str) -> tuple[str, int]:
    """What stands at a place, and where it ends."""
    begin = place + len(text[place:]) - len(text[place:].lstrip())
    match = pattern.match(text, begin)
    if match is None:
        raise _wrong(text, begin, f"expected {expected}")
    return match[0], match.end()


def _wrong(text: str, place: int, what: str) -> ConfigError:
    return ConfigError(f"gate {text!r}, column {place + 1}: {what}")


def _check_metric(text: str, metric: str) -> None:
    place = text.index(metric)
    if metric in METRICS:
        return
    if f"{metric}.{STATISTICS[0]}" in METRICS:
        raise _wrong(text, place, f"expected a statistic of it: {metric} with .{', .'.join(STATISTICS)}")
    close = get_close_matches(metric, METRICS, n=_MOST_NEAREST, cutoff=_NEAR_RATIO)
    hint = f"did you mean {', '.join(close)}?" if close else "expected one such as tpot_s.p99 or output_tokens_per_s;"
    raise _wrong(text, place, f"{metric} is not compared; {hint} docs/compare.md lists all that are")


def _limit(text: str, metric: str, number: str, unit: str, place: int) -> tuple[float, Limit]:
    value = float(number)
    if not math.isfinite(value):
        raise _wrong(text, place - len(number), f"expected a number below 1e308, got {number}")
    signed = number[0] in "+-"
    if unit == "x":
        if value <= 0 or signed:
            raise _wrong(text, place, "expected a factor above 0 without a sign, such as 1.05x")
        return value, Limit.RELATIVE
    if unit == "%" and signed:
        if value <= -100:
            raise _wrong(text, place, "expected a change of more than -100%")
        return 1 + value / 100, Limit.RELATIVE
    if signed:
        raise _wrong(text, place, "a sign is for a change in percent, such as +5%")
    if is_time(metric):
        if unit not in _SECONDS:
            raise _wrong(text, place, f"{metric} is a time: expected its unit (us, ms, s), x, or a change such as +5%")
        return value * _SECONDS[unit], Limit.ABSOLUTE
    if unit == "%":
        if not is_share(metric):
            raise _wrong(text, place, f"expected a sign for a change, such as +{number}%, since {metric} is no share")
        return value / 100, Limit.ABSOLUTE
    if unit:
        raise _wrong(text, place, f"expected x, %, or nothing after the number, found {unit!r}")
    return value, Limit.ABSOLUTE


def _value(gate: Gate, found: MetricPair | None) -> float | None:
    if found is None:
        return None
    return found.ratio if gate.kind is Limit.RELATIVE else found.candidate


def _tested(gate: Gate, found: MetricPair, value: float) -> float:
    """The value, or the end of the interval nearest to the limit."""
    if not gate.certain:
        return value
    assert found.low is not None
    assert found.high is not None
    return found.low if gate.operator in (">", ">=") else found.high


def _why_missing(gate: Gate, found: MetricPair | None) -> str:
    if found is None or found.candidate is None:
        statistic = gate.metric.rpartition(".")[2]
        least = PERCENTILES[statistic][1] if statistic in PERCENTILES else 1
        return "it has no value" + (f"; {statistic} takes {least} requests" if least > 1 else "")
    if gate.kind is Limit.RELATIVE and found.baseline is None:
        return "the baseline has no value"
    return "its ratio has no interval, for want of records or of requests"


def _shown(gate: Gate, found: MetricPair, value: float, limit: float) -> str:
    """`1.12x of the baseline (23.4 ms against 20.9 ms)`, or the value alone."""
    if gate.kind is Limit.ABSOLUTE:
        scale, unit = _scale(gate.metric)
        return f"{_apart(value * scale, limit * scale)}{unit}"
    if found.ratio is None:
        return f"{_plain(gate.metric, value)}, and 0 at the baseline"
    interval = ""
    if gate.certain:
        assert found.low is not None
        assert found.high is not None
        interval = f" [{_apart(found.low, limit)}, {_apart(found.high, limit)}]"
    values = " against ".join(_plain(gate.metric, each) for each in (found.candidate, found.baseline))
    return f"{_apart(value, limit)}x{interval} of the baseline ({values})"


def _scale(metric: str) -> tuple[float, str]:
    return (1e3, " ms") if is_time(metric) else (100.0, "%") if is_share(metric) else (1.0, "")


def _plain(metric: str, value: float | None) -> str:
    assert value is not None
    scale, unit = _scale(metric)
    shown = value * scale
    return f"{shown:.0f}{unit}" if shown >= 10_000 else f"{shown:.4g}{unit}"


def _apart(value: float, limit: float) -> str:
    """The number with three digits, or as many as set it apart from the limit."""
    digits = 3
    while digits < _MOST_DIGITS and value != limit and f"{value:.{digits}g}" == f"{limit:.{digits}g}":
        digits += 1
    return f"{value:.{digits}g}"
