"""What a wrong file of an experiment is told."""

from pathlib import Path

import pytest

from loadgen.core.errors import ConfigError
from loadgen.core.experiment.plan import Role
from loadgen.options.experiment import load_experiment
from tests.options.experiment_text import FORCED, WHOLE, arm, experiment


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


def test_of_very_many_mistakes_the_first_twenty_are_told(tmp_path: Path) -> None:
    """And how many more there are; twenty are told whole."""
    for wrong, more in ((20, []), (1000, [f"{tmp_path / 'mine.yaml'}: and 980 more"])):
        items = ", ".join(f"x{item}" for item in range(wrong))
        with pytest.raises(ConfigError) as error:
            experiment(WHOLE.replace("concurrency: [1, 8]", f"concurrency: [{items}]"), tmp_path)
        lines = str(error.value).splitlines()
        assert len(lines) == 20 + len(more)
        assert all(f"load.concurrency.{item}: " in line for item, line in enumerate(lines[:20]))
        assert lines[20:] == more
