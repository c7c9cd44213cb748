"""What is said of a data file."""

import json

import msgspec
import pytest

from loadgen.core.request import Text
from loadgen.core.traces.facts import Lengths, TraceFacts, facts_of
from loadgen.core.traces.row import Row, RowTurn
from loadgen.core.traces.table import TableBuilder
from loadgen.core.units import NS_PER_S


def facts(*rows: Row, format: str = "native", **given: object) -> TraceFacts:  # noqa: A002
    builder = TableBuilder()
    for n, row in enumerate(rows):
        builder.add(row, line=n + 1, position=n, size_bytes=1)
    return facts_of(builder.build(), name="x", format=format, rows=len(rows), dropped={}, **given)  # type: ignore[arg-type]


def row(seconds: float | None = None, tokens: int | None = 10, out: int | None = 5, text: str | None = None) -> Row:
    prompt = None if text is None else Text(text=text)
    return Row(
        turns=(RowTurn(prompt=prompt, input_tokens=tokens, output_tokens=out),),
        time_ns=None if seconds is None else round(seconds * NS_PER_S),
    )


def test_percentiles_are_linear_and_ordered() -> None:
    """p50 of 1..400 is 200.5, p99 396.01."""
    builder = TableBuilder()
    for n in range(400):
        builder.add(row(n, tokens=n + 1), line=n, position=n, size_bytes=1)
    lengths = facts_of(builder.build(), name="x", format="native", rows=400, dropped={}).input_lengths
    assert lengths is not None
    assert (lengths.n, lengths.total, lengths.min, lengths.max, lengths.mean) == (400, 80_200, 1, 400, 200.5)
    assert lengths.p50 == 200.5
    assert lengths.p99 == pytest.approx(396.01)


def test_totals_are_absent_unless_every_row_tells() -> None:
    """A sum over some of the rows is no total; their distribution still says how many it is of."""
    some = facts(row(tokens=3, out=None), row(tokens=None, out=7))
    assert (some.input_tokens, some.output_tokens) == (None, None)
    assert some.input_lengths is not None
    assert (some.input_lengths.n, some.input_lengths.total) == (1, 3)
    none = facts(row(tokens=None, out=None, text="abc"))
    assert (none.input_lengths, none.output_lengths) == (None, None)
    assert none.prompt_characters == Lengths(
        n=1, total=3, mean=3.0, min=3, max=3, p50=3.0, p75=3.0, p90=3.0, p95=3.0, p99=3.0
    )


def test_equal_times_are_counted_and_said_when_they_are_many() -> None:
    """Five rows in one second: four duplicates, a burst of five."""
    burst = facts(*[row(317_402)] * 5, format="burstgpt")
    assert (burst.duplicate_timestamps, burst.largest_burst, burst.resolution_s) == (4, 5, 1.0)
    assert any("sent together unless they are spread" in note for note in burst.notes)
    apart = facts(*(row(n) for n in range(5)))
    assert (apart.duplicate_timestamps, apart.largest_burst, apart.notes) == (0, 1, ())


def test_the_rate_profile_counts_every_row() -> None:
    """Bins of a round length, at most 60, from the first arrival to the last."""
    profile = facts(*(row(n) for n in (0, 0.5, 59, 60, 600, 3_599))).rate_profile
    assert profile is not None
    assert profile.bin_s == 60
    assert (len(profile.requests), sum(profile.requests)) == (60, 6)
    assert (profile.requests[0], profile.requests[1], profile.requests[10], profile.requests[59]) == (3, 1, 1, 1)


@pytest.mark.parametrize("seconds", [(5.0,), (5.0, 5.0), (0.0, 1e-9), (0.0, 0.07), (0.0, 1e7), (0.0, 1e9)])
def test_profiles_of_any_span_are_small_and_complete(seconds: tuple[float, ...]) -> None:
    """One row, one instant, a nanosecond, decades."""
    made = facts(*map(row, seconds))
    assert made.rate_profile is not None
    assert len(made.rate_profile.requests) <= 61
    assert sum(made.rate_profile.requests) == len(seconds)
    assert made.rate_profile.bin_s > 0


def test_the_mean_rate_is_gaps_over_span() -> None:
    """Eleven rows over 10 s are 1 request/s; without a span there is none."""
    assert facts(*(row(n) for n in range(11))).mean_rate_rps == 1.0
    assert facts(row(3), row(3)).mean_rate_rps is None


@pytest.mark.parametrize(("step", "said"), [(1.0, False), (10_000.0, True), (1e-6, True)])
def test_a_rate_that_a_wrong_unit_would_give_is_questioned(step: float, said: bool) -> None:
    """Milliseconds taken as seconds, or the other way, show as an unlikely rate."""
    made = facts(*(row(n * step) for n in range(20)))
    assert any("in the unit that the format says" in note for note in made.notes) == said


@pytest.mark.parametrize(
    ("rows", "borrows", "kind"),
    [
        ([row(text="a")], False, "real"),
        ([row(text="a")], True, "real"),
        ([row()], False, "invented"),
        ([row()], True, "borrowed"),
        ([row(text="a"), row()], False, "invented"),
    ],
)
def test_text_is_real_only_when_every_row_has_it(rows: list[Row], borrows: bool, kind: str) -> None:
    """One invented prompt is enough for the flag that acceptance hangs on."""
    assert facts(*rows, borrows=borrows).text == kind


def test_sessions_are_named_or_have_several_turns() -> None:
    """Turns are requests; the longest is counted in turns."""
    several = Row(turns=(RowTurn(prompt=Text(text="a")), RowTurn(prompt=Text(text="b"))))
    named = Row(turns=(RowTurn(prompt=Text(text="a")),), session="s")
    made = facts(several, named, named, named, row(text="x"))
    assert (made.rows, made.requests, made.conversations, made.sessions, made.longest_session) == (5, 6, 3, 2, 3)


def test_facts_are_strict_json() -> None:
    """No NaN or Infinity, whatever is absent."""
    for made in (facts(row(3)), facts(row(tokens=None, out=None, text=""))):
        text = msgspec.json.encode(made)
        parsed = json.loads(text, parse_constant=lambda name: pytest.fail(name))
        assert parsed["schema"] == "loadgen.trace/1"
        assert {"format", "rows", "used", "dropped", "span_s", "input_tokens", "output_tokens", "sessions"} <= set(
            parsed
        )
