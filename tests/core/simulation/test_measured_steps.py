"""Measured step times as text."""

import pytest

from loadgen.core.errors import ConfigError, LoadgenError, TraceFormatError
from loadgen.core.simulation.measured_steps import is_inline, parse_csv, parse_inline


def test_times_in_one_line() -> None:
    """Units or bare seconds, in any order; levels come out rising."""
    found = parse_inline("64:10ms:17000us, 1:0.0071:9.3e-3s")
    assert found.concurrency == (1, 64)
    assert found.plain_s == pytest.approx((0.0071, 0.010))
    assert found.speculative_s == pytest.approx((0.0093, 0.017))


def test_a_file_needs_three_columns_and_may_have_more() -> None:
    """Columns are found by name."""
    lines = ["gpu,t_sd_s,concurrency,t_ar_s\n", "h100,9ms,1,0.007\n", "h100,0.02,32,10ms\n"]
    found = parse_csv(lines, "steps.csv")
    assert (found.concurrency, found.plain_s) == ((1, 32), (0.007, 0.01))
    assert found.speculative_s == pytest.approx((0.009, 0.02))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1:7ms", "expected CONCURRENCY:PLAIN:SPECULATIVE such as 16:8ms:12ms, got '1:7ms'"),
        ("1:7ms:0ms", "in '1:7ms:0ms': expected a time above 0 such as 8ms or 0.008, got '0ms'"),
        ("1:7ms:-9ms", "got '-9ms'"),
        ("1:7ms:9h", "got '9h'"),
        ("0:7ms:9ms", "expected a concurrency of 1 or more, got '0'"),
        ("nan:7ms:9ms", "got 'nan'"),
        ("1:7ms:9ms,1:8ms:9ms", "the step times: a concurrency stands twice"),
        ("1:7ms:9ms,", "got ''"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, message: str) -> None:
    """The part and what was expected."""
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        parse_inline(text)


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        (["concurrency,t_ar_s\n"], TraceFormatError, "s.csv:1: expected the columns .*; t_sd_s missing"),
        ([], TraceFormatError, "s.csv:1: expected the columns"),
        (["concurrency,t_ar_s,t_sd_s\n"], ConfigError, "s.csv: expected at least one row"),
        (
            ["concurrency,t_ar_s,t_sd_s\n", "1,7ms,9ms\n", "2,7ms,\n"],
            TraceFormatError,
            "s.csv:3: field 't_sd_s': expected a time above 0",
        ),
        (["concurrency,t_ar_s,t_sd_s\n", "x,7ms,9ms\n"], TraceFormatError, "s.csv:2: field 'concurrency'.*got 'x'"),
        (["concurrency,t_ar_s,t_sd_s\n", "1,7ms\n"], TraceFormatError, "s.csv:2: field 't_sd_s'"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(lines: list[str], error: type[LoadgenError], message: str) -> None:
    """File, line, field, and what was expected."""
    with pytest.raises(error, match=message):
        parse_csv(lines, "s.csv")


def test_a_list_is_told_from_a_file() -> None:
    """What begins with a number and a colon is a list."""
    assert is_inline(" 1:7ms:9ms")
    assert is_inline("1:7ms")
    assert not is_inline("steps.csv")
    assert not is_inline("runs/1:2.csv")
