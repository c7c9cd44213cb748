"""Metrics pages of each engine and version, read to the samples that they mean."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from loadgen.adapters.servers.dcgm_page import dcgm_samples
from loadgen.adapters.servers.exposition import read_page
from loadgen.adapters.servers.pages import PAGE_ENGINES, samples
from loadgen.adapters.servers.tensorrt_llm_iterations import IterationTotals
from loadgen.core.server.sample import Counters, Gauges, GpuSample, ServerSample
from loadgen.core.server.window import Reset, difference

GOLDEN = Path(__file__).parents[2] / "golden" / "metrics"


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


def only(engine: str, text: str, model: str = "m") -> ServerSample:
    (sample,) = samples(engine, text, model=model)
    return sample


@pytest.mark.parametrize(
    ("arm", "steps", "iterations", "computed", "hits"),
    [("baseline", 107, 99, 407, 384), ("ngram", 49, 41, 407, 384), ("eagle", 107, 99, 791, 0)],
)
def test_a_recorded_vllm_page(arm: str, steps: int, iterations: int, computed: int, hits: int) -> None:
    """vLLM 0.32 after the same requests: 107 tokens of decode steps on each arm, in fewer steps if drafts are taken."""
    found = only("vllm", golden(f"vllm_0.32_{arm}.txt"), "gemma3-270m")
    counted = found.counters
    assert found.engine == "0"
    assert found.started_unix_s is not None
    assert counted.generation_tokens is not None
    assert counted.first_tokens is not None
    assert counted.generation_tokens - counted.first_tokens == 107
    assert (counted.decode_steps, counted.iterations, counted.iteration_tokens) == (steps, iterations, computed)
    assert (counted.prompt_tokens, counted.prefix_query_tokens, counted.prefix_hit_tokens) == (677, 677, hits)
    assert (counted.finished_requests, counted.timed_requests, counted.preemptions) == (6, 6, 0)
    assert None not in (counted.queue_s, counted.prefill_s, counted.decode_s)
    assert found.gauges == Gauges(running_requests=0, waiting_requests=0, kv_used_ratio=0)


def test_the_recorded_arms_that_speculate_have_counters_of_it() -> None:
    """The baseline has none, which is not the zeros of a drafter that is never right."""
    baseline = only("vllm", golden("vllm_0.32_baseline.txt"), "gemma3-270m").counters
    assert baseline.drafts is baseline.drafted_tokens is baseline.accepted_tokens is None
    assert baseline.accepted_by_position is None
    ngram = only("vllm", golden("vllm_0.32_ngram.txt"), "gemma3-270m").counters
    assert (ngram.drafts, ngram.drafted_tokens, ngram.accepted_tokens) == (20, 80, 60)
    assert ngram.accepted_by_position == (16, 15, 15, 14)
    eagle = only("vllm", golden("vllm_0.32_eagle.txt"), "gemma3-270m").counters
    assert (eagle.drafts, eagle.drafted_tokens, eagle.accepted_tokens) == (107, 321, 0)
    assert eagle.accepted_by_position == (0, 0, 0)


def test_vllm_0_10_under_its_old_names() -> None:
    """`gpu_` cache metrics and time per output token are the figures of the later names."""
    assert only("vllm", golden("made_vllm_0.10.txt"), "meta/llama") == ServerSample(
        engine="0",
        started_unix_s=1.7551e9,
        counters=Counters(
            prompt_tokens=400,
            generation_tokens=210,
            first_tokens=10,
            finished_requests=7,
            drafts=80,
            drafted_tokens=160,
            accepted_tokens=100,
            accepted_by_position=(60, 40),
            decode_steps=100,
            preemptions=2,
            prefix_query_tokens=400,
            prefix_hit_tokens=100,
            timed_requests=7,
            queue_s=0.75,
            prefill_s=1.25,
            decode_s=3,
            iterations=90,
            iteration_tokens=510,
        ),
        gauges=Gauges(running_requests=3, waiting_requests=1, kv_used_ratio=0.25),
    )


def test_engines_of_one_vllm_page_are_apart_and_nothing_counts_twice() -> None:
    """Two engines; a name and its successor, and a series that is there twice, count once; NaN is unknown."""
    first, second = samples("vllm", golden("made_vllm_two_engines.txt"), model="m")
    assert (first.engine, second.engine) == ("0", "1")
    assert first.counters == Counters(prompt_tokens=100, generation_tokens=40, decode_steps=30, prefix_query_tokens=100)
    assert second.counters == Counters(prompt_tokens=50, generation_tokens=20, decode_steps=15, prefix_query_tokens=50)
    assert (first.gauges.kv_used_ratio, second.gauges.kv_used_ratio) == (0.5, None)
    assert first.started_unix_s is None


def test_counters_are_read_without_their_ending_too() -> None:
    """An exporter that leaves `_total` off gives the same sample."""
    text = golden("made_vllm_0.10.txt")
    assert only("vllm", text.replace("_total{", "{"), "meta/llama") == only("vllm", text, "meta/llama")


def test_a_model_is_told_from_others_and_known_by_an_alias() -> None:
    """Of several models the one asked for; a page with one model alone is its, whatever it is called there."""
    page = golden("made_vllm_two_engines.txt")
    assert only("vllm", page, "other").counters == Counters(prompt_tokens=9999)
    with pytest.raises(ValueError, match="no series of model 'third': the page has m, other"):
        samples("vllm", page, model="third")
    recorded = golden("vllm_0.32_baseline.txt")
    assert samples("vllm", recorded, model="adapter") == samples("vllm", recorded, model="gemma3-270m")


def test_a_series_with_two_values_is_a_fault() -> None:
    """Two front ends on one page that contradict each other: neither is believed."""
    page = golden("made_vllm_two_engines.txt").replace(
        '{model_name="m",engine="0"} 40.0', '{model_name="m",engine="0"} 41'
    )
    with pytest.raises(ValueError, match=r"line 8: .* was there before with another value"):
        samples("vllm", page, model="m")


def test_sglang_0_4() -> None:
    """Tokens of the front end, gauges of the scheduler; its rate had the bonus token in it then and is not taken."""
    assert only("sglang", golden("made_sglang_0.4.txt")) == ServerSample(
        engine="0",
        counters=Counters(
            prompt_tokens=800,
            generation_tokens=310,
            first_tokens=10,
            finished_requests=10,
            prefix_query_tokens=800,
            prefix_hit_tokens=200,
        ),
        gauges=Gauges(
            running_requests=4, waiting_requests=1, kv_used_ratio=0.28, prefix_hit_ratio=0.25, acceptance_length=2.4
        ),
    )


def test_sglang_0_5_over_its_ranks() -> None:
    """Tensor-parallel ranks and priorities repeat requests, data-parallel ranks add up; unequal rates are unknown."""
    assert only("sglang", golden("made_sglang_0.5.txt")) == ServerSample(
        engine="0",
        counters=Counters(
            prompt_tokens=800,
            generation_tokens=310,
            first_tokens=10,
            finished_requests=10,
            verify_steps=120,
            preemptions=1,
            prefix_query_tokens=800,
            prefix_hit_tokens=200,
            timed_requests=10,
            queue_s=2.0,
        ),
        gauges=Gauges(
            running_requests=7, waiting_requests=2, kv_used_ratio=0.7, acceptance_length=2.5, acceptance_ratio=0.5
        ),
    )


def test_sglang_without_speculation_shows_a_length_of_zero() -> None:
    """A baseline's zero is no acceptance length."""
    text = golden("made_sglang_0.5.txt").replace("} 2.5\n", "} 0.0\n")
    gauges = only("sglang", text).gauges
    assert (gauges.acceptance_length, gauges.acceptance_ratio) == (None, None)


