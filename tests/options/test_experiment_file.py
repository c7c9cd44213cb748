"""The file of an experiment: what it may say, what it stands for, and what a wrong one is told."""

import json
from pathlib import Path

import pytest

from loadgen.core.errors import ConfigError
from loadgen.core.experiment.plan import Order, Role
from loadgen.core.simulation.speculator import Method
from loadgen.options.experiment import ArmSection, ExperimentFile, load_experiment

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
WHOLE = """\
name: mine
workload:
  synthetic: {input_tokens: 64, output_tokens: 32-64}
  ignore_eos: true
load:
  concurrency: [1, 8]
level:
  num_requests: 50
arms:
  baseline:
    command: serve model --port {port}
    env: {HF_TOKEN: "${TOKEN}", MODE: 1}
  eagle3:
    label: EAGLE-3
    method: eagle3
    draft_tokens: 3
    command: [serve, model, --port, "{port}", --draft]
    forced:
      arguments: [--accept, "{length}"]
      env: {ACCEPTED: "{accepted}"}
repeats: 2
"""
FORCED = WHOLE + "explain: forced\n"


def experiment(text: str, folder: Path) -> ExperimentFile:
    path = folder / "mine.yaml"
    path.write_text(text)
    return load_experiment(path)


def arm(text: str, folder: Path) -> ArmSection:
    """An arm of one line beside a baseline."""
    return experiment(WHOLE.replace("repeats: 2", f"  other: {text}"), folder).arms["other"]


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


def test_variables_are_looked_up_at_the_start_and_stored_nowhere(tmp_path: Path) -> None:
    """The value is where it is needed and known as a secret; what is stored has at most the name."""
    found = experiment(WHOLE, tmp_path)
    server = found.arms["baseline"]
    assert server.environment({"TOKEN": "hf_abcdefgh"}) == {"HF_TOKEN": "hf_abcdefgh", "MODE": "1"}
    assert server.secrets({"TOKEN": "hf_abcdefgh"}) == ("hf_abcdefgh",)
    assert "hf_abcdefgh" not in json.dumps(found.stored())
    with pytest.raises(ConfigError, match=r"names \$\{TOKEN\}, and this environment variable is not set"):
        server.environment({})


def test_a_variable_that_is_not_set_is_said_where_it_stands(tmp_path: Path) -> None:
    """All of them with file, line and field, before anything is started; also one that makes a url none. To plan, it
    may be missing, and what only forced runs look up is wanted with them alone."""
    path = tmp_path / "mine.yaml"
    path.write_text(FORCED.replace("{accepted}", "{accepted}${MORE}").replace("HF_TOKEN", "A") + "api_key_env: KEY\n")
    with pytest.raises(ConfigError) as refused:
        load_experiment(path, variables={"KEY": ""})
    assert str(refused.value).split("\n") == [
        f"{path}:12: arms.baseline.env.A: the environment variable TOKEN is not set",
        f"{path}:20: arms.eagle3.forced.env.ACCEPTED: the environment variable MORE is not set",
        f"{path}:23: api_key_env: the environment variable KEY is not set",
    ]
    assert load_experiment(path) == load_experiment(path, variables={"TOKEN": "a", "MORE": "", "KEY": "k"})
    path.write_text(path.read_text().replace("forced\n", "none\n"))
    load_experiment(path, variables={"TOKEN": "a", "KEY": "k"})
    path.write_text(WHOLE.replace("repeats: 2", '  other: {url: "http://${HOST}"}').replace("${TOKEN}", "${TOKEN:-}"))
    with pytest.raises(ConfigError, match=r"mine.yaml:21: arms.other.url: the environment variable HOST is not set"):
        load_experiment(path, variables={})
    with pytest.raises(ConfigError, match=r"mine.yaml:21: arms.other.url: .*http://\$\{HOST\}: base URL: expected"):
        load_experiment(path, variables={"HOST": "a b"})


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("model: ${MODEL}", "model"),
        ("  extra: {workdir: '${HOME}', command: 'serve {port}'}", "arms.extra.workdir"),
        ("gpu_metrics_url: http://${HOST}/metrics", "gpu_metrics_url"),
        ("gates: ['error_ratio > ${LIMIT}']", "gates.0"),
    ],
)
def test_a_variable_where_none_is_looked_up_is_refused(line: str, field: str, tmp_path: Path) -> None:
    """It would be sent or opened as it stands there. In texts for people and for the server it may be anything."""
    with pytest.raises(
        ConfigError, match=rf"mine.yaml:21: {field}: \$\{{NAME\}} is looked up in url and env of an arm"
    ):
        experiment(WHOLE.replace("repeats: 2", line), tmp_path)
    found = experiment(
        WHOLE.replace("mine", "${mine}").replace("eos: true", "eos: true\n  extra_body: {x: '${y}'}"), tmp_path
    )
    assert found.name == "${mine}"


