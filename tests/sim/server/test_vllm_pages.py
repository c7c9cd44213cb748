"""The pages of the simulated vLLM against recorded ones, and their figures against an account kept beside them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from loadgen.adapters.servers.vllm_page import vllm_samples
from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.job import Job, Limits
from loadgen.core.simulation.step import Step
from loadgen.core.simulation.step_time import StepTime
from loadgen.sim.server.dialect import Load
from loadgen.sim.server.exchange import Answer, Asked, Output, Part, Route
from loadgen.sim.server.vllm import VllmDialect
from tests.sim.server.exposed import families, unlike, values
from tests.sim.server.recorded import GOLDEN, facts

MODEL = "gemma3-270m"
ARMS = ["baseline", "ngram", "eagle"]
STEP_S, TOKEN_S = 0.008, 0.0001


def recorded_page(arm: str) -> bytes:
    return (GOLDEN / "metrics" / f"vllm_0.32_{arm}.txt").read_bytes()


def recorded_json(name: str) -> dict[str, Any]:
    return json.loads((GOLDEN / "pages" / f"{name}.json").read_text())  # type: ignore[no-any-return]


def page(arm: str, path: str, **given: Any) -> bytes:
    vllm = VllmDialect(facts(arm, **given))
    reply = vllm.page("GET", path, b"", vllm.statistics())
    assert reply is not None
    assert reply.status == 200
    return reply.body


@pytest.mark.parametrize("arm", ARMS)
def test_metrics_are_those_of_the_recorded_page(arm: str) -> None:
    """Every family has the real one's type, sample names, labels and bucket bounds; speculation's only where it is."""
    given = families(page(arm, "/metrics"))
    assert unlike(real=families(recorded_page(arm)), given=given) == {}
    assert any("spec_decode" in name for name in given) == (arm != "baseline")


@pytest.mark.parametrize("arm", ARMS)
def test_the_project_reads_the_same_of_both_pages(arm: str) -> None:
    """The reader of vLLM's page finds a figure on the simulated page exactly where it finds one on the real page."""
    (given,) = vllm_samples(page(arm, "/metrics").decode(), model=MODEL)
    (real,) = vllm_samples(recorded_page(arm).decode(), model=MODEL)
    for part in ("counters", "gauges"):
        ours, theirs = (
            {name: getattr(getattr(sample, part), name) for name in getattr(sample, part).__dataclass_fields__}
            for sample in (given, real)
        )
        assert {name for name, value in ours.items() if value is None} == {
            name for name, value in theirs.items() if value is None
        }
    assert len(given.counters.accepted_by_position or ()) == len(real.counters.accepted_by_position or ())


@pytest.mark.parametrize("arm", ARMS)
def test_the_resolved_configuration_is_of_the_real_ones_shape(arm: str) -> None:
    """Each key of `/server_info` is one of the real page, at the same place and with a value of the same kind."""
    given, real = json.loads(page(arm, "/server_info?config_format=json")), recorded_json(f"server_info_{arm}")
    assert given.keys() == real.keys()

    def check(ours: Any, theirs: Any, where: str) -> None:
        if isinstance(ours, dict) and isinstance(theirs, dict):
            assert ours.keys() <= theirs.keys(), where
            for name in ours:
                check(ours[name], theirs[name], f"{where}.{name}")
        elif ours is not None and theirs is not None:
            assert type(ours) is type(theirs), where

    check(given["vllm_config"], real["vllm_config"], "vllm_config")
    assert given["vllm_config"]["cache_config"].keys() == real["vllm_config"]["cache_config"].keys()
    assert (given["vllm_config"]["speculative_config"] is None) == (arm == "baseline")


def test_the_configuration_is_that_of_the_server() -> None:
    """What the server was started with is found where vLLM tells it; in its own words for speculation."""
    words = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}
    config = json.loads(page("ngram", "/server_info?config_format=json", speculation=words))["vllm_config"]
    assert config["speculative_config"] == words
    assert config["model_config"]["served_model_name"] == MODEL
    assert config["model_config"]["max_model_len"] == 2048
    assert config["cache_config"]["num_gpu_blocks"] == 910
    assert config["cache_config"]["block_size"] == 128
    assert config["scheduler_config"]["max_num_seqs"] == 16
    assert config["scheduler_config"]["max_num_batched_tokens"] == 2048
    assert config["observability_config"]["per_request_spec_decode_metrics"] == "detailed"
    text = json.loads(page("ngram", "/server_info"))["vllm_config"]
    assert "scheduler_config={'runner_type': 'generate', 'max_num_batched_tokens': 2048" in text


