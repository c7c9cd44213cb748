"""How a search ends the command."""

from pathlib import Path

import pytest

from loadgen.core.capacity.probe import Run
from loadgen.core.errors import ConfigError, ExitCode
from loadgen.options.capacity import CapacityOptions
from loadgen.options.resolve import resolve
from loadgen.wiring.capacity import FinishedSearch, exit_code_of
from tests.core.capacity.made import made_run, search, searched


def ended(*runs: Run, interrupted: bool = False) -> ExitCode:
    """The code of a search from 1 on with these runs."""
    left = iter(runs)
    wanted = search(most=2)
    result = searched(wanted, lambda step: next(left))
    return exit_code_of(FinishedSearch(path=Path(), search=wanted, result=result, runs=(), interrupted=interrupted))


def test_codes_follow_what_was_found() -> None:
    """0 with a capacity, 1 when the first level fails, 3 when the client was at fault, 4 when the server was gone."""
    good, bad = made_run(100, 100), made_run(0, 100)
    invalid, gone = made_run(100, 100, invalid="late"), made_run(0, 5, cut_short="gone")
    assert ended(good, good) is ExitCode.DONE
    assert ended(good, bad) is ExitCode.DONE
    assert ended(bad) is ExitCode.GATE_FAILED
    assert ended(good, invalid, invalid) is ExitCode.INVALID_MEASUREMENT
    assert ended(good, gone) is ExitCode.TARGET_FAILED
    assert ended(good, good, interrupted=True) is ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "--slo: this option is needed"),
        ({"slo": "ttft=1s", "slo_attainment": "1"}, "--slo-attainment: input should be less than 1"),
        ({"slo": "ttft=1s", "start": "8", "most": "4"}, "--start 8 lies above --max 4"),
        ({"slo": "ttft=1s", "start": "1.5"}, "expected whole numbers of requests in flight"),
        ({"slo": "ttft=1s", "start": "0", "variable": "request-rate"}, "--start: input should be greater than 0"),
        ({"slo": "ttft=1s", "most": "1e12", "variable": "request-rate"}, "expected rates from"),
        ({"slo": "ttft=1s", "gpus": "2"}, "--gpus needs --variable request-rate"),
        ({"slo": "ttft=1s", "burstiness": "2"}, "--burstiness needs --variable request-rate"),
        ({"slo": "ttft=1s", "ramp_up": "2", "variable": "request-rate"}, "--ramp-up is for a closed loop"),
        ({"slo": "ttft=1s", "max_error_ratio": "0.1"}, "--max-error-ratio: input should be None"),
    ],
)
def test_options_that_do_not_fit_are_named(given: dict[str, str], said: str) -> None:
    """Each wrong combination is refused before anything is sent."""
    with pytest.raises(ConfigError, match=said.replace("(", r"\(")):
        resolve(CapacityOptions, {"url": "http://x", **given}, environment={})