def test_two_arms_do_not_share_a_label(tmp_path: Path) -> None:
    """Reports and gates go by it; one that is another's name is one, too."""
    for label in ("EAGLE-3", "baseline"):
        with pytest.raises(
            ConfigError, match=r"mine.yaml:21: arms.other.label: expected another label than that of \w+"
        ):
            arm(f"{{url: 'http://x', label: {label}}}", tmp_path)


def test_a_url_may_name_a_variable_and_keeps_no_password(tmp_path: Path) -> None:
    """User info is for the connection, not for files; what the variables make of it is a URL, or is refused by name."""
    found = arm("{url: 'http://me:${PASSWORD}@${HOST}:8000', health: /ready}", tmp_path)
    variables = {"HOST": "gpu1", "PASSWORD": "pa55word"}
    assert found.url_from(variables) == "http://me:pa55word@gpu1:8000"
    assert found.stored()["url"] == "http://${HOST}:8000"
    with pytest.raises(
        ConfigError, match=r"the experiment's url http://me:\$\{PASSWORD\}@.*: base URL: expected"
    ) as raised:
        found.url_from({**variables, "HOST": "gpu1:x"})
    assert "pa55word" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://h", "javascript:alert(1)", "http://[::1", "h:8000", "http://h:99999", "http://h/v1/chat/completions"),
        *("http://h/?api_key=abcdefgh", "http://me:pa55word@h", "http://me:pa55word@${HOST}"),
    ],
)
def test_a_url_that_none_can_be_sent_to_is_refused_in_the_file(tmp_path: Path, url: str) -> None:
    """With its line, before anything is planned; what may be a secret is not repeated."""
    with pytest.raises(ConfigError, match=r":21: arms\.other\.url: ") as raised:
        arm(f"{{url: '{url}'}}", tmp_path)
    assert not any(secret in str(raised.value) for secret in ("abcdefgh", "pa55word"))


@pytest.mark.parametrize(
    "secret",
    [
        *("hf_abcdefghijklmnop1234", "sk-proj-abcdefgh12345678", "ghp_abcdefghijklmnopqrst12", "AKIAABCDEFGHIJKLMNOP"),
        *("https://me:pa55word@hub", "Authorization: Bearer abcdefgh", '{"api_key": "abcdefgh"}'),
    ],
)
@pytest.mark.parametrize(
    "place",
    [
        "command: [serve, '{{port}}', {0}]",
        "command: [serve, '{{port}}'], env: {{ENDPOINT: {0}}}",
        "command: [serve, '{{port}}'], method: mtp, forced: {{arguments: ['{{length}}', {0}]}}",
    ],
)
def test_what_looks_like_a_secret_is_refused_wherever_it_would_be_stored(
    tmp_path: Path, secret: str, place: str
) -> None:
    """Whatever its name; it is not repeated, and one that a variable holds is welcome."""
    with pytest.raises(ConfigError, match=r":21: arms\.other\..*secret") as raised:
        arm("{" + place.format(json.dumps(secret)) + "}", tmp_path)
    assert secret not in str(raised.value)


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "GITHUB_TOKEN", "MODELSCOPE_TOKEN", "TOKEN", "AWS_SECRET_ACCESS_KEY"),
        *("AWS_ACCESS_KEY_ID", "WANDB_API_KEY", "PRIVATE_KEY", "DB_PWD", "DB_PASSWORD", "AUTHORIZATION", "COOKIE"),
    ],
)
def test_a_variable_with_the_name_of_a_secret_names_another_one(tmp_path: Path, name: str) -> None:
    """Its value is in the environment, not in the file; a part of it in the file is one, too."""
    line = "{{command: [serve, '{{port}}'], env: {{{0}: '{1}'}}}}"
    assert arm(line.format(name, "${MINE}"), tmp_path).env == {name: "${MINE}"}
    for text in ("abc", "abc${MINE}"):
        with pytest.raises(ConfigError, match=rf":21: arms\.other\.env\.{name}: a secret does not belong in a file"):
            arm(line.format(name, text), tmp_path)