def test_small_pages() -> None:
    """`/version` names the real release and says that it is simulated; `/ping` takes both methods; no other page."""
    vllm = VllmDialect(facts("ngram"))
    statistics = vllm.statistics()
    real = recorded_json("version_ngram")["version"]
    assert json.loads(page("ngram", "/version")) == {"version": f"{real}+simulated"}
    pings = [vllm.page(method, "/ping", b"", statistics) for method in ("GET", "POST")]
    assert [(reply.status, reply.body) for reply in pings if reply is not None] == [(200, b"")] * 2
    assert vllm.page("GET", "/nowhere", b"", statistics) is None
    assert vllm.page("POST", "/metrics", b"", statistics) is None


# Figures


@dataclass
class Played:
    """Requests served by the engine in virtual time under the statistics of a server, and all that happened."""

    page: Callable[[], bytes]
    engine: Engine
    answers: list[Answer]
    steps: list[Step] = field(default_factory=list)
    parts: list[tuple[Step, Answer, Part]] = field(default_factory=list)

    @property
    def values(self) -> dict[str, float]:
        return values(self.page())


def answer(key: int, *, prompt: int = 40, output: int = 12, n: int = 1, asked: Asked | None = None) -> Answer:
    asked = asked or Asked(
        route=Route.CHAT, request_id=f"r{key}", model=MODEL, prompt_ids=tuple(range(prompt)), max_tokens=50, n=n
    )
    told = Output(
        ids=(0,) * output,
        texts=(" a",) * output,
        logprobs=(0.0,) * output,
        finish_reason="stop" if key % 2 else "length",
    )
    return Answer(key=key, index=0, asked=asked, output=told, created_s=0, received_ns=1_000_000 * key)


