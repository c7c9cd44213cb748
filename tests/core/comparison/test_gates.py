"""Gates of a comparison: how they are written, and when they fail."""

import pytest

from loadgen.core.comparison.gates import JudgedGate, Limit, judged, parse_gate
from loadgen.core.comparison.metric_pair import MetricPair
from loadgen.core.errors import ConfigError


def pair(baseline: float | None, candidate: float | None, *ratio: float) -> MetricPair:
    """Two values; `ratio` is the ratio, and its interval where there is one."""
    low, high = ratio[1:] or (None, None)
    return MetricPair(baseline=baseline, candidate=candidate, ratio=ratio[0] if ratio else None, low=low, high=high)


def held(text: str, found: MetricPair | None, *, certain: bool = False) -> JudgedGate:
    """The gate judged on that metric."""
    return judged(parse_gate(text, certain=certain), found, candidate="new", at="concurrency 8")


@pytest.mark.parametrize(
    ("text", "metric", "operator", "limit", "kind"),
    [
        ("tpot_s.p99 > 1.05x", "tpot_s.p99", ">", 1.05, Limit.RELATIVE),
        ("tpot_s.p99>1.05x", "tpot_s.p99", ">", 1.05, Limit.RELATIVE),
        ("  e2el_s.mean >=  +5 % ", "e2el_s.mean", ">=", 1.05, Limit.RELATIVE),
        ("requests_per_s < -3%", "requests_per_s", "<", 0.97, Limit.RELATIVE),
        ("ttft_s.p50 > 50ms", "ttft_s.p50", ">", 0.05, Limit.ABSOLUTE),
        ("ttft_s.p50 > 1.5 s", "ttft_s.p50", ">", 1.5, Limit.ABSOLUTE),
        ("ttft_s.p50 > 800us", "ttft_s.p50", ">", 0.0008, Limit.ABSOLUTE),
        ("error_ratio > 0.01", "error_ratio", ">", 0.01, Limit.ABSOLUTE),
        ("error_ratio > 1%", "error_ratio", ">", 0.01, Limit.ABSOLUTE),
        ("attainment_ratio <= .99", "attainment_ratio", "<=", 0.99, Limit.ABSOLUTE),
        ("acceptance_length < 2", "acceptance_length", "<", 2.0, Limit.ABSOLUTE),
        ("output_tokens_per_s < 1e3", "output_tokens_per_s", "<", 1000.0, Limit.ABSOLUTE),
        ("guidellm.inter_token_latency_s.p95 > 2x", "guidellm.inter_token_latency_s.p95", ">", 2.0, Limit.RELATIVE),
    ],
)
def test_a_gate_is_read_as_it_is_meant(text: str, metric: str, operator: str, limit: float, kind: Limit) -> None:
    """A multiple or a signed percentage of the baseline; a time with its unit, a share, a number."""
    gate = parse_gate(text)
    assert (gate.metric, gate.operator, gate.limit, gate.kind) == (metric, operator, pytest.approx(limit), kind)
    assert gate.text == text.strip()


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("", 1, "the name of a metric"),
        ("> 1x", 1, "the name of a metric"),
        ("tpot_s > 1x", 1, "expected a statistic of it: tpot_s with .mean, .p50"),
        ("  tpt_s.p99 > 1x", 3, "did you mean tpot_s.p99, ttft_s.p99, ttfo_s.p99? docs/compare.md lists all that are"),
        ("acceptance > 1x", 1, "did you mean acceptance_ratio, acceptance_length? docs/compare.md"),
        (
            "latency > 1x",
            1,
            "latency is not compared; expected one such as tpot_s.p99 or output_tokens_per_s; docs/compare.md lists",
        ),
        ("tpot_s.p99", 11, "one of > < >= <="),
        ("tpot_s.p99 = 1x", 12, "one of > < >= <="),
        ("tpot_s.p99 >", 13, "expected a number"),
        ("tpot_s.p99 > fast", 14, "expected a number"),
        ("tpot_s.p99 > 50", 16, "is a time: expected its unit"),
        ("tpot_s.p99 > 5%", 15, "is a time: expected its unit"),
        ("tpot_s.p99 > 1.05x more", 18, "is a time: expected its unit"),
        ("requests_per_s < 5%", 19, "expected a sign for a change, such as +5%"),
        ("requests_per_s < 5 rps", 19, "found 'rps'"),
        ("tpot_s.p99 > +50ms", 17, "a sign is for a change in percent"),
        ("tpot_s.p99 > 1e400x", 14, "a number below 1e308"),
        ("tpot_s.p99 > ٣x", 14, "expected a number"),
        ("tpot_s.p99 > -1x", 16, "a factor above 0"),
        ("tpot_s.p99 > 0x", 15, "a factor above 0"),
        ("tpot_s.p99 > -100%", 18, "more than -100%"),
    ],
)
def test_what_is_wrong_with_a_gate_is_pointed_at(text: str, column: int, said: str) -> None:
    """The column where it goes wrong, and what was expected there."""
    with pytest.raises(ConfigError) as raised:
        parse_gate(text)
    assert f", column {column}: " in str(raised.value)
    assert said in str(raised.value)