def test_a_fresh_sglang_has_an_empty_page() -> None:
    """Series come with the first request: until then there is a process that has counted nothing."""
    assert only("sglang", "") == ServerSample(engine="0", counters=Counters(), gauges=Gauges())


def test_llamacpp_before_and_after_it_counted_speculation() -> None:
    """Prompt tokens are those computed; with the cached ones beside them, they are those asked for."""
    times = {"prefill_s": 1.25, "decode_s": 4.5}
    assert only("llamacpp", golden("made_llamacpp_2025.txt")) == ServerSample(
        engine="0",
        counters=Counters(prompt_tokens=320, generation_tokens=96, iterations=70, **times),
        gauges=Gauges(running_requests=2, waiting_requests=1, kv_used_ratio=0.125),
    )
    assert only("llamacpp", golden("made_llamacpp_2026.txt")).counters == Counters(
        prompt_tokens=400,
        generation_tokens=96,
        drafts=30,
        drafted_tokens=90,
        accepted_tokens=45,
        accepted_by_position=(25, 15, 5),
        prefix_query_tokens=400,
        prefix_hit_tokens=80,
        iterations=40,
        **times,
    )


def test_tensorrt_llm_with_bare_names_and_with_a_prefix() -> None:
    """The few metrics of 1.1, as they were and as a front end renames them."""
    bare = only("tensorrt-llm", golden("made_tensorrt_llm_1.1.txt"))
    assert bare.counters == Counters(first_tokens=5, finished_requests=5, timed_requests=5, queue_s=0.25)
    assert bare.started_unix_s == 1.7601e9
    lines = (
        golden("made_tensorrt_llm_1.1.txt")
        .replace("\nrequest_", "\ntrtllm:request_")
        .replace("\ntime_", "\ntrtllm:time_")
    )
    assert only("tensorrt-llm", lines) == bare


