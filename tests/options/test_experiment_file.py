"""The file of an experiment: what it may say, and what it stands for."""

import json
from pathlib import Path

import pytest

from loadgen.core.errors import ConfigError
from loadgen.core.experiment.plan import Order, Role
from loadgen.core.simulation.speculator import Method
from loadgen.options.experiment import load_experiment
from tests.options.experiment_text import FORCED, WHOLE, arm, experiment

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_one(path: Path) -> None:
    """It loads, its requests can be asked for, and it can be stored as strict JSON."""
    found = load_experiment(path)
    assert found.session_options().slo == found.slo
    assert json.loads(json.dumps(found.stored(), allow_nan=False))["name"] == found.name
    assert found.planned_arms()[0].role is Role.BASELINE


def test_what_is_left_out(tmp_path: Path) -> None:
    """Three repeats in balanced order, one server at a time, and the baseline once more."""
    found = experiment(WHOLE.replace("repeats: 2\n", ""), tmp_path)
    assert (found.repeats, found.order, found.servers, found.noise) == (3, Order.ABBA, "one_at_a_time", "aa")
    assert (found.explain, found.losslessness, found.budget, found.baseline) == ("none", "none", None, "baseline")
    assert [each.name for each in found.planned_arms()] == ["baseline", "eagle3", "baseline-again"]


def test_what_every_server_is_asked_is_what_run_would_ask(tmp_path: Path) -> None:
    """Workload, end, timeouts and objectives go where `run` has them; the ladder stays the experiment's."""
    text = WHOLE + "slo: {ttft: 500ms, tpot: 50ms}\nslo_attainment: 0.9\ntimeout: 2m\nlosslessness: sampled\nmodel: m\n"
    options = experiment(text, tmp_path).session_options("http://here:1")
    assert (options.url, options.model, options.timeout, options.num_requests) == ("http://here:1", "m", 120.0, 50)
    assert (str(options.input_lengths), str(options.output_lengths), options.ignore_eos) == ("64", "32-64", True)
    assert (options.slo, options.slo_attainment) == ("ttft=500ms,tpot=50ms", 0.9)
    assert options.save_text
    assert options.seed == 0


def test_what_is_read_beside_the_load(tmp_path: Path) -> None:
    """As often as asked, GPUs too; a password in the address of their page goes nowhere."""
    found = experiment(WHOLE + "scrape_interval: 500ms\nlocal_gpus: 0,1\n", tmp_path).session_options()
    assert (found.scrape_interval, found.gpu_indices, found.gpu_metrics_url) == (0.5, (0, 1), None)
    assert experiment(WHOLE + "local_gpus: [0, 1]\n", tmp_path).session_options().gpu_indices == (0, 1)
    page = experiment(WHOLE + "gpu_metrics_url: http://me:pa55word@gpu:9400/metrics\n", tmp_path)
    assert page.session_options().gpu_metrics_url == "http://me:pa55word@gpu:9400/metrics"
    assert page.stored()["gpu_metrics_url"] == "http://gpu:9400/metrics"
    with pytest.raises(ConfigError, match=r"local_gpus: .*expected all, or indices"):
        experiment(WHOLE + "local_gpus: some\n", tmp_path)


def test_files_stand_beside_the_experiment(tmp_path: Path) -> None:
    """A relative path is relative to the file that names it; an absolute one stays."""
    profile = "name: p\ndescription: d\nengine: vllm\nmodel: meta-llama/Llama-3.1-8B-Instruct\n"
    (tmp_path / "p.yaml").write_text(profile + "speculation: {method: ngram, draft_tokens: 4}\n")
    data = "  prompts: data/p.jsonl\n  trace: /data/t.csv\n"
    text = WHOLE.replace("  synthetic: {input_tokens: 64, output_tokens: 32-64}\n", data)
    found = experiment(text.replace("repeats: 2", "  sim: {sim: {profile: p.yaml}}"), tmp_path)
    assert (found.workload.prompts, found.workload.trace) == (tmp_path / "data/p.jsonl", Path("/data/t.csv"))
    assert found.arms["sim"].speculation == (Method.NGRAM, 4)


def test_a_command_is_taken_apart_as_a_shell_would(tmp_path: Path) -> None:
    """Quotes hold together; the port stays to be filled in."""
    found = arm("""{command: "serve --config '{\\"k\\": 3}' --port={port}"}""", tmp_path)
    assert found.arguments() == ("serve", "--config", '{"k": 3}', "--port={port}")


def test_forced_arms_get_what_forces_them(tmp_path: Path) -> None:
    """Arguments behind the command's own, variables beside its own; nothing of it without a length."""
    found = experiment(FORCED, tmp_path)
    forced = [each for each in found.planned_arms() if each.role is Role.FORCED]
    assert [(each.name, each.of, each.forced_length) for each in forced] == [
        ("eagle3-forced-1", "eagle3", 1),
        ("eagle3-forced-4", "eagle3", 4),
    ]
    server = found.arms["eagle3"]
    assert server.arguments() == ("serve", "model", "--port", "{port}", "--draft")
    assert server.arguments(forced_length=4) == (*server.arguments(), "--accept", "4")
    assert (server.environment({}), server.environment({}, forced_length=4)) == ({}, {"ACCEPTED": "3"})


