"""The dashboard of capacity tests that come again and again: what a server carries, and whether that changed."""

from collections.abc import Sequence

from dashboards.generator.dashboard import annotation, assembled, own_variables
from dashboards.generator.grids import COLUMNS, table
from dashboards.generator.lines import stat, states, timeseries
from dashboards.generator.panels import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    Json,
    Panel,
    Query,
    Row,
    fixed_color,
    note,
    words,
)
from dashboards.generator.promql import chosen, largest, latest

_TEST = ("server", "method", "model", "workload", "variable")
_WHO = "{{server}}, {{method}}, {{workload}} ({{variable}})"
_DRAWN = {
    "drawStyle": "line",
    "showPoints": "always",
    "pointSize": 5,
    "spanNulls": True,
    "lineInterpolation": "stepAfter",
}
_INTERVAL = "10m"
_VERDICTS = words(
    {
        0: ("met at a level", GREEN),
        1: ("not met at the first level", ORANGE),
        2: ("invalid", RED),
        3: ("unfinished", GREY),
    }
)
_CAPACITY = "The highest load at which the server met its objectives for the share of requests that was asked for."


def dashboard() -> Json:
    """*Capacity history*."""
    return assembled(
        uid="loadgen-capacity",
        title="Capacity history",
        description="Results of `loadgen capacity` and of scheduled tests over weeks: capacity with its bounds, "
        "verdicts, and how each result stands to those before it. Definitions: docs/capacity.md.",
        rows=(
            Row(title="Latest test", panels=_latest()),
            Row(title="History", panels=_history()),
            Row(title="Levels of the tests", panels=_levels()),
        ),
        variables=own_variables("loadgen_capacity_verdict"),
        annotations=[annotation("Regressions", _ALERT, "{{alertname}}", RED, text="{{server}}, {{method}}")],
        since="28d",
        refresh="1m",
    )


_ALERT = 'ALERTS{alertname="LoadgenCapacityRegression", alertstate="firing"}'


def _in_step(metric: str) -> str:
    """The last result of each step: one scrape a test is enough to be seen."""
    return largest(f"last_over_time({chosen(metric)}[$__interval])", *_TEST)


def _shown(metric: str) -> str:
    """The latest result within the time that is shown."""
    return largest(f"last_over_time({chosen(metric)}[$__range])", *_TEST)


def _median() -> str:
    """The median of the four weeks before, hour by hour: a result weighs as long as it is exported."""
    hourly = largest(f"last_over_time({chosen('capacity_level')}[1h])", *_TEST)
    return f"quantile_over_time(0.5, ({hourly})[28d:1h] offset 1h)"


def _against_before(now: str) -> str:
    return f"{now} / ({_median()} > 0)"


def _latest() -> list[Panel]:
    return [
        stat(
            "Latest capacity",
            f"{_CAPACITY} The latest test.",
            "short",
            Query(expr=_shown("capacity_level"), legend=_WHO),
            width=5,
        ),
        stat(
            "Latest against before",
            "Latest capacity / median of the four weeks before it, hour by hour.",
            "percentunit",
            Query(expr=_against_before(_shown("capacity_level")), legend=_WHO),
            width=5,
            steps=((None, RED), (0.9, ORANGE), (0.97, GREEN)),
        ),
        stat(
            "Verdict",
            "Met: a level passed, and that is the capacity. Not met: the first level already failed. Invalid, "
            "unfinished: the test shows nothing.",
            "short",
            Query(expr=_shown("capacity_verdict"), legend=_WHO),
            width=5,
            mappings=[_VERDICTS],
        ),
        stat(
            "Age of the latest test",
            "Time since the latest search ended.",
            "s",
            Query(expr=f"time() - {_shown('capacity_ended_timestamp_seconds')}", legend=_WHO),
            width=5,
            decimals=0,
        ),
        stat(
            "Attainment at capacity",
            "good / due at the capacity: the share of requests that met every objective there.",
            "percentunit",
            Query(expr=_shown("capacity_attainment_ratio"), legend=_WHO),
            decimals=2,
        ),
    ]


def _over_tests(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    minimum: float | None = 0,
    maximum: float | None = None,
    overrides: Sequence[Json] = (),
) -> Panel:
    """A point a test, and a line that waits for the next one."""
    return timeseries(
        title,
        description,
        unit,
        *queries,
        minimum=minimum,
        maximum=maximum,
        overrides=overrides,
        custom=_DRAWN,
        interval=_INTERVAL,
        width=12,
    )


def _history() -> list[Panel]:
    return [
        _over_tests(
            "Capacity",
            f"{_CAPACITY} Dashed: the highest level that passed for certain and the lowest that failed for certain, "
            "as far as there are such; the capacity lies between them.",
            "short",
            Query(expr=_in_step("capacity_level"), legend=f"capacity {_WHO}"),
            Query(expr=_in_step("capacity_low_level"), legend=f"passed for certain {_WHO}"),
            Query(expr=_in_step("capacity_high_level"), legend=f"failed for certain {_WHO}"),
            overrides=[
                fixed_color("/^capacity/", BLUE, lineWidth=2),
                fixed_color("/^passed for certain/", GREEN, lineStyle={"fill": "dash", "dash": [4, 4]}),
                fixed_color("/^failed for certain/", RED, lineStyle={"fill": "dash", "dash": [4, 4]}),
            ],
        ),
        _over_tests(
            "Against the weeks before",
            "Capacity / median of the four weeks before it, hour by hour; under 0.9 the rule "
            "LoadgenCapacityRegression fires, unless the bounds of the test still hold that median.",
            "percentunit",
            Query(expr=_against_before(_in_step("capacity_level")), legend=_WHO),
        ),
        _over_tests(
            "Output tokens a second at capacity",
            "Output tokens that arrived a second at the capacity.",
            "short",
            Query(expr=_in_step("capacity_output_tokens_per_second"), legend=_WHO),
        ),
        _over_tests(
            "Attainment at capacity and what is asked for",
            "good / due at the capacity, and the share that has to be reached.",
            "percentunit",
            Query(expr=_in_step("capacity_attainment_ratio"), legend=f"attained {_WHO}"),
            Query(expr=_in_step("capacity_target_ratio"), legend=f"asked for {_WHO}", color=GREY),
            minimum=None,
            maximum=1,
        ),
        states(
            "Verdicts",
            "What each test came to: met at a level, not met at the first level, invalid, unfinished.",
            Query(expr=_in_step("capacity_verdict"), legend=_WHO),
            mappings=[_VERDICTS],
            interval=_INTERVAL,
            height=8,
        ),
        _over_tests(
            "Requests a second at capacity",
            "Completed requests a second at the capacity.",
            "reqps",
            Query(expr=_in_step("capacity_requests_per_second"), legend=_WHO),
        ),
    ]


def _levels() -> list[Panel]:
    return [
        note(
            "Every level that a search tried is a level as a sweep's, with its exact results; the latest of each "
            "within the time that is shown."
        ),
        table(
            "Levels tried",
            "Of the level's latest run: attainment is good / due, not completed is (failed + dropped) / planned.",
            (
                ("Attainment", "percentunit", latest("level_slo_attainment_ratio")),
                ("Completed", "reqps", latest("level_request_rate_rps")),
                ("Goodput", "reqps", latest("level_goodput_rps")),
                ("Not completed", "percentunit", latest("level_error_ratio")),
                ("Valid", "bool_yes_no", latest("level_measurement_valid")),
            ),
            labels=COLUMNS,
            height=10,
        ),
    ]