def test_tensorrt_llm_with_counts_by_position() -> None:
    """All of speculation is taken from the counts by position: 60 steps, not the 210 tokens that iterations count."""
    assert only("tensorrt-llm", golden("made_tensorrt_llm_1.3.txt")) == ServerSample(
        engine="0",
        started_unix_s=1.7901e9,
        counters=Counters(
            prompt_tokens=500,
            generation_tokens=160,
            first_tokens=5,
            finished_requests=5,
            drafts=60,
            drafted_tokens=180,
            accepted_tokens=90,
            accepted_by_position=(50, 40, 0),
            prefix_query_tokens=500,
            prefix_hit_tokens=128,
            timed_requests=5,
            queue_s=0.25,
            prefill_s=0.5,
            decode_s=2.5,
        ),
        gauges=Gauges(
            running_requests=2,
            waiting_requests=1,
            kv_used_ratio=0.375,
            prefix_hit_ratio=0.25,
            acceptance_length=2.5,
        ),
    )


def test_tensorrt_llm_without_counts_by_position() -> None:
    """The totals over iterations are there, and how many steps drafted is not known."""
    text = "".join(
        line for line in golden("made_tensorrt_llm_1.3.txt").splitlines(keepends=True) if "position" not in line
    )
    counted = only("tensorrt-llm", text).counters
    assert (counted.drafts, counted.drafted_tokens, counted.accepted_tokens) == (None, 210, 120)
    assert counted.accepted_by_position is None


def test_tensorrt_llm_whose_first_requests_are_still_running() -> None:
    """What iterations drafted for them is not what counts by position will say: neither is told yet."""
    lines = golden("made_tensorrt_llm_1.3.txt").splitlines(keepends=True)
    text = "".join(line for line in lines if "position" not in line and "success" not in line)
    counted = only("tensorrt-llm", text).counters
    assert counted.drafted_tokens is counted.accepted_tokens is None


def test_iterations_add_up_over_readings() -> None:
    """The queue is emptied by each reading: the second holds what came since, and only the first rank's rows count."""
    totals = IterationTotals()
    body = (GOLDEN / "made_tensorrt_llm_iterations.json").read_bytes()
    expected = Counters(
        finished_requests=1,
        drafts=2,
        drafted_tokens=6,
        accepted_tokens=4,
        decode_steps=2,
        timed_requests=2,
        queue_s=0.03,
        iterations=2,
    )
    first = totals.add(body)
    assert first.counters == expected
    assert first.gauges == Gauges(
        running_requests=2, waiting_requests=0, kv_used_ratio=0.25, prefix_hit_ratio=0.25, acceptance_length=3.0
    )
    assert totals.add(b"[]").counters == expected
    assert totals.add(b'[{"iter": 42, "numCompletedRequests": 1%s}]' % (b"0" * 400)).counters.finished_requests == 1
    later = totals.add(
        b'[{"iter": 43, "numCompletedRequests": 1, "specDecodingStats": {"numAcceptedTokens": 1}}]'
    ).counters
    assert (later.iterations, later.finished_requests, later.accepted_tokens, later.drafts) == (4, 2, 5, 2)


def test_iterations_of_a_server_started_anew_begin_anew() -> None:
    """Numbers that fall: that reading has no counters, and the next counts from zero."""
    totals = IterationTotals()
    totals.add(b'[{"iter": 7}, {"iter": 8}]')
    assert totals.add(b'[{"iter": 1}, {"iter": 2}]').counters == Counters()
    assert totals.add(b'[{"iter": 3}]').counters == Counters(iterations=1)


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[1]", b"<html>", b'[{"numActiveRequests": 1}]', b'[{"iter": 1}', b"\xff", b'[{"a":' + b"[" * 10**5],
)
def test_what_is_no_list_of_iterations_is_a_value_error(body: bytes) -> None:
    """A page of another kind leaves the totals alone."""
    totals = IterationTotals()
    totals.add(b'[{"iter": 1}]')
    with pytest.raises(ValueError, match="iteration"):
        totals.add(body)
    assert totals.add(b"[]").counters == Counters(iterations=1)