@pytest.mark.parametrize("name", ["PWD", "MAX_TOKENS", "EOS_TOKEN", "TOKENIZERS_PARALLELISM", "HF_TOKEN_PATH", "PATH"])
def test_other_variables_are_no_secrets(tmp_path: Path, name: str) -> None:
    """A folder, a number and the words of a model stand in the file."""
    assert arm(f"{{command: [serve, '{{port}}'], env: {{{name}: abc}}}}", tmp_path).env == {name: "abc"}


def test_a_secret_in_what_every_request_carries_is_refused(tmp_path: Path) -> None:
    """By its place; and the name of a variable is a name, not the key itself."""
    for body in ("{api_key: abc}", "{user: [{auth: {token: abc}}]}", "{user: hf_abcdefghijklmnop1234}"):
        text = WHOLE.replace("  ignore_eos", f"  extra_body: {body}\n  ignore_eos")
        with pytest.raises(ConfigError, match=r":4: workload\.extra_body: .*: a secret does not belong here") as raised:
            experiment(text, tmp_path)
        assert "abc" not in str(raised.value)
    for key in ("sk-abcdefgh12345678", "hf_abcdefghijklmnop1234"):
        with pytest.raises(ConfigError, match=r":22: api_key_env: expected the name of an environment") as raised:
            experiment(WHOLE + f"api_key_env: {key}\n", tmp_path)
        assert key not in str(raised.value)
    public = "{tools: [{parameters: {properties: {api_key: {type: string}}}}], bad_token: '</s>', prompt_cache_key: a}"
    text = WHOLE.replace("  ignore_eos", f"  extra_body: {public}\n  ignore_eos")
    assert "tools" in experiment(text, tmp_path).workload.extra_body


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


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ("name: mine\n", "", r"mine\.yaml:1: name: this field is needed"),
        ("repeats: 2", "repeat: 2", r"mine\.yaml:21: repeat: no such field; did you mean repeats\?"),
        ("repeats: 2", "repeats: 0", r"mine\.yaml:21: repeats: .*greater than or equal to 1, got 0"),
        ("repeats: 2", "order: abab", r"mine\.yaml:21: order: input should be 'abba' or 'sequential', got 'abab'"),
        ("repeats: 2", "noise: true", r"mine\.yaml:21: noise: input should be 'aa' or 'none', got True"),
        ("repeats: 2", "baseline: plain", r"mine\.yaml:21: baseline: expected one of the arms, baseline, eagle3; got"),
        ("repeats: 2", "slo: ttft=fast", r"mine\.yaml:21: slo: ttft: expected a duration"),
        ("repeats: 2", "slo_attainment: 0.9", r"mine\.yaml:21: slo_attainment: --slo-attainment needs --slo"),
        ("repeats: 2", "budget: soon", r"mine\.yaml:21: budget: expected a duration"),
        ("repeats: 2", "gates: [tpot_s.mean]", r":21: gates\.0: gate 'tpot_s.mean', column 12: expected one of > <"),
        ("repeats: 2", "gates:\n  - tpot_s.p99 > 1.05x\n  - tpot > 1.1x", r":23: gates\.1: .*column 1: tpot is not"),
        ("repeats: 2", "gates: [ttft_s.p50 > 50]", r":21: gates\.0: .*column 16: ttft_s\.p50 is a time: expected its"),
        (
            "repeats: 2",
            "gates:\n  - ttft_s.p95 < 9s\n  - tpot_s.p99 > 1x",
            r":23: gates\.1: at level 1 'tpot_s.p99 > 1x' can n",
        ),
        ("repeats: 2", "gates: tpot_s.p99 > 1.05x", r":21: gates: input should be a valid tuple"),
        ("repeats: 2", "losslessness: greedy", r"mine\.yaml:21: losslessness: expected workload\.temperature of 0"),
        ("repeats: 2", "noise: none\nlosslessness: sampled", r":22: losslessness: expected noise: aa beside it"),
        ("ignore_eos: true", "temperature: 0\nlosslessness: sampled", r":5: losslessness: .*temperature above 0"),
        ("repeats: 2", "baseline: eagle3\nexplain: forced", r":21: baseline: expected a baseline without speculation"),
        ("ignore_eos: true", "ignore_oes: true", r":4: workload\.ignore_oes: no such field; did you mean ignore_eos\?"),
        ("ignore_eos: true", "temperature: -1", r":4: workload\.temperature: .*greater than or equal to 0"),
        ("ignore_eos: true", "prompts: a.jsonl", r":3: workload\.synthetic: expected a file or made-up prompts"),
        ("output_tokens: 32-64", "output_tokens: many", r":3: workload\.synthetic\.output_tokens: .*tokens as 128"),
        (
            "output_tokens: 32-64",
            "outputs: 3",
            r":3: workload\.synthetic\.outputs: no such field; did you mean output_",
        ),
        (
            "  synthetic: {input_tokens: 64, output_tokens: 32-64}\n",
            "",
            r":2: workload: expected trace, prompts or syn",
        ),
        ("concurrency: [1, 8]", "concurrency: [1, 1]", r":6: load\.concurrency: a level stands twice"),
        ("concurrency: [1, 8]", "concurrency: [0]", r":6: load\.concurrency: expected numbers above 0"),
        ("concurrency: [1, 8]", "burstiness: 2", r":5: load: expected concurrency, request_rate or both"),
        ("concurrency: [1, 8]", "concurrency: 1\n  burstiness: 2", r":5: load: burstiness and max_concurrency are for"),
        ("num_requests: 50", "num_requests: 0", r":8: level\.num_requests: .*greater than 0"),
        (
            "num_requests: 50",
            "num_requests: 5\n  duration: 1m",
            r":9: level\.duration: expected one of num_requests and",
        ),
        ("num_requests: 50", "num_requests_by_level: {1: 9}", r":8: level\.num_requests_by_level: .*differs at 8"),
        ("num_requests: 50", "num_requests_by_level: {1: 9, 8: 0}", r":8: .*1 or more at 8, got 0"),
        ("  eagle3:", "  eagle 3:", r":13: arms\.eagle 3: expected a name of at most 40 letters"),
        (
            "    draft_tokens: 3",
            "    draft_token: 3",
            r":16: arms\.eagle3\.draft_token: no such field; did you mean draft_",
        ),
        ("    method: eagle3\n", "", r":15: arms\.eagle3\.draft_tokens: expected a method beside it"),
        (
            "    label: EAGLE-3",
            "    url: http://h",
            r":13: arms\.eagle3: expected one of profile, .*got url and command",
        ),
        (
            "command: serve model --port {port}",
            "command: serve model",
            r":11: arms\.baseline\.command: expected \{port\}",
        ),
        ("command: serve model", "command: serve 'model", r":11: arms\.baseline\.command: No closing quotation"),
        ("serve model --", "serve ${MODEL} --", r":11: arms\.baseline\.command: \$\{NAME\} is for url and env"),
        ("model --port {", "--api-key sk-1 --port {", r":11: arms\.baseline\.command: --api-key: a command is stored"),
        ('"${TOKEN}"', "hf_abcdefgh", r":12: arms\.baseline\.env\.HF_TOKEN: a secret does not belong in a file"),
        ("[--accept,", '["--token=${T}",', r":19: arms\.eagle3\.forced\.arguments: \$\{NAME\} is for url and env"),
        ("ACCEPTED:", "API_KEY:", r":20: arms\.eagle3\.forced\.env\.API_KEY: a secret does not belong in a file"),
        ("repeats: 2", "repeats: true", r":21: repeats: expected a number, got True"),
        ("[1, 8]", "[true, 8]", r":6: load\.concurrency: expected a number, got \[True, 8\]"),
        ("MODE: 1", 'MODE: "a\\0b"', r":12: .*MODE: expected a text without NUL"),
        ("repeats: 2", "cooldown: ٣s", r":21: cooldown: expected a duration such as"),
        ("repeats: 2", "cooldown: 1.0e+300", r":21: cooldown: expected a duration of zero or more, at most"),
        ("repeats: 2", f"cooldown: {'9' * 400}s", r":21: cooldown: expected a duration of at most"),
        ("MODE: 1", '"A=B": 1', r":12: arms\.baseline\.env\.A=B: expected the name of a variable, without = and NUL"),
        ("ACCEPTED:", '"":', r":20: arms\.eagle3\.forced\.env\.: expected the name of a variable"),
        ("MODE: 1", "MODE: true", r":12: arms\.baseline\.env\.MODE: input should be a valid string, got True"),
        (
            '[--accept, "{length}"]\n      env: {ACCEPTED: "{accepted}"}',
            "[--accept, 4]",
            r":18: arms\.eagle3\.forced: expected \{length\} or",
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path: Path, line: str, instead: str, message: str) -> None:
    """File, line, field, and what was expected there."""
    assert line in WHOLE
    text = WHOLE.replace(line, instead)
    with pytest.raises(ConfigError, match=message):
        experiment(text, tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{url: 'http://h', env: {A: b}}", r"arms\.other\.env: this is for an arm with a command"),
        ("{sim: {}, health: /ready}", r"arms\.other\.health: this is for an arm with a command or a url"),
        ("{sim: {gpus: 1, port: 8000}}", r"arms\.other\.sim\.port: expected no such option: the experiment settles it"),
        ("{sim: {gpux: h100}}", r"arms\.other\.sim\.gpux: the simulator has no such option"),
        ("{sim: {gpu: h1000}}", r"arms\.other\.sim: --gpu: expected one of"),
        ("{sim: {method: mtp}, method: ngram}", r"arms\.other\.sim\.method: expected method once"),
        ("{sim: {}, draft_tokens: 3}", r"arms\.other\.sim: --draft-tokens is for a speculative --method"),
        ("{}", r"arms\.other: expected one of profile, url, command, sim; got none"),
    ],
)
def test_an_arm_that_is_none(tmp_path: Path, line: str, message: str) -> None:
    """Each kind of server has its own fields."""
    with pytest.raises(ConfigError, match=r"mine\.yaml:21: " + message):
        arm(line, tmp_path)


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ("  ignore_eos: true\n", "", r":21: explain: expected workload\.ignore_eos: true beside it"),
        ("    draft_tokens: 3\n", "", r":13: arms\.eagle3\.draft_tokens: this field is needed for explain: forced"),
        (
            '    forced:\n      arguments: [--accept, "{length}"]\n      env: {ACCEPTED: "{accepted}"}\n',
            "",
            r":17: arms\.eagle3\.command: explain: forced needs the section `forced`",
        ),
        (
            "repeats: 2",
            "  running: {url: 'http://h', method: mtp, draft_tokens: 1}",
            r":21: arms\.running\.url: explain: forced needs servers that are started for it",
        ),
    ],
)
def test_what_forcing_lacks_is_said(tmp_path: Path, line: str, instead: str, message: str) -> None:
    """Where it is missing, and what to write there."""
    assert line in FORCED
    with pytest.raises(ConfigError, match=r"mine\.yaml" + message):
        experiment(FORCED.replace(line, instead), tmp_path)