def test_only_a_ratio_has_an_interval() -> None:
    """A limit of its own cannot be held against the interval of a ratio."""
    with pytest.raises(ConfigError, match="only a ratio has an interval"):
        parse_gate("ttft_s.p50 > 50ms", certain=True)


@pytest.mark.parametrize(
    ("text", "found", "failed"),
    [
        ("tpot_s.p50 > 1.05x", pair(0.02, 0.022, 1.1), True),
        ("tpot_s.p50 > 1.1x", pair(0.02, 0.022, 1.1), False),
        ("tpot_s.p50 >= 1.1x", pair(0.02, 0.022, 1.1), True),
        ("requests_per_s < -5%", pair(10.0, 9.0, 0.9), True),
        ("requests_per_s < -5%", pair(10.0, 9.8, 0.98), False),
        ("requests_per_s <= 0.9x", pair(10.0, 9.0, 0.9), True),
        ("tpot_s.p50 > 21ms", pair(None, 0.022), True),
        ("tpot_s.p50 > 23ms", pair(0.001, 0.022, 22.0), False),
        ("error_ratio > 1%", pair(0.0, 0.02), True),
        ("error_ratio > 1.5x", pair(0.0, 0.0), False),
        ("error_ratio > 1.5x", pair(0.0, 0.001), True),
    ],
)
def test_a_gate_fails_when_its_condition_holds(text: str, found: MetricPair, failed: bool) -> None:
    """On the values as they are. Any multiple of a baseline of 0 is 0."""
    assert held(text, found).failed is failed


@pytest.mark.parametrize(
    ("text", "interval", "failed"),
    [
        ("tpot_s.p50 > 1.05x", (1.06, 1.2), True),
        ("tpot_s.p50 > 1.05x", (1.04, 1.2), False),
        ("tpot_s.p50 < 0.95x", (0.8, 0.94), True),
        ("tpot_s.p50 < 0.95x", (0.8, 0.96), False),
    ],
)
def test_a_certain_gate_wants_the_whole_interval_beyond(text: str, interval: tuple[float, float], failed: bool) -> None:
    """The value alone is beyond in every case."""
    value = 1.1 if ">" in text else 0.9
    assert held(text, pair(1.0, value, value, *interval), certain=True).failed is failed


@pytest.mark.parametrize(
    ("found", "certain", "why"),
    [
        (None, False, "it has no value; p99 takes 100 requests"),
        (pair(0.02, None), False, "it has no value; p99 takes 100 requests"),
        (pair(None, 0.02), False, "the baseline has no value"),
        (pair(0.02, 0.02, 1.0), True, "its ratio has no interval"),
    ],
)
def test_what_cannot_be_judged_fails(found: MetricPair | None, certain: bool, why: str) -> None:
    """A gate never passes for want of a number."""
    gate = held("tpot_s.p99 > 1.05x", found, certain=certain)
    assert gate.failed
    assert gate.evidence.startswith(f"tpot_s.p99 cannot be judged: {why}")


def test_evidence_sets_value_and_limit_apart() -> None:
    """As many digits as it takes, in units for people, with both values beside a ratio."""
    assert held("tpot_s.p99 > 1.05x", pair(0.02, 0.021002, 1.0501)).evidence == (
        "tpot_s.p99 is 1.0501x of the baseline (21 ms against 20 ms): > 1.05x"
    )
    assert held("ttft_s.p50 > 50ms", pair(None, 0.0412)).evidence == "ttft_s.p50 is 41.2 ms: not > 50ms"
    assert held("error_ratio > 1.5x", pair(0.0, 0.02)).evidence == ("error_ratio is 2%, and 0 at the baseline: > 1.5x")
    assert held("e2el_s.p50 > +5%", pair(1.0, 1.2, 1.2, 1.1, 1.3), certain=True).evidence == (
        "e2el_s.p50 is 1.2x [1.1, 1.3] of the baseline (1200 ms against 1000 ms): > +5%"
    )
