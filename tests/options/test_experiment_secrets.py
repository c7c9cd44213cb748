"""What the file of an experiment names and does not hold: variables, secrets, and URLs with either."""

import json
from pathlib import Path

import pytest

from loadgen.core.errors import ConfigError
from loadgen.options.experiment import load_experiment
from tests.options.experiment_text import FORCED, WHOLE, arm, experiment


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