def test_two_arms_do_not_share_a_label(tmp_path: Path) -> None:
    """Reports and gates go by it; one that is another's name is one, too."""
    for label in ("EAGLE-3", "baseline"):
        with pytest.raises(
            ConfigError, match=r"mine.yaml:21: arms.other.label: expected another label than that of \w+"
        ):
            arm(f"{{url: 'http://x', label: {label}}}", tmp_path)


def test_a_simulated_server_is_told_in_the_words_of_sim(tmp_path: Path) -> None:
    """Method and draft length beside it or in it;
    a forced one loses its own acceptance, and each start has its own seed."""
    beside = arm("{sim: {gpu: l4, acceptance: [0.8, 0.5, 0.1], seed: 5}, method: eagle3, draft_tokens: 3}", tmp_path)
    within = arm("{sim: {gpu: l4, method: ngram, draft-tokens: 5}}", tmp_path)
    assert (beside.speculation, within.speculation) == ((Method.EAGLE3, 3), (Method.NGRAM, 5))
    assert arm("{sim: {gpu: l4}}", tmp_path).speculation == (None, None)
    assert beside.sim_options().acceptance == [0.8, 0.5, 0.1]
    forced = beside.sim_options(forced_length=4, start=3)
    assert (forced.acceptance, forced.acceptance_length, forced.seed) == (None, 4.0, 7)


def test_arms_say_on_how_many_gpus_they_run(tmp_path: Path) -> None:
    """Profiles and simulated servers know it, the others are told; on a CPU, and with steps of a given time, there are
    none. It is how throughput is told and no part of what is measured."""
    for text, gpus in (
        ("{url: 'http://127.0.0.1:8000', gpus: 4}", 4),
        ("{url: 'http://127.0.0.1:8000'}", None),
        ("{command: 'serve --port {port}', gpus: 2}", 2),
        ("{profile: llama-3.3-70b-baseline}", 4),
        ("{profile: qwen3-0.6b-cpu-baseline}", None),
        ("{sim: {gpus: 8}}", 8),
        ("{sim: {step_time: 10ms}}", None),
    ):
        found = arm(text, tmp_path)
        assert found.gpus_used == gpus, text
        assert "gpus" not in found.stored(), text
    told = experiment(FORCED.replace("    label: EAGLE-3\n", "    label: EAGLE-3\n    gpus: 4\n"), tmp_path)
    assert [planned.gpus for planned in told.planned_arms()] == [None, 4, 4, 4, None]
    for text in ("{profile: llama-3.3-70b-baseline, gpus: 4}", "{sim: {gpus: 8}, gpus: 8}"):
        with pytest.raises(ConfigError, match=r"arms\.other\.gpus: this is for an arm with a command or a url"):
            arm(text, tmp_path)


def test_what_a_profile_of_the_simulator_says_is_part_of_what_is_measured(tmp_path: Path) -> None:
    """Its place is not: the same server from another folder is the same."""
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        text = "name: p\ndescription: d\nengine: vllm\nmodel: meta-llama/Llama-3.1-8B-Instruct\nsimulator: {gpu: l4}\n"
        (folder / "p.yaml").write_text(text)
    first, second = (arm("{sim: {profile: p.yaml}}", tmp_path / name).stored() for name in "ab")
    assert first == second
    assert first["sim"]["gpu"] == "l4"
    (tmp_path / "b" / "p.yaml").write_text(text.replace("l4", "l40s"))
    assert arm("{sim: {profile: p.yaml}}", tmp_path / "b").stored() != first


def test_requests_by_level(tmp_path: Path) -> None:
    """Slow levels may have fewer; each is named."""
    found = experiment(WHOLE.replace("num_requests: 50", "num_requests_by_level: {1: 20, 8: 160}"), tmp_path)
    assert (found.level.requests_at(1), found.level.requests_at(8.0)) == (20, 160)


def test_a_duration_is_for_rates(tmp_path: Path) -> None:
    """At a rate it says which requests come, to every arm the same; beside concurrency it is refused."""
    rates = WHOLE.replace("concurrency: [1, 8]", "request_rate: [1, 8]").replace("num_requests: 50", "duration: 1m")
    assert experiment(rates, tmp_path).level.duration == 60.0
    message = r"mine\.yaml:8: level\.duration: expected num_requests: in a given time a faster arm would send more"
    with pytest.raises(ConfigError, match=message):
        experiment(WHOLE.replace("num_requests: 50", "duration: 1m"), tmp_path)


def test_constant_spacing_can_be_stored(tmp_path: Path) -> None:
    """Infinity is a word there, since JSON has no number for it."""
    found = experiment(WHOLE.replace("concurrency: [1, 8]", "request_rate: 2\n  burstiness: .inf"), tmp_path)
    assert json.loads(json.dumps(found.stored(), allow_nan=False))["load"] == {
        "request_rate": [2.0],
        "burstiness": "inf",
    }