def test_a_dcgm_page() -> None:
    """Watts, joules of mJ, bytes of MiB; the active share before the percent; parts of a GPU that differ: None."""
    assert dcgm_samples(golden("made_dcgm.txt")) == (
        GpuSample(gpu="0", power_w=412.5, utilisation_ratio=0.875, memory_used_bytes=2.0**30, energy_j=2.5e6),
        GpuSample(gpu="2", power_w=90.0),
        GpuSample(gpu="10", power_w=98.0, utilisation_ratio=0.07, energy_j=1e6),
    )


def test_gpus_of_several_hosts_have_the_host_in_their_name() -> None:
    """Index 0 of one host is not index 0 of another."""
    text = golden("made_dcgm.txt")
    both = text + text.replace("node1", "node2")
    assert [gpu.gpu for gpu in dcgm_samples(both)] == [
        "node1/0",
        "node1/2",
        "node1/10",
        "node2/0",
        "node2/2",
        "node2/10",
    ]
    with pytest.raises(ValueError, match="DCGM"):
        dcgm_samples("up 1\n")


@pytest.mark.parametrize("engine", sorted(PAGE_ENGINES))
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<!doctype html><p>Not found</p>\n", "not a metrics page in text form: it begins with '<!doctype html>"),
        ('[{"iter": 1}]', "not a metrics page in text form"),
        ('{"detail": "Not Found"}', "not a metrics page in text form"),
        ("# TYPE up gauge\nup 1\n", "nothing on the page is a metric of"),
    ],
)
def test_what_is_no_page_of_the_engine_is_a_value_error(engine: str, text: str, reason: str) -> None:
    """With a reason for people, for every engine."""
    with pytest.raises(ValueError, match=reason):
        samples(engine, text, model="m")


def test_a_page_that_is_cut_off_is_not_believed() -> None:
    """Half a number would pass for a smaller one, and a counter that fell for a restart."""
    text = golden("made_vllm_0.10.txt")
    with pytest.raises(ValueError, match="cut off"):
        samples("vllm", text[:-3], model="meta/llama")


@pytest.mark.parametrize(
    "line", ['vllm:prompt_tokens_total{engine="0', "vllm:prompt_tokens_total", "vllm:prompt_tokens_total x"]
)
def test_a_line_that_cannot_be_read_is_named(line: str) -> None:
    """The line's number and text."""
    with pytest.raises(ValueError, match=r"line 2: 'vllm:prompt_tokens_total.*' cannot be read"):
        samples("vllm", f"# TYPE vllm:prompt_tokens_total counter\n{line}\n", model="m")


PAGES = pytest.mark.parametrize(
    ("engine", "name", "model"),
    [
        ("vllm", "vllm_0.32_ngram", "gemma3-270m"),
        ("vllm", "made_vllm_0.10", "meta/llama"),
        ("sglang", "made_sglang_0.5", "m"),
        ("llamacpp", "made_llamacpp_2026", "m"),
        ("tensorrt-llm", "made_tensorrt_llm_1.3", "m"),
    ],
)

ELSEWHERE = (
    "llamacpp:prompt_tokens_cached_total",
    "trtllm_spec_decode_drafted_tokens_total",
    "trtllm_spec_decode_accepted_tokens_total",
)
"""Series without which a figure is taken from another place, as of older servers."""


@PAGES
def test_a_page_of_a_process_started_anew(engine: str, name: str, model: str) -> None:
    """With smaller numbers it is a reset by its counters, and with a later start by that alone."""
    page = golden(f"{name}.txt")
    lines = []
    for line in page.splitlines():
        head = line.rpartition(" ")[0]
        kept = line.startswith("#") or head == "process_start_time_seconds"
        lines.append(line if kept else f"{head} 0.0")
    smaller = "\n".join([*lines, ""])
    before, after = only(engine, page, model), only(engine, smaller, model)
    counted = {field for field, value in asdict(before.counters).items() if value}
    found = difference(before, after)
    assert isinstance(found, Reset)
    assert counted >= set(found.names) >= {"generation_tokens", "prompt_tokens"}
    earlier, later = (replace(before, started_unix_s=start) for start in (1.0, 61.0))
    assert difference(earlier, later) == Reset(names=("started",))


