"""Debian's real Prometheus over real runs: what it makes of the page is what the records say."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from numpy.typing import NDArray

from dashboards.generator.promql import ARM, RATE, quantile
from loadgen.adapters.store.run_folder import RunFolder
from loadgen.core.metrics.per_request import e2el_s, tpot_s, ttft_s
from loadgen.core.record import RequestRecord
from loadgen.sim.truth import TruthServer, spawn_truth_server
from tests.adapters.prometheus.scraped import (
    OPENMETRICS,
    PROTOBUF,
    Prometheus,
    lint,
    page,
    prometheus,
    simulator,
    watched,
)
from tests.dashboards.written import filled
from tests.needs import program

pytestmark = pytest.mark.slow

REQUESTS = 1000
SHARES = (0.5, 0.9, 0.95, 0.99)
METRICS = ("time_to_first_token", "time_per_output_token", "inter_chunk_latency", "request_duration")
END_S = 90.0


@dataclass(frozen=True)
class Watched:
    """A run that is over: what was scraped of it by kind of histogram, its last page, its records."""

    prometheus: dict[str, Prometheus]
    url: str
    folder: RunFolder

    @property
    def records(self) -> list[RequestRecord]:
        """All of them."""
        return list(self.folder.records())

    def exact(self, metric: str, share: float) -> float:
        """The quantile of the records."""
        return float(np.quantile(values_of(self.records, metric), share))


def values_of(records: list[RequestRecord], metric: str) -> NDArray[np.float64]:
    """What a metric's histogram is of."""
    if metric == "inter_chunk_latency":
        return np.concatenate([np.diff(np.array(record.event_ns)) for record in records]) / 1e9
    of_one = {"time_to_first_token": ttft_s, "time_per_output_token": tpot_s, "request_duration": e2el_s}[metric]
    return np.array([value for record in records if (value := of_one(record)) is not None])


def load_of(server: TruthServer, folder: Path) -> tuple[str, ...]:
    """A load whose latencies are spread over many buckets: each request is answered at a pace drawn for it.

    Of what is drawn, classic buckets tell every quantile that is asked for to 4 %; the rest of what is allowed is for
    the machine.
    """
    draw = np.random.default_rng(7)
    first_ms, gap_ms = draw.lognormal(np.log(120), 0.6, REQUESTS), draw.lognormal(np.log(20), 0.6, REQUESTS)
    rows = (
        {"messages": [{"role": "user", "content": "say"}], "truth": {"ttft_ms": first, "gap_ms": gap, "tokens": 9}}
        for first, gap in zip(first_ms.tolist(), gap_ms.tolist(), strict=True)
    )
    prompts = folder / "bodies.jsonl"
    prompts.write_text("".join(json.dumps({"body": row}) + "\n" for row in rows), encoding="utf-8")
    rate = ("--request-rate", "100", "--num-requests", str(REQUESTS))
    return ("--url", server.url, "--prompts", str(prompts), *rate, "--out", str(folder / "runs"))


def until_judged(url: str) -> str:
    """The page once the run is over and analysed."""
    end_s = time.monotonic() + END_S
    while "loadgen_measurement_valid{" not in (text := page(url)[1].decode()):
        assert time.monotonic() < end_s, "the run did not end"
        time.sleep(0.2)
    return text


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """One run, scraped by two at once, of which one stores native histograms and the other one classic ones."""
    out = tmp_path_factory.mktemp("scraped")
    with (
        spawn_truth_server() as server,
        watched("run", *load_of(server, out), "--prometheus-linger", "600s") as (url, _),
    ):
        target = urlsplit(url).netloc
        with (
            prometheus(out / "native", target=target, histograms="native") as native,
            prometheus(out / "classic", target=target) as classic,
        ):
            until_judged(url)
            (folder,) = (out / "runs").iterdir()
            for each in (native, classic):
                each.wait_for("loadgen_measurement_valid")
            yield Watched({"native": native, "classic": classic}, url, RunFolder.open(folder))


@pytest.mark.parametrize("metric", METRICS)
def test_quantiles_from_native_histograms(run: Watched, metric: str) -> None:
    """They lie within 2 % of those of the run's own records."""
    for share in SHARES:
        found = run.prometheus["native"].value(f"histogram_quantile({share}, loadgen_{metric}_seconds)")
        assert found == pytest.approx(run.exact(metric, share), rel=0.02), (metric, share)


