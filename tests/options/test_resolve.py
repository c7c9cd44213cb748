"""Options from command line, environment and file."""

from pathlib import Path
from typing import Any

import pytest

from loadgen.core.errors import ConfigError
from loadgen.options.load import RunOptions, SweepOptions
from loadgen.options.resolve import resolve

URL = "http://127.0.0.1:8000"


def run_options(config: Path | None = None, environment: dict[str, str] | None = None, **given: Any) -> RunOptions:
    return resolve(RunOptions, {"url": URL, **given}, config=config, environment=environment or {})


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    """Each source overrides the next, option by option."""
    file = tmp_path / "run.yaml"
    file.write_text("concurrency: 2\nnum-requests: 20\ngrace: 5s\n")
    environment = {"LOADGEN_NUM_REQUESTS": "30", "LOADGEN_GRACE": "6s", "LOADGEN_OTHER": "x"}
    options = run_options(file, environment, grace="7s")
    assert (options.concurrency, options.num_requests, options.grace) == (2, 30, 7.0)


def test_one_kind_of_load_takes_the_place_of_another_from_a_lower_source(tmp_path: Path) -> None:
    """A rate in the environment does not stand against a concurrency on the command line; two on one line do."""
    environment = {"LOADGEN_REQUEST_RATE": "5"}
    options = run_options(environment=environment, concurrency="2")
    assert (options.concurrency, options.request_rate) == (2, None)
    file = tmp_path / "run.yaml"
    file.write_text("concurrency: 4\n")
    assert run_options(file, environment).request_rate == 5.0
    assert run_options(file, environment).concurrency is None


def test_strings_become_typed_values() -> None:
    """Durations, JSON, headers and labels are read the same from every source."""
    options = run_options(
        concurrency="8",
        duration="1m30s",
        extra_body='{"ignore_eos": true, "top_k": 4}',
        header=["X-Team: infra", "X-Run=7"],
        label=["gpu=h100"],
        seed="0",
    )
    assert options.duration == 90.0
    assert options.extra_body == {"ignore_eos": True, "top_k": 4}
    assert options.header == {"X-Team": "infra", "X-Run": "7"}
    assert options.label == {"gpu": "h100"}
    assert options.seed == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"concurrency": "four"}, r"--concurrency: .*integer.*'four'"),
        ({"concurrency": "1,2,4"}, r"--concurrency: expected one number, got '1,2,4'; `loadgen sweep` takes a ladder"),
        ({"concurrency": "0"}, r"--concurrency: .*greater than 0"),
        ({"request_rate": "-2"}, r"--request-rate: .*greater than or equal to 0.000001"),
        ({"request_rate": "1e300"}, r"--request-rate: .*less than or equal to 100000"),
        ({"request_rate": "nan"}, r"--request-rate: .*finite"),
        ({"temperature": "inf"}, r"--temperature: .*finite"),
        ({"temperature": "nan"}, r"--temperature: .*finite"),
        ({"max_error_ratio": "nan"}, r"--max-error-ratio: .*finite"),
        ({"num_requests": "99999999999999999999999"}, r"--num-requests: .*less than or equal to 1000000000"),
        ({"seed": "99999999999999999999999"}, r"--seed: .*less than 9223372036854775808"),
        ({"extra_body": '{"top_p": NaN}'}, r"--extra-body: expected what JSON can hold"),
        ({"extra_body": '{"a": {"b": [Infinity]}}'}, r"--extra-body: expected what JSON can hold"),
        ({"extra_body": r'{"a": "\ud800"}'}, r"--extra-body: expected what JSON can hold"),
        ({"model": "not\udcffutf-8"}, r"--model: expected UTF-8"),
        ({"request_rate": "inf"}, r"--request-rate: .*finite"),
        ({"request_rate": "5", "burstiness": "0"}, r"--burstiness: .*greater than or equal to 0.001"),
        ({"request_rate": "5", "burstiness": "nan"}, r"--burstiness: .*greater than or equal to 0.001"),
        ({"burstiness": "1"}, r"--burstiness needs --request-rate"),
        ({"concurrency": "1", "request_rate": "1"}, r"one kind of load, got --concurrency and --request-rate"),
        ({"replay": True}, r"--replay needs --trace"),
        ({"workers": "0"}, r"--workers: .*greater than or equal to 1"),
        ({"workers": "2"}, r"--workers 2: expected at most one for each request of --concurrency 1"),
        ({"workers": "5", "concurrency": "4"}, r"--workers 5: expected at most one for each .* --concurrency 4"),
        (
            {"workers": "5", "request_rate": "9", "max_concurrency": "4"},
            r"--workers 5: expected at most one for each request of --max-concurrency 4",
        ),
        ({"speed": "2"}, r"--speed needs --replay"),
        ({"duration": "soon"}, r"--duration: expected a duration such as 500ms"),
        ({"extra_body": "{not json"}, r"--extra-body: expected a JSON object"),
        ({"extra_body": "[1]"}, r"--extra-body: expected a JSON object"),
        ({"label": ["novalue"]}, r"--label: expected KEY=VALUE, got 'novalue'"),
        ({"slo": "speed=4ms"}, r"--slo: speed: not a metric"),
        ({"slo": "ttft=500"}, r"--slo: ttft: expected a time with its unit, such as 500ms"),
        ({"slo_attainment": "0.9"}, r"--slo-attainment needs --slo"),
        ({"input_tokens": "many"}, r"--input-tokens: "),
        ({"endpoint": "chats"}, r"--endpoint: .*'chat'"),
        ({"max_concurrency": "4"}, r"--max-concurrency caps an open loop"),
        ({"token_ids": True}, r"--token-ids needs --endpoint completions"),
    ],
)
def test_a_wrong_option_is_named_with_what_was_expected(given: dict[str, Any], message: str) -> None:
    """The error says which option, what it held and what would do."""
    with pytest.raises(ConfigError, match=message):
        run_options(**given)


