"""From the file of an experiment to its plan: what is sent, what it takes and what people should know first."""

import time
from pathlib import Path

import pytest

from loadgen.core.errors import ConfigError, DataError
from loadgen.options.experiment import load_experiment
from loadgen.options.predict import PredictOptions
from loadgen.wiring.experiment_plan import PlannedExperiment, planned
from loadgen.wiring.predict import predicted

PROMPTS = '{"prompt": "one", "max_tokens": 10}\n{"prompt": "two", "max_tokens": 30}\n'
SIM = "sim: {gpu: h100, target: llama-3.1-8b, workload: chat}"
WHOLE = f"""\
name: mine
workload:
  synthetic: {{input_tokens: 200, output_tokens: 100}}
load:
  concurrency: [16, 1]
level: {{num_requests: 600}}
arms:
  baseline: {{{SIM}}}
  eagle3: {{{SIM}, method: eagle3, draft_tokens: 3}}
"""
FILE = WHOLE.replace("synthetic: {input_tokens: 200, output_tokens: 100}", "prompts: p.jsonl")


def plan_of(text: str, folder: Path) -> PlannedExperiment:
    (folder / "mine.yaml").write_text(text)
    return planned(load_experiment(folder / "mine.yaml"))


def test_levels_have_what_they_need(tmp_path: Path) -> None:
    """Requests as asked, warm-up for every slot, a seed of their own that all arms share."""
    levels = plan_of(WHOLE, tmp_path).plan.levels
    assert [(each.name, each.load.num_requests, each.warmup_requests) for each in levels] == [
        ("c1", 600, 4),
        ("c16", 600, 16),
    ]
    assert len({each.load.seed for each in levels}) == 2
    assert plan_of(WHOLE.replace("600", "600, warmup_requests: 0"), tmp_path).plan.levels[1].warmup_requests == 0


def test_without_a_number_of_requests_a_level_has_enough(tmp_path: Path) -> None:
    """Made-up prompts: ten for each slot, a hundred at least; a file: all of it, once."""
    levels = plan_of(WHOLE.replace("level: {num_requests: 600}\n", ""), tmp_path).plan.levels
    assert [each.load.num_requests for each in levels] == [100, 160]
    (tmp_path / "p.jsonl").write_text(PROMPTS)
    levels = plan_of(FILE.replace("level: {num_requests: 600}\n", ""), tmp_path).plan.levels
    assert [each.load.num_requests for each in levels] == [2, 2]


def test_a_duration_at_a_rate_is_a_number_of_requests(tmp_path: Path) -> None:
    """So that every arm is sent the same ones; shape and cap go with the load."""
    text = WHOLE.replace("concurrency: [16, 1]", "request_rate: [0.5, 4]\n  burstiness: .inf\n  max_concurrency: 9")
    levels = plan_of(text.replace("num_requests: 600", "duration: 1m"), tmp_path).plan.levels
    assert [(each.name, each.load.num_requests) for each in levels] == [("rps0.5", 30), ("rps4", 240)]
    assert (levels[0].load.burstiness, levels[0].load.max_concurrency, levels[0].load.duration_s) == (None, 9, None)