def play(
    arm: str, answers: list[Answer], *, leave: int | None = None, coverage_ratio: float = 1.0, **limits: Any
) -> Played:
    """Serves the requests together. The client of the answer with the key `leave` goes after its third event."""
    given = facts(arm, block_tokens=16)
    if given.speculator is not None:
        given = replace(given, speculator=replace(given.speculator, coverage_ratio=coverage_ratio))
    vllm = VllmDialect(given)
    statistics = vllm.statistics()
    engine = Engine(
        target=StepTime(fixed_s=STEP_S, per_token_s=TOKEN_S, per_context_token_s=0.0, overhead_s=0.0),
        limits=Limits(**{"kv_blocks": 1000, "block_tokens": 16, **limits}),
        rng=np.random.default_rng(5),
        speculator=given.speculator,
    )

    def exposed() -> bytes:
        reply = vllm.page("GET", "/metrics", b"", statistics)
        assert reply is not None
        return reply.body

    played = Played(exposed, engine, answers)
    by_key = {each.key: each for each in answers}
    for each in answers:
        statistics.received(each)
        blocks = tuple(range(len(each.asked.prompt_ids) // 16))
        engine.submit(
            Job(
                key=each.key,
                prompt_tokens=len(each.asked.prompt_ids),
                output_tokens=len(each.output.ids),
                blocks=blocks,
            )
        )
    now = 1_000_000 * max(by_key)
    while (step := engine.step(now)) is not None:
        now = step.end_ns
        for key, cached in step.cached_tokens.items():
            if by_key[key].scheduled_ns is None:
                by_key[key].scheduled_ns, by_key[key].cached_tokens = step.start_ns, cached
        for key in step.preempted:
            by_key[key].preemptions += 1
        parts = [(by_key[each.key], by_key[each.key].take(each, step.end_ns)) for each in step.emissions()]
        load = Load(running=engine.running, waiting=engine.waiting, kv_used_ratio=engine.kv_used_ratio)
        statistics.stepped(step, parts, load)
        played.steps.append(step)
        played.parts += [(step, *each) for each in parts]
        for each, part in parts:
            if part.finished:
                statistics.finished(each, each.output.finish_reason)
            elif each.key == leave and each.decode_steps == 2:
                engine.cancel(each.key)
                statistics.finished(each, "abort")
    return played


def test_speculation_is_counted_as_the_engine_does() -> None:
    """Drafts only of steps that drafted, acceptance untrimmed, by position from 0."""
    played = play("ngram", [answer(key) for key in range(6)], coverage_ratio=0.5)
    counters, given = played.engine.counters, played.values
    assert 0 < given["spec_decode_num_drafts_total"] == counters.drafts < counters.decode_steps
    assert given["spec_decode_num_draft_tokens_total"] == counters.drafted_tokens
    assert given["spec_decode_num_accepted_tokens_total"] == counters.accepted_tokens
    survivors = [sum(counters.histogram[place + 1 :]) for place in range(4)]
    assert [given[f"spec_decode_num_accepted_tokens_per_pos_total/{place}"] for place in range(4)] == survivors
    trimmed = sum(part.stop - part.start - 1 for _, _, part in played.parts if part.start)
    assert trimmed < counters.accepted_tokens


def test_tokens_and_ends_are_counted() -> None:
    """Output, prompts once their first token is there, ends by reason, and a sample of each length a request."""
    played = play("ngram", [answer(key, prompt=40 + key) for key in range(6)])
    given = played.values
    prompts = sum(range(40, 46))
    assert given["generation_tokens_total"] == 6 * 12
    assert given["prompt_tokens_total"] == given["request_prompt_tokens_sum"] == prompts
    assert given["request_success_total/stop"] == given["request_success_total/length"] == 3
    assert given["request_generation_tokens_count"] == given["request_params_n_count"] == 6
    assert given["request_params_max_tokens_sum"] == 6 * 50
    # a step counts when it gave something; prompt tokens count with the first token
    assert given["iteration_tokens_total_count"] == len({id(step) for step, _, _ in played.parts})
    assert given["iteration_tokens_total_sum"] == 6 * 12 + given["prompt_tokens_by_source_total/local_compute"]


def test_latencies_are_those_of_the_answers() -> None:
    """One gap a request and step with tokens, whatever their number; the other intervals once a request."""
    played = play("ngram", [answer(key) for key in range(4)] + [answer(4, output=1)])
    given, ended = played.values, played.answers
    gaps = [step for step, _, part in played.parts if part.start]
    assert given["inter_token_latency_seconds_count"] == len(gaps) < 4 * 11
    decode_s = [(each.last_ns - each.first_ns) / 1e9 for each in ended]
    assert given["inter_token_latency_seconds_sum"] == pytest.approx(sum(decode_s))
    assert given["time_to_first_token_seconds_sum"] == pytest.approx(
        sum((each.first_ns - each.received_ns) / 1e9 for each in ended)
    )
    assert given["request_time_per_output_token_seconds_count"] == 5
    assert given["request_time_per_output_token_seconds_sum"] == pytest.approx(
        sum(decode / 11 for decode in decode_s[:4])
    )
    intervals = ("request_queue_time", "request_prefill_time", "request_decode_time")
    parts = [given[f"{name}_seconds_sum"] for name in intervals]
    assert sum(parts) == pytest.approx(given["e2e_request_latency_seconds_sum"])
    assert sum(parts[1:]) == pytest.approx(given["request_inference_time_seconds_sum"])
    assert parts[0] > 0


def test_the_prefix_cache_is_counted_in_tokens() -> None:
    """Every prompt is looked up once; hits are whole blocks, and not computed again."""
    first = play("baseline", [answer(1, prompt=100)], max_sequences=1)
    assert first.values["prefix_cache_queries_total"] == 100
    assert first.values["prefix_cache_hits_total"] == 0
    both = play("baseline", [answer(1, prompt=100), answer(2, prompt=100)], max_sequences=1)
    given = both.values
    assert given["prefix_cache_queries_total"] == 200
    assert given["prefix_cache_hits_total"] == given["prompt_tokens_cached_total"] == 96
    assert given["prompt_tokens_cached_by_source_total/device"] == 96
    assert given["prompt_tokens_by_source_total/local_cache_hit"] == 96
    assert given["prompt_tokens_by_source_total/local_compute"] == 104
    assert given["request_prefill_kv_computed_tokens_sum"] == 104


def test_preemptions_are_counted_and_looked_up_once() -> None:
    """A request that lost its memory is counted in both places; its second look-up of the cache is not."""
    played = play("baseline", [answer(key, prompt=40, output=60) for key in range(1, 4)], kv_blocks=12)
    lost = sum(len(step.preempted) for step in played.steps)
    given = played.values
    assert given["num_preemptions_total"] == given["request_num_preemptions_sum"] == lost > 0
    assert given["prefix_cache_queries_total"] == 3 * 40
    assert given["time_to_first_token_seconds_count"] == 3
    assert given["inter_token_latency_seconds_count"] == 3 * 59


def test_a_client_that_left_is_in_no_figure_of_finished_requests() -> None:
    """As in vLLM: its tokens count, its end does not; and it is gone from the gauges at once."""
    played = play("baseline", [answer(1)], leave=1)
    given = played.values
    assert given["generation_tokens_total"] == 3
    assert sum(value for name, value in given.items() if name.startswith("request_success_total/")) == 0
    assert given["e2e_request_latency_seconds_count"] == given["request_params_n_count"] == 0
    assert given["num_requests_running"] == given["kv_cache_usage_perc"] == 0


def test_choices_of_one_request() -> None:
    """Each choice ends on its own; the number of choices and the longest of them are samples of the request."""
    one = answer(1, output=5, n=2)
    two = answer(2, output=9, asked=one.asked)
    given = play("baseline", [one, two, answer(3, output=4)]).values
    assert sum(value for name, value in given.items() if name.startswith("request_success_total/")) == 3
    assert (given["request_params_n_count"], given["request_params_n_sum"]) == (2, 3)
    assert given["request_max_num_generation_tokens_sum"] == 9 + 4


def test_gauges_show_the_last_step() -> None:
    """Running, waiting and the cache's use are those after the step before."""
    vllm = VllmDialect(facts("baseline"))
    statistics = vllm.statistics()
    engine = Engine(
        target=StepTime(fixed_s=STEP_S, per_token_s=0.0, per_context_token_s=0.0, overhead_s=0.0),
        limits=Limits(kv_blocks=10),
        rng=np.random.default_rng(1),
    )
    engine.submit(Job(key=1, prompt_tokens=20, output_tokens=3))
    step = engine.step(0)
    assert step is not None
    statistics.stepped(step, [], Load(running=5, waiting=7, kv_used_ratio=0.25))
    given = values(statistics.exposition())
    assert (given["num_requests_running"], given["num_requests_waiting"]) == (5, 7)
    assert given["num_requests_waiting_by_reason/capacity"] == 7
    assert given["kv_cache_usage_perc"] == 0.25


def test_a_restarted_server_shows_that_it_is_another() -> None:
    """New statistics are at zero and have a start of their own, by which a reader tells a restart."""
    vllm = VllmDialect(facts("baseline"))
    pages = [vllm_samples(vllm.statistics().exposition().decode(), model=MODEL) for _ in range(2)]
    starts = [sample.started_unix_s for (sample,) in pages]
    assert starts[0] is not None
    assert starts[1] is not None
    assert starts[0] < starts[1]


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("simulated", [False, True])
def test_both_servers_keep_the_same_accounts(arm: str, *, simulated: bool) -> None:
    """What one figure must be to another holds on the recorded page and on the simulated one."""
    answers = [answer(key, prompt=100 + key) for key in range(6)]
    given = play(arm, answers, leave=2).values if simulated else values(recorded_page(arm))
    ended = sum(value for name, value in given.items() if name.startswith("request_success_total/"))
    computed = given["prompt_tokens_by_source_total/local_compute"]
    cached = given["prompt_tokens_by_source_total/local_cache_hit"]
    steps = given["inter_token_latency_seconds_count"]
    more_than_one = given["generation_tokens_total"] - given["time_to_first_token_seconds_count"] - steps
    # one client left: its first token counts, its end does not
    assert given["time_to_first_token_seconds_count"] == ended + 1
    for name in ("e2e_request_latency", "request_queue_time", "request_decode_time", "request_time_per_output_token"):
        assert given[f"{name}_seconds_count"] == ended, name
    for name in ("request_prompt_tokens", "request_generation_tokens", "request_params_max_tokens"):
        assert given[f"{name}_count"] == ended, name
    assert given["prompt_tokens_total"] == given["prefix_cache_queries_total"] == computed + cached
    assert given["prefix_cache_hits_total"] == given["prompt_tokens_cached_total"] == cached
    assert given["iteration_tokens_total_sum"] == given["generation_tokens_total"] + computed
    # a step with a draft emits what was accepted and one more, less what the end of the answer cuts
    accepted = given.get("spec_decode_num_accepted_tokens_total", 0)
    assert 0 <= more_than_one <= accepted
    assert (more_than_one > 0) == (accepted > 0)
    if arm == "eagle":
        assert given["spec_decode_num_drafts_total"] == steps
        assert given["spec_decode_num_draft_tokens_total"] == 3 * steps