def test_a_wrong_line_of_a_file_is_named_by_its_number(tmp_path: Path) -> None:
    """Unknown keys, wrong values and broken YAML name file and line."""
    file = tmp_path / "run.yaml"
    file.write_text("# load\nconcurrency: 2\nconcurency: 3\n")
    with pytest.raises(ConfigError, match=r"run\.yaml:3: concurency: no such option; did you mean concurrency"):
        run_options(file)
    file.write_text("\n\nconcurrency: none\n")
    with pytest.raises(ConfigError, match=r"run\.yaml:3: concurrency: "):
        run_options(file)
    file.write_text("concurrency: [1\n")
    with pytest.raises(ConfigError, match=r"run\.yaml:2: not YAML"):
        run_options(file)
    file.write_text("concurrency: 1\n\nconcurrency: 2\n")
    with pytest.raises(ConfigError, match=r"run\.yaml:3: concurrency stands twice, first in line 1"):
        run_options(file)
    file.write_text("- concurrency\n")
    with pytest.raises(ConfigError, match=r"run\.yaml:1: expected `name: value` lines"):
        run_options(file)
    for text in ("duration: .inf", "duration: .nan", "timeout: -1"):
        file.write_text(f"{text}\n")
        with pytest.raises(ConfigError, match=r"run\.yaml:1: .*expected a duration"):
            run_options(file)
    file.write_text("extra_body: {day: 2024-01-01}\n")
    with pytest.raises(ConfigError, match=r"run\.yaml:1: extra_body: expected what JSON can hold"):
        run_options(file)
    with pytest.raises(ConfigError, match=r"absent\.yaml: cannot be read: No such file"):
        run_options(tmp_path / "absent.yaml")


def test_a_wrong_variable_is_named() -> None:
    """An error in the environment is not blamed on the command line."""
    with pytest.raises(ConfigError, match=r"LOADGEN_TIMEOUT: expected a duration"):
        run_options(environment={"LOADGEN_TIMEOUT": "long"})


def test_an_option_that_is_needed_is_asked_for() -> None:
    """Without a URL there is nothing to do."""
    with pytest.raises(ConfigError, match="--url: this option is needed"):
        resolve(RunOptions, {}, environment={})


def test_ladders_are_lists_of_different_numbers() -> None:
    """`1,2,4` and a YAML list are the same; fractions are legal rates; a level never stands twice."""
    assert resolve(SweepOptions, {"url": URL, "concurrency": "1,2,4"}, environment={}).concurrency == [1, 2, 4]
    assert resolve(SweepOptions, {"url": URL, "request_rate": "0.5, 1.5"}, environment={}).request_rate == [0.5, 1.5]
    for ladder, message in (("1,1", "twice"), ("0,1", "above 0"), (",", "above 0"), ("1,x", "integer")):
        with pytest.raises(ConfigError, match=message):
            resolve(SweepOptions, {"url": URL, "concurrency": ladder}, environment={})
    for ladder in ("1,nan", "1,inf", "1,1e9", "1e-9"):
        with pytest.raises(ConfigError, match="--request-rate"):
            resolve(SweepOptions, {"url": URL, "request_rate": ladder}, environment={})


def test_a_wrong_value_is_shown_without_secrets_and_control_characters() -> None:
    """Of a variable and of the command line alike, and a long one by its beginning."""
    for value in ("hf_abcdefghijklmnop1234", "\x1b]0;owned\x07", "x" * 5000):
        for sources in ({"given": {"num_requests": value}}, {"environment": {"LOADGEN_NUM_REQUESTS": value}}):
            with pytest.raises(ConfigError, match="valid integer") as raised:
                resolve(RunOptions, **{"given": {}, "environment": {}, **sources})
            assert value not in str(raised.value)
            assert str(raised.value).isprintable()


@pytest.mark.parametrize("line", ["concurrency: true", "request-rate: yes", "duration: on", "num-requests: false"])
def test_a_truth_value_of_a_file_is_no_number(tmp_path: Path, line: str) -> None:
    """However YAML spells it; what can be true stays so."""
    path = tmp_path / "loadgen.yaml"
    path.write_text(f"url: http://h\n{line}\n")
    name = line.partition(":")[0]
    with pytest.raises(ConfigError, match=rf"loadgen\.yaml:2: {name}: expected a number"):
        resolve(RunOptions, {}, config=path, environment={})
    path.write_text("url: http://h\nignore-eos: yes\n")
    assert resolve(RunOptions, {}, config=path, environment={}).ignore_eos is True