@pytest.mark.parametrize("metric", METRICS)
def test_quantiles_from_classic_histograms(run: Watched, metric: str) -> None:
    """They lie within 10 % of those of the run's own records."""
    for share in SHARES:
        found = run.prometheus["classic"].value(f"histogram_quantile({share}, loadgen_{metric}_seconds_bucket)")
        assert found == pytest.approx(run.exact(metric, share), rel=0.10), (metric, share)


@pytest.mark.parametrize(("kind", "within"), [("native", 0.02), ("classic", 0.10)])
def test_quantiles_as_dashboards_ask_for_them(run: Watched, kind: str, within: float) -> None:
    """One expression finds those of whichever histograms are stored; here over the whole run, not the last minutes."""
    everything = dict.fromkeys(("server", "method", "model", "workload"), ".*")
    for metric in METRICS:
        for share in SHARES:
            of_minutes = quantile(share, f"{metric}_seconds", *ARM)
            of_all = filled(of_minutes.replace("rate(", "(").replace(RATE, ""), everything)
            found = run.prometheus[kind].value(of_all)
            assert found == pytest.approx(run.exact(metric, share), rel=within), (metric, share)


def test_means_and_counts_are_exact(run: Watched) -> None:
    """Of both kinds: a histogram's sum and count are of all values, and counters are those of the records."""
    for metric in METRICS:
        values = values_of(run.records, metric)
        native, classic = run.prometheus["native"], run.prometheus["classic"]
        assert native.value(f"histogram_count(loadgen_{metric}_seconds)") == len(values)
        assert native.value(f"histogram_sum(loadgen_{metric}_seconds)") == pytest.approx(values.sum())
        assert classic.value(f"loadgen_{metric}_seconds_count") == len(values)
        assert classic.value(f"loadgen_{metric}_seconds_sum") == pytest.approx(values.sum())
    for each in run.prometheus.values():
        assert each.value('loadgen_requests_total{outcome="completed"}') == REQUESTS
        assert each.value("loadgen_output_tokens_total") == sum(record.output_tokens or 0 for record in run.records)


def test_level_results_are_those_of_the_summary(run: Watched) -> None:
    """To the last digit: they are gauges, not estimates from buckets."""
    latency = run.folder.load_summary().latency
    selector = 'loadgen_level_latency_seconds{metric="ttft",statistic="p99",level="100"}'
    assert run.prometheus["classic"].value(selector) == latency.ttft_s.p99


def test_an_exemplar_leads_to_a_record(run: Watched) -> None:
    """Its request is one of the run's, with that very value."""
    by_id = {record.request_id: record for record in run.records}
    for each in run.prometheus.values():
        exemplars = each.exemplars("loadgen_time_to_first_token_seconds_bucket") or each.exemplars(
            "loadgen_time_to_first_token_seconds"
        )
        assert exemplars
        for exemplar in exemplars:
            assert float(exemplar["value"]) == ttft_s(by_id[exemplar["labels"]["request_id"]])


def test_the_slowest_request_is_at_hand(run: Watched) -> None:
    """The slowest example is as slow as the slowest request, but for the width of its bucket."""
    slowest = max(values_of(run.records, "time_to_first_token"))
    exemplars = run.prometheus["classic"].exemplars("loadgen_time_to_first_token_seconds_bucket")
    assert max(float(exemplar["value"]) for exemplar in exemplars) > slowest / 1.26


def test_the_page_keeps_to_the_rules(run: Watched) -> None:
    """Of Prometheus' own linter, which says nothing of it; each form is the one that was asked for."""
    content_type, text = page(run.url)
    assert content_type.startswith("text/plain; version=0.0.4")
    assert lint(text) == ""
    assert page(run.url, OPENMETRICS)[0].startswith("application/openmetrics-text; version=1.0.0")
    assert page(run.url, OPENMETRICS)[1].endswith(b"# EOF\n")
    assert page(run.url, PROTOBUF)[0].startswith("application/vnd.google.protobuf")