def test_the_digest_of_what_is_sent_follows_the_data_not_its_place(tmp_path: Path) -> None:
    """A file moved is the same workload, a file changed another; so are other lengths lent by a trace."""
    digests = []
    for name, prompts in (("a", PROMPTS), ("b", PROMPTS), ("c", PROMPTS + PROMPTS)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p.jsonl").write_text(prompts)
        digests.append(plan_of(FILE, tmp_path / name).plan.workload_digest)
    assert digests[0] == digests[1] != digests[2]
    trace = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.1,50,10\n2023-11-16 18:17:04.2,60,20\n"
    borrowed = []
    for name in "abc":
        (tmp_path / name / "t.csv").write_text(trace)
        text = FILE.replace("prompts: p.jsonl", "prompts: p.jsonl\n  trace: t.csv")
        borrowed.append(plan_of(text, tmp_path / name).plan.workload_digest)
    assert borrowed[0] == borrowed[1] != borrowed[2]


def test_data_that_is_not_there_is_said(tmp_path: Path) -> None:
    """Before anything is started."""
    with pytest.raises(DataError, match=r"p\.jsonl"):
        plan_of(FILE, tmp_path)


def test_simulated_servers_take_what_is_predicted_of_them(tmp_path: Path) -> None:
    """The time of a level is that of the prediction's throughput; a faster simulator takes less."""
    found = plan_of(WHOLE + "noise: none\nrepeats: 1\ncooldown: 0s\nstart_time: 0s\n", tmp_path)
    prediction = predicted(
        PredictOptions(
            method="eagle3", draft_tokens=3, input_tokens=200, output_tokens=100, concurrency=[1, 16], workload="chat"
        )
    )
    tokens = [100 * (600 + 4), 100 * (600 + 16)]
    for name, speeds in (
        ("r1-baseline", [point.output_tokens_per_s_ar for point in prediction.points]),
        ("r1-eagle3", [point.output_tokens_per_s_sd for point in prediction.points]),
    ):
        expected_s = sum(count / speed for count, speed in zip(tokens, speeds, strict=True))
        assert found.estimate.sittings_s[name] == pytest.approx(expected_s, rel=1e-9)
    fast = plan_of(WHOLE.replace("workload: chat}", "workload: chat, speed: 10}"), tmp_path)
    slow = plan_of(WHOLE, tmp_path)
    assert fast.estimate.duration_s is not None
    assert slow.estimate.duration_s is not None
    starts_s = 3 * 3 * (3.0 + 2 * 1.0)
    assert fast.estimate.duration_s - starts_s == pytest.approx((slow.estimate.duration_s - starts_s) / 10)


def test_steps_of_a_given_time_take_that_time(tmp_path: Path) -> None:
    """8 ms a token for the baseline; a fourth of the steps after the first when every one emits four tokens."""
    text = WHOLE.replace("gpu: h100", "step_time: 8ms")
    text = text.replace("[16, 1]", "[1]").replace("workload: chat}, method", "acceptance_length: 4}, method")
    found = plan_of(text + "repeats: 1\ncooldown: 0s\nstart_time: 0s\n", tmp_path).estimate.sittings_s
    assert found["r1-baseline"] == pytest.approx(604 * 100 * 0.008)
    assert found["r1-eagle3"] == pytest.approx(604 * (1 + 99 / 4) * 0.008)


def test_a_full_server_and_fewer_drafts_under_load_are_taken_in(tmp_path: Path) -> None:
    """Beyond the most at once answers wait for one another; without a draft a step emits one token."""
    text = WHOLE.replace("gpu: h100", "step_time: 8ms, max_num_seqs: 4").replace("[16, 1]", "[16]")
    text = text.replace(
        "chat}, method: eagle3", "chat, draft_tokens_by_batch: 1-3:3, acceptance_length: 4}, method: mtp"
    )
    text = text.replace("1-3:3", "'1-3:3,4-512:0'") + "repeats: 1\ncooldown: 0s\nstart_time: 0s\n"
    found = plan_of(text, tmp_path).estimate.sittings_s
    assert found["r1-baseline"] == found["r1-eagle3"] == pytest.approx(616 / 4 * 100 * 0.008)


def test_at_a_rate_the_last_answer_is_as_slow_as_the_load_makes_it(tmp_path: Path) -> None:
    """Arrivals and one answer; busier servers answer slower."""
    text = WHOLE.replace("concurrency: [16, 1]", "request_rate: [10]") + "repeats: 1\ncooldown: 0s\nstart_time: 0s\n"
    took_s = plan_of(text, tmp_path).estimate.sittings_s["r1-baseline"]
    alone_s = 100 * predicted(PredictOptions(input_tokens=200, output_tokens=100)).points[0].tpot_ar_s
    assert 60.4 + alone_s < took_s < 60.4 + 3 * alone_s


def test_a_plan_of_a_thousand_levels_takes_seconds(tmp_path: Path) -> None:
    """A profile is read, and its server modelled, once an arm, not once a level."""
    arms = "baseline: {profile: llama-3.1-8b-baseline}\n  eagle3: {profile: llama-3.1-8b-eagle3}\nlaunch: compose\n"
    text = f"{WHOLE.partition('arms:')[0]}arms:\n  {arms}".replace("[16, 1]", str(list(range(1, 1001))))
    began_s = time.process_time()
    found = plan_of(text, tmp_path)
    assert time.process_time() - began_s < 10
    assert len(found.estimate.cells_s) == 1000 * 3 * 3


def test_unknown_servers_and_answers(tmp_path: Path) -> None:
    """A rough guess is called one; where answers have no length there is no time."""
    (tmp_path / "p.jsonl").write_text('{"prompt": "one"}\n')
    text = FILE.replace(SIM, 'command: "serve --port {port}"')
    guessed = plan_of(text.replace("p.jsonl", "p.jsonl\n  max_tokens: 50"), tmp_path).estimate
    assert guessed.duration_s is not None
    assert "20 ms for each token of an answer of the other servers, a rough guess" in guessed.basis
    unknown = plan_of(text, tmp_path).estimate
    assert (unknown.duration_s, unknown.output_tokens) == (None, None)


def test_arms_say_how_their_servers_come_to_run(tmp_path: Path) -> None:
    """By arm of the file."""
    text = WHOLE.replace(f"baseline: {{{SIM}}}", "baseline: {url: 'http://127.0.0.1:8000'}")
    assert plan_of(text, tmp_path).servers == {"baseline": "url", "eagle3": "sim"}


@pytest.mark.parametrize(
    ("line", "instead", "note"),
    [
        ("arms:", "repeats: 1\narms:", "one start of each arm"),
        ("arms:", "repeats: 2\narms:", "3 repeats are the least"),
        ("arms:", "noise: none\narms:", "the baseline is not compared with itself"),
        ("arms:", "budget: 1s\narms:", "will not be run: it should take"),
        ("600", "499", "c1, c16: too few requests to compare p99, which takes 500"),
        (
            "level: {num_requests: 600}",
            "gates: [tpot_s.p99 > 1.05x, tpot_s.p99 > 9s, icl_s.p99 > 9s]\nlevel: {num_requests: 499}",
            "c1, c16: gate 'tpot_s.p99 > 1.05x' is held against much chance: its ratio takes 500 requests",
        ),
        ("600", "31", "c16: less than two requests for each slot"),
        (f"{SIM}, method", "sim: {gpus: 2}, method", "eagle3 (k = 3) runs on 2 GPUs, baseline on 1: how their speeds"),
        (f"baseline: {{{SIM}}}", "baseline: {url: 'http://h'}", "baseline: what runs already is not started anew"),
        (
            f"{{{SIM}, m",
            "{profile: llama-3.1-8b-eagle3, m",
            "prompts are made up: how many drafts are accepted on them means nothing",
        ),
    ],
)
def test_what_people_should_know_first(tmp_path: Path, line: str, instead: str, note: str) -> None:
    """Said where it holds, and only there."""
    assert plan_of(WHOLE, tmp_path).notes == ()
    assert line in WHOLE
    assert any(each.startswith(note) for each in plan_of(WHOLE.replace(line, instead), tmp_path).notes)


def test_a_gate_that_the_data_cannot_carry_is_refused(tmp_path: Path) -> None:
    """Where the file leaves the number of requests to the data, that is seen as soon as it is read."""
    (tmp_path / "p.jsonl").write_text(PROMPTS * 40)
    text = FILE.replace("level: {num_requests: 600}", "gates: [tpot_s.p99 > 1.05x]")
    with pytest.raises(
        ConfigError, match=r"gates: at c1 'tpot_s.p99 > 1.05x' can never be kept: 80 requests have no p99"
    ):
        plan_of(text, tmp_path)
    assert plan_of(text.replace("p99", "p95"), tmp_path).plan.levels[0].load.num_requests == 80


def test_two_running_servers_and_short_data_are_said(tmp_path: Path) -> None:
    """Both are up whatever is asked for, unless that is what is asked for; repeats of prompts are no secret."""
    (tmp_path / "p.jsonl").write_text(PROMPTS)
    text = FILE.replace(f"baseline: {{{SIM}}}", "baseline: {url: 'http://h:1'}").replace(SIM, "url: 'http://h:2'")
    notes = plan_of(text, tmp_path).notes
    assert "baseline, eagle3: these run all the time and all at once, whatever `servers` says" in notes
    assert "p.jsonl: has 2 requests, and a level takes 600; repeats are marked as such" in notes
    together = plan_of(text + "servers: together\n", tmp_path).notes
    assert not any("all at once" in note for note in together)
