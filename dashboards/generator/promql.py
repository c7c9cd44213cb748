"""Expressions, as text. Where there are two kinds of histograms, native ones go before classic ones."""

CHOSEN = 'server=~"$server", method=~"$method", model=~"$model", workload=~"$workload"'
"""The series that a dashboard's variables choose."""

ARM = ("server", "method")
"""What tells one arm from another in panels."""

CELL = ("model", "workload", "variable", "level")
"""Under what an arm was measured: arms are compared where these are equal."""

LEVEL = (*ARM, *CELL)
"""What tells one level of an arm from another."""

RATE = "[$__rate_interval]"


def chosen(metric: str, more: str = "") -> str:
    """Series of a metric of ours."""
    selector = f"{CHOSEN}, {more}" if more else CHOSEN
    return f"loadgen_{metric}{{{selector}}}"


def summed(expression: str, *labels: str) -> str:
    """The sum by labels, or over everything."""
    return f"sum by ({', '.join(labels)}) ({expression})" if labels else f"sum({expression})"


def largest(expression: str, *labels: str) -> str:
    """The maximum by labels: one of several pages that tell the same."""
    return f"max by ({', '.join(labels)}) ({expression})"


def rate(metric: str, *labels: str, more: str = "") -> str:
    """How much a counter of ours grows a second."""
    return summed(f"rate({chosen(metric, more)}{RATE})", *labels)


def share(part: str, whole: str) -> str:
    """part / whole, and nothing where the whole is 0."""
    return f"({part}) / ({whole} > 0)"


def quantile(ratio: float, metric: str, *labels: str) -> str:
    """A quantile of a histogram of ours; nothing, rather than no number, where nothing was observed."""
    native = summed(f"rate({chosen(metric)}{RATE})", *labels)
    classic = summed(f"rate({chosen(f'{metric}_bucket')}{RATE})", *labels, "le")
    return f"(histogram_quantile({ratio}, {native}) or histogram_quantile({ratio}, {classic})) >= 0"


def observed(metric: str, *labels: str) -> str:
    """Observations a second of a histogram of ours."""
    native = summed(f"rate({chosen(metric)}{RATE})", *labels)
    classic = summed(f"rate({chosen(f'{metric}_count')}{RATE})", *labels)
    return f"(histogram_count({native}) or {classic})"


def buckets(metric: str) -> str:
    """A histogram of ours over time: samples that are histograms, or one series a bucket."""
    native = summed(f"rate({chosen(metric)}{RATE})")
    classic = summed(f"rate({chosen(f'{metric}_bucket')}{RATE})", "le")
    return f"{native} or ({classic} unless on () {native})"


def latest(metric: str, more: str = "", *labels: str) -> str:
    """The last result of each level within the time that is shown: levels of a run that is over stay."""
    return largest(f"last_over_time({chosen(metric, more)}[$__range])", *(labels or LEVEL))


def latency(metric: str, statistic: str) -> str:
    """An exact latency of each level."""
    return latest("level_latency_seconds", f'metric="{metric}", statistic="{statistic}"')


def at_baseline(metric: str, more: str = "") -> str:
    """The result of the baseline at each level, under the load of the same name."""
    selector = 'server="$baseline", model=~"$model", workload=~"$workload"' + (f", {more}" if more else "")
    return largest(f"last_over_time(loadgen_{metric}{{{selector}}}[$__range])", *CELL)


def over_baseline(arm: str, baseline: str) -> str:
    """arm / baseline level by level, and nothing where the baseline has 0."""
    return f"{arm} / on ({', '.join(CELL)}) group_left () ({baseline} > 0)"


def baseline_over(baseline: str, arm: str) -> str:
    """baseline / arm level by level, and nothing where the arm has 0."""
    return f"{baseline} / on ({', '.join(CELL)}) group_right () ({arm} > 0)"
