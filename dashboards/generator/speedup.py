"""Panels that answer whether speculation pays, and why: arms beside the baseline, level by level."""

from dashboards.generator.grids import by_level
from dashboards.generator.lines import stat
from dashboards.generator.panels import GREEN, RED, Panel, Query, note
from dashboards.generator.promql import at_baseline, baseline_over, latest, over_baseline

_TPOT = 'metric="tpot", statistic="mean"'
OTHER = 'server!="$baseline"'
"""Arms that are not the baseline."""
_ESTIMATE = (
    "The latest repeat alone, without an interval: the experiment's report has the paired comparison over repeats."
)


def _speedup() -> str:
    return baseline_over(
        at_baseline("level_latency_seconds", _TPOT), latest("level_latency_seconds", f"{_TPOT}, {OTHER}")
    )


def _break_even() -> str:
    step = f"({latest('level_tokens_per_step', OTHER)} * {latest('level_latency_seconds', f'{_TPOT}, {OTHER}')})"
    return over_baseline(step, at_baseline("level_latency_seconds", _TPOT))


def paying() -> list[Panel]:
    """How much faster or slower arms are."""
    return [
        stat(
            "Best speedup",
            f"Largest speedup of TPOT of any arm at any level. {_ESTIMATE}",
            "x",
            Query(expr=f"max({_speedup()})"),
            steps=((None, RED), (1, GREEN)),
            decimals=2,
        ),
        stat(
            "Worst speedup",
            f"Smallest speedup of TPOT of any arm at any level; under 1 speculation costs time there. {_ESTIMATE}",
            "x",
            Query(expr=f"min({_speedup()})"),
            steps=((None, RED), (1, GREEN)),
            decimals=2,
        ),
        note(
            "Speedup is mean TPOT of the baseline / mean TPOT of the arm at the same level: above 1 the arm is faster. "
            f"{_ESTIMATE} Gaps between events are not compared: under speculation an event holds several tokens.",
            width=16,
            height=4,
        ),
        by_level(
            "Speedup by level (TPOT)",
            f"Mean TPOT of the baseline / mean TPOT of the arm at each level; above 1 the arm is faster. {_ESTIMATE}",
            "x",
            _speedup(),
        ),
        by_level(
            "Output tokens a second against the baseline",
            f"Output tokens a second of the arm / of the baseline at each level; above 1 the arm puts out more. "
            f"{_ESTIMATE}",
            "x",
            over_baseline(
                latest("level_output_tokens_per_second", OTHER), at_baseline("level_output_tokens_per_second")
            ),
        ),
    ]


def why() -> list[Panel]:
    """Tokens of a step, and how many it takes to break even."""
    return [
        by_level(
            "Tokens a step",
            "Output tokens of a decode step, over all steps, the bonus token included. The arm pays where this is "
            "above its break-even length.",
            "short",
            latest("level_tokens_per_step", OTHER),
        ),
        by_level(
            "Break-even length L*",
            "t_SD / t_AR: tokens that a step must put out to pay. t_SD = tokens a step x mean TPOT of the arm, t_AR "
            "= mean TPOT of the baseline, at the same level; it grows with load as verification stops being free. "
            f"Speedup = tokens a step / L*. {_ESTIMATE}",
            "short",
            _break_even(),
        ),
    ]