@PAGES
def test_a_series_that_is_missing_is_unknown_and_nothing_else_is(engine: str, name: str, model: str) -> None:
    """Of a server that does not have it, or not yet: never zero, and no other figure suffers."""
    page = golden(f"{name}.txt")
    whole = asdict(only(engine, page, model).counters)
    heads = {line.partition("{")[0].partition(" ")[0] for line in page.splitlines() if not line.startswith("#")}
    unknown: set[str] = set()
    for metric in sorted(heads - {"process_start_time_seconds"}):
        kept = [line for line in page.splitlines() if not line.startswith((f"{metric}{{", f"{metric} "))]
        counters = asdict(only(engine, "\n".join([*kept, ""]), model).counters)
        changed = {field for field in whole if counters[field] != whole[field]}
        assert metric in ELSEWHERE or all(counters[field] is None for field in changed), metric
        unknown |= changed
    assert unknown == {field for field, value in whole.items() if value is not None}


@PAGES
def test_a_counter_that_is_no_number_is_a_gap(engine: str, name: str, model: str) -> None:
    """Whichever line of a page says NaN: what it bears on is unknown and named, all else is as it was."""
    page = golden(f"{name}.txt")
    whole = asdict(only(engine, page, model).counters)
    named = set()
    for line in page.splitlines():
        head = line.rpartition(" ")[0]
        if line.startswith("#") or head == "process_start_time_seconds" or not head:
            continue
        found = only(engine, page.replace(f"{line}\n", f"{head} NaN\n"), model)
        counters, gauges = asdict(found.counters), asdict(found.gauges)
        assert {field for field in whole if counters[field] != whole[field]} == set(found.gaps) - gauges.keys(), line
        assert all((counters | gauges)[field] is None for field in found.gaps)
        named |= set(found.gaps) & counters.keys()
    assert named == {field for field, counted in whole.items() if counted is not None}


def test_a_page_that_asks_too_much_is_refused() -> None:
    """An endless line, and more series than any engine has: said at once, instead of read for minutes."""
    endless = "m{" + ",".join(f'l{number}="x"' for number in range(300_000)) + "} 1\n"
    with pytest.raises(ValueError, match=r"line 1: .* is longer than 8192 characters"):
        read_page(endless, {"m"})
    many = "".join(f'm{{i="{number}"}} 1\n' for number in range(10_001))
    with pytest.raises(ValueError, match=r"line 10001: more than 10000 series"):
        read_page(many, {"m"})
    assert read_page(many, {"n"}).series == (), "of what nobody asked for there may be any number"


def test_a_draft_position_beyond_any_draft_is_refused() -> None:
    """An array that long would be made of it."""
    text = golden("made_vllm_0.10.txt").replace('position="1"', 'position="4000000000"')
    with pytest.raises(ValueError, match="a position of 4000000000, which no draft reaches"):
        samples("vllm", text, model="meta/llama")


def test_hundreds_of_engines_on_one_page_are_told_apart() -> None:
    """Each with its own counters, in the order of their names."""
    text = "".join(f'vllm:prompt_tokens_total{{engine="{number:03}"}} {number}\n' for number in range(600))
    found = samples("vllm", text, model="m")
    assert [(each.engine, each.counters.prompt_tokens) for each in found] == [
        (f"{number:03}", number) for number in range(600)
    ]


def test_lines_that_nobody_asked_for_do_no_harm() -> None:
    """Another exporter's oddity beside the engine's metrics is not looked at."""
    text = 'alien{=} what\nvllm:prompt_tokens_total{model_name="m"} 5\r\n'
    assert only("vllm", text).counters == Counters(prompt_tokens=5)


@pytest.mark.parametrize(
    ("head", "labels"),
    [
        ("m", {}),
        ("m ", {}),
        ("m{}", {}),
        ('m{a="x"}', {"a": "x"}),
        ('m{a="x",}', {"a": "x"}),
        ('m{a="b} 7",c="d e"}', {"a": "b} 7", "c": "d e"}),
        ('m{a="#1"}', {"a": "#1"}),
        (r'm{a="q\"\\\n"}', {"a": 'q"\\\n'}),
    ],
)
def test_a_line_says_the_same_however_it_is_written(head: str, labels: dict[str, str]) -> None:
    """With a time stamp or without; at the first reading and at later ones, which know its labels already."""
    values = {"5": 5.0, "6e2": 600.0, "7 1700000000000": 7.0, "+Inf": None, "NaN": None, "8": 8.0}
    for written, value in values.items():
        (series,) = read_page(f"{head} {written}\n", {"m"}).series
        assert (series.name, dict(series.labels), series.value) == ("m", labels, value)