def test_a_stored_run_goes_into_prometheus_with_its_own_time_stamps(run: Watched, tmp_path: Path) -> None:
    """A store made of an export shows the run when it was, half done when it was half done."""
    exported, data = tmp_path / "run.om", tmp_path / "loaded" / "data"
    line = [sys.executable, "-m", "loadgen", "export", str(run.folder.path), "--format", "openmetrics"]
    subprocess.run([*line, "-o", str(exported)], check=True, timeout=60)
    backfill = ["tsdb", "create-blocks-from", "openmetrics", str(exported), str(data)]
    subprocess.run([program("promtool"), *backfill], check=True, capture_output=True, timeout=60)
    manifest, records = run.folder.load_manifest(), run.records
    last_ns = max(record.closed_ns or 0 for record in records)
    with prometheus(tmp_path / "loaded") as loaded:

        def value(expression: str, at_ns: int) -> float:
            return loaded.value(expression, time=str((manifest.origin_unix_ns + at_ns) / 1e9 + 0.001))

        completed = 'loadgen_requests_total{outcome="completed"}'
        assert value(completed, last_ns) == REQUESTS
        half_ns = int(last_ns / 2e9) * 10**9
        done = sum((record.closed_ns or 0) <= half_ns for record in records)
        assert 0 < done < REQUESTS
        assert value(completed, half_ns) == done
        in_flight = sum((record.sent_ns or 0) <= half_ns < (record.closed_ns or 0) for record in records)
        assert value("loadgen_requests_in_flight", half_ns) == in_flight
        p95 = value("histogram_quantile(0.95, loadgen_time_to_first_token_seconds_bucket)", last_ns)
        assert p95 == pytest.approx(run.exact("time_to_first_token", 0.95), rel=0.10)
        assert value("loadgen_level_measurement_valid", last_ns) in (0, 1)


def test_series_do_not_grow_with_requests(tmp_path: Path) -> None:
    """After 10,000 requests a page has the series that it had after 10, but for the results of the level."""
    load = ("--concurrency", "64", "--input-tokens", "4", "--output-tokens", "2", "--num-requests", "10000")
    with simulator("--speed", "1000") as server:
        arguments = ("--url", server, *load, "--out", str(tmp_path), "--prometheus-linger", "600s")
        with watched("run", *arguments) as (url, _):
            early: set[str] = set()
            while not early:
                text = page(url)[1].decode()
                done = re.search(r'loadgen_requests_total\{.*outcome="completed".*\} (\S+)', text)
                early = series_of(text) if done is not None and float(done[1]) >= 10 else set()
            text = until_judged(url)
    late = series_of(text)
    assert re.search(r'loadgen_requests_total\{.*outcome="completed".*\} 10000', text)
    of_level = {name for name in late if name.startswith(("loadgen_level_", "loadgen_measurement_valid"))}
    gone = {name for name in early - late if name.startswith(("loadgen_target_", "loadgen_level_under_way{"))}
    assert late - of_level == early - gone
    assert len(of_level) < 50


def series_of(text: str) -> set[str]:
    """The series of a page, without their values."""
    return {line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")}


def test_an_experiment_has_its_arms_apart(tmp_path: Path) -> None:
    """Each by its name and its method, under one name of the experiment's folder."""
    file = tmp_path / "experiment.yaml"
    file.write_text(EXPERIMENT, encoding="utf-8")
    with watched("experiment run", str(file), "--out", str(tmp_path / "runs"), "--prometheus-linger", "600s") as (
        url,
        _,
    ):
        end_s = time.monotonic() + END_S
        while page(url)[1].decode().count("loadgen_level_measurement_valid{") < 2:
            assert time.monotonic() < end_s
            time.sleep(0.2)
        text = page(url)[1].decode()
    (folder,) = (tmp_path / "runs").iterdir()
    found = set(re.findall(r'loadgen_level_request_rate_rps\{.*method="(\w+)".*server="([\w-]+)".*\}', text))
    assert found == {("none", "baseline"), ("eagle3", "fast")}
    assert f'loadgen_run_info{{command="experiment",run_id="{folder.name}"' in text
    assert lint(text.encode()) == ""


EXPERIMENT = """
name: two arms
workload: {synthetic: {input_tokens: 16, output_tokens: 8}, ignore_eos: true}
load: {concurrency: [4]}
level: {num_requests: 20}
repeats: 1
noise: none
cooldown: 0s
arms:
  baseline: {sim: {speed: 20}}
  fast: {sim: {speed: 20, method: eagle3, draft-tokens: 3, acceptance-length: 2.5}, method: eagle3, draft_tokens: 3}
"""