def test_one_arm_is_enough_to_see_the_noise_and_for_nothing_else(tmp_path: Path) -> None:
    """The baseline against itself, or there is nothing to compare."""
    text = WHOLE[: WHOLE.index("  eagle3:")]
    assert [each.role for each in experiment(text, tmp_path).planned_arms()] == [Role.BASELINE, Role.AGAIN]
    with pytest.raises(ConfigError, match=r"mine\.yaml:9: arms: expected a second arm, or noise: aa"):
        experiment(text + "noise: none\n", tmp_path)


def test_everything_wrong_is_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    """A line each; what a misspelt field keeps from being looked at as well, though two sections share it."""
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nworkload: {synthetic: {}}\nload: {concurrency: [1]}\nrepeat: many\narms:\n"
        "  baseline: &server\n    comand: serve\n  other: *server\nlaunch: kubernets\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_experiment(tmp_path / "mine.yaml")
    told = str(caught.value).replace(f"{tmp_path}/", "").splitlines()
    assert told == sorted(told, key=lambda line: int(line.split(":")[1]))
    assert [line.partition(";")[0] for line in told] == [
        "mine.yaml:4: repeat: no such field",
        "mine.yaml:4: repeats: input should be a valid integer, unable to parse string as an integer, got 'many'",
        "mine.yaml:7: arms.baseline.comand: no such field",
        "mine.yaml:7: arms.baseline.command: expected {port} where the server is told its port",
        "mine.yaml:8: arms.other.comand: no such field",
        "mine.yaml:8: arms.other.command: expected {port} where the server is told its port",
        "mine.yaml:9: launch: input should be 'process', 'compose' or 'sim', got 'kubernets'",
    ]
