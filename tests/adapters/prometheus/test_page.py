"""The page in its three forms, without a Prometheus."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from loadgen.adapters.prometheus.families import SPECS, Labels
from loadgen.adapters.prometheus.monitor import Monitor
from loadgen.adapters.prometheus.page import chosen
from loadgen.adapters.prometheus.protobuf import protobuf
from loadgen.adapters.prometheus.text import openmetrics, text
from loadgen.core.metrics.summary import Speculation
from loadgen.core.run import Load, LoadMode
from loadgen.core.stats.histogram import NATIVE_SCHEMA
from loadgen.engine.live import LiveCounts
from tests.adapters.prometheus.pages import LABELS, LOAD, Forgetful, fields, messages, monitor_of, signed
from tests.core.analysis.factory import analysed, answered, failed

TTFT = "loadgen_time_to_first_token_seconds"
OF_PROMETHEUS_2 = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,"
    "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
OF_PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.3,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "text/plain"),
        ("*/*", "text/plain"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/plain"),
        ("application/json", "text/plain"),
        ("application/openmetrics-text", "application/openmetrics-text"),
        ("application/openmetrics-text; version=2.0.0", "text/plain"),
        ("text/plain;q=0.5, application/openmetrics-text;q=0.9", "application/openmetrics-text"),
        ("application/openmetrics-text, text/plain", "application/openmetrics-text"),
        ("text/plain, application/openmetrics-text", "text/plain"),
        ("application/vnd.google.protobuf", "text/plain"),
        ("text/plain;q=nonsense", "text/plain"),
        (OF_PROMETHEUS_2, "application/vnd.google.protobuf"),
        (OF_PROMETHEUS_3, "application/openmetrics-text"),
    ],
)
def test_the_form_is_the_one_that_is_liked_best(accept: str, form: str) -> None:
    """By weight, then by order; text for whoever cannot say."""
    assert chosen(accept)[0].split(";")[0] == form


def test_text_and_openmetrics_can_be_read_and_agree() -> None:
    """By the parsers of Prometheus' own library; every series has the same value in both."""
    families = monitor_of([answered(0), failed(1)]).families()
    plain = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text(families).decode())
        for sample in family.samples
    }
    other = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse_openmetrics(openmetrics(families).decode())
        for sample in family.samples
    }
    assert plain == other
    assert len(plain) > 300


def test_a_native_histogram_holds_what_the_classic_one_holds() -> None:
    """The message, decoded by the rules of its wire format: spans and deltas come to the buckets of the values."""
    monitor = monitor_of([answered(number, ttft_ms=1 + number**2) for number in range(40)])
    (family,) = (family for family in monitor.families() if family.name == TTFT)
    (message,) = messages(protobuf([family]))
    told = dict(fields(message))
    assert (told[1].decode(), told[2].decode(), told[3], told[5]) == (TTFT, family.help, 4, b"seconds")
    (metric,) = (value for number, value in fields(message) if number == 4)
    labels = [dict(fields(value)) for number, value in fields(metric) if number == 1]
    assert {pair[1].decode(): pair[2].decode() for pair in labels} == LABELS.as_dict()
    histogram = dict(fields(metric))[7]
    parts = dict(fields(histogram))
    value = family.series[0].value
    assert not isinstance(value, float)
    assert (parts[1], parts[2], signed(parts[5]), parts[7]) == (40, value.sum, NATIVE_SCHEMA, 0)
    buckets = [dict(fields(part)) for number, part in fields(histogram) if number == 3]
    assert [bucket[2] for bucket in buckets] == list(value.bounds)
    assert buckets[-1][1] == 40
    native, index, count = {}, 0, 0
    deltas = iter([signed(delta) for delta in _packed(parts[13])])
    for span in (dict(fields(part)) for number, part in fields(histogram) if number == 12):
        index += signed(span[1])
        for _ in range(span[2]):
            count += next(deltas)
            native[index] = count
            index += 1
    assert native == value.native


def _packed(body: bytes) -> list[int]:
    return [
        value for _, value in fields(b"".join(b"\x08" + part for part in re.findall(rb"[\x80-\xff]*[\x00-\x7f]", body)))
    ]


def test_ten_thousand_requests_have_the_series_of_ten() -> None:
    """The page has the same lines but for their values."""

    def lines(requests: int) -> set[str]:
        page = text(monitor_of(answered(number, ttft_ms=1 + number % 977) for number in range(requests)).families())
        return {line.rpartition(" ")[0] for line in page.decode().splitlines()}

    assert lines(10_000) == lines(10)


def test_all_that_can_be_counted_is_there_from_the_beginning() -> None:
    """At 0: no series of errors is then no errors, and a rate sees the first one."""
    page = text(monitor_of([]).families()).decode()
    assert len(re.findall(r"^loadgen_requests_total\{.*\} 0.0$", page, re.MULTILINE)) == 4
    assert len(re.findall(r"^loadgen_request_failures_total\{.*\} 0.0$", page, re.MULTILINE)) == 17
    assert re.search(rf"^{TTFT}_count{{.*}} 0.0$", page, re.MULTILINE)


def test_nothing_falls_from_run_to_run() -> None:
    """Totals are of the whole command: the runs of one arm add up."""
    monitor = monitor_of([answered(0)])
    monitor.begin(LABELS, LOAD, origin_unix_ns=0).beside(Forgetful()).put(answered(1))
    page = text(monitor.families()).decode()
    assert re.search(r'^loadgen_requests_total\{.*outcome="completed".*\} 2.0$', page, re.MULTILINE)


def test_labels_are_escaped() -> None:
    """A model may be called anything."""
    hostile = Labels(server="vllm", method="none", model='a"b\\c\n} 1', workload="w")
    families = monitor_of([answered(0)], hostile).families()
    for parse, render in ((text_string_to_metric_families, text), (parse_openmetrics, openmetrics)):
        models = {sample.labels["model"] for family in parse(render(families).decode()) for sample in family.samples}
        assert models == {hostile.model}


@pytest.mark.parametrize(
    ("load", "line", "level"),
    [
        (LOAD, "loadgen_target_concurrency", "4"),
        (Load(mode=LoadMode.RATE, request_rate_rps=2.5), "loadgen_target_rate_rps", "2.5"),
    ],
)
def test_a_target_is_there_while_it_is_aimed_at(load: Load, line: str, level: str) -> None:
    """And afterwards there is none, which is not a target of 0."""
    monitor = Monitor()
    run = monitor.begin(LABELS, load, origin_unix_ns=0)
    run.live = LiveCounts()
    run.live.in_flight = 3
    page = text(monitor.families()).decode()
    assert re.search(rf"^{line}{{.*}} ", page, re.MULTILINE)
    assert re.search(rf'^loadgen_level_under_way\{{level="{level}",.*}} 1.0$', page, re.MULTILINE)
    assert re.search(r"^loadgen_requests_in_flight\{.*\} 3.0$", page, re.MULTILINE)
    run.live = None
    page = text(monitor.families()).decode()
    assert "loadgen_target_" not in page
    assert "loadgen_level_under_way" not in page
    assert re.search(r"^loadgen_requests_in_flight\{.*\} 0.0$", page, re.MULTILINE)


def test_acceptance_of_a_finished_level_by_position() -> None:
    """Beside the mean length: a series a position, the first of them 0."""
    speculation = Speculation(origin="counters", acceptance_length=2.5, acceptance_by_position=(0.9, 0.6))
    monitor = Monitor()
    run = monitor.begin(LABELS, LOAD, origin_unix_ns=0)
    run.finished(replace(analysed([answered(0)]).summary, speculation=speculation))
    page = text(monitor.families()).decode()
    found = re.findall(r'^loadgen_level_acceptance_by_position_ratio\{.*position="(\d)".*\} (\S+)$', page, re.MULTILINE)
    assert found == [("0", "0.9"), ("1", "0.6")]
    assert re.search(r"^loadgen_level_acceptance_length_tokens\{.*\} 2.5$", page, re.MULTILINE)


def test_the_document_has_every_metric() -> None:
    """With its type, and no metric that is not there."""
    document = (Path(__file__).parents[3] / "docs" / "prometheus.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(loadgen_\w+)` \| (\w+) \|", document, re.MULTILINE))
    assert told == {spec.name: spec.kind for spec in SPECS}
