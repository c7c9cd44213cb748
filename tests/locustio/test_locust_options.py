"""The options of `loadgen locust`: one target, one role, and nothing that lets a stranger send load."""

import json
from typing import Any

import pytest

from loadgen.core.errors import ConfigError
from loadgen.options.locust import LocustOptions, comparison_of, ladder_of, server_of
from loadgen.options.resolve import resolve

URL = "http://127.0.0.1:8000"
ARMS = ["plain=http://127.0.0.1:1", "eagle3=http://127.0.0.1:2"]


def options(**given: Any) -> LocustOptions:
    return resolve(LocustOptions, given, environment={})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": URL, "arm": ARMS}, "expected one kind of target, got --url and --arm"),
        ({"arm": ARMS[:1]}, "--arm: expected two servers or more"),
        ({"arm": ARMS, "baseline": "medusa"}, "--baseline: expected the name of an arm, got 'medusa'"),
        ({"arm": [ARMS[0], "b=http://u:secret@h:1"]}, "--arm: b: a secret does not belong here"),
        ({"headless": True}, "--headless needs --url, --server-profile or --arm"),
        ({"master": True, "worker": True}, "expected one of --master and --worker"),
        ({"worker": True, "processes": "2"}, "on another machine start each --worker"),
        ({"expect_workers": "3"}, "--expect-workers needs --master or --processes"),
        ({"master": True, "workers": "2"}, "each Locust worker is one"),
        ({"web_host": "0.0.0.0"}, "give --web-login-file or --web-login-env"),
        ({"web_login_env": "LOGIN", "web_login_file": "login"}, "expected one login of the page, got --web-login-env"),
        ({"url": URL, "trace_format": "azure"}, "--trace-format needs --trace"),
        ({"prometheus_port": "0", "prometheus_linger": "1s"}, "Locust's page has the metrics"),
    ],
)
def test_what_does_not_fit_together_is_refused(given: dict[str, Any], said: str) -> None:
    """With the options' names, and before anything is started."""
    with pytest.raises(ConfigError) as refused:
        options(**given)
    assert said in str(refused.value)


def test_a_page_beyond_this_machine_has_a_login() -> None:
    """Given one, it may be anywhere; without a page nobody needs one."""
    assert options(web_host="0.0.0.0", web_login_env="LOGIN").web_host == "0.0.0.0"
    assert options(web_host="0.0.0.0", web_login_file="login").web_host == "0.0.0.0"
    assert options(web_host="0.0.0.0", worker=True).worker


def test_a_ladder_is_that_of_a_sweep() -> None:
    """Options of the page and of Locust's processes stay behind; what was given is given again."""
    ladder = ladder_of(options(url=URL, concurrency="1,2", duration="90s", processes="2", port="0"))
    assert (ladder.url, ladder.concurrency, ladder.duration) == (URL, [1, 2], 90.0)
    assert ladder.model_fields_set == {"url", "concurrency", "duration"}


def test_what_was_given_makes_the_same_again() -> None:
    """By way of JSON, an infinite burstiness included."""
    before = options(url=URL, request_rate="1,2.5", burstiness="inf", label=["a=b"], grace="5s")
    sent = json.dumps(before.given(), allow_nan=False)
    assert resolve(LocustOptions, json.loads(sent), environment={}) == before


def test_what_json_cannot_hold_is_refused() -> None:
    """A path of other bytes than UTF-8's would end the process that measures."""
    with pytest.raises(ConfigError, match="expected UTF-8 in every option"):
        options(url=URL, out="runs-\udc80").given()


def test_a_ladder_without_a_target_is_refused() -> None:
    """The page may be open without one; a ladder may not begin."""
    with pytest.raises(ConfigError, match="expected a target"):
        ladder_of(options())


def test_arms_become_an_experiment() -> None:
    """The first arm is the baseline; ladder, end and data are those of the options."""
    experiment = comparison_of(options(arm=ARMS, concurrency="1,4", num_requests="20", slo="ttft=1s", repeats="2"))
    assert (experiment.baseline, list(experiment.arms), experiment.repeats) == ("plain", ["plain", "eagle3"], 2)
    assert (experiment.load.concurrency, experiment.level.num_requests, experiment.slo) == ([1, 4], 20, "ttft=1s")
    assert experiment.workload.synthetic is not None
    assert comparison_of(options(arm=ARMS, request_rate="2", duration="5s")).load.concurrency is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"header": ["X-Team=a"]}, "arms: expected no header beside them"),
        ({"concurrency": "1", "duration": "5s"}, "level.duration: expected num_requests"),
    ],
)
def test_what_a_comparison_cannot_take_is_said(given: dict[str, Any], said: str) -> None:
    """By the field's name."""
    with pytest.raises(ConfigError) as refused:
        comparison_of(options(arm=ARMS, **given))
    assert said in str(refused.value)


def test_a_profile_that_is_not_there_is_said() -> None:
    """With what was looked for."""
    with pytest.raises(ConfigError, match=r"--server-profile: .*no-such-profile"):
        server_of(options(server_profile="no-such-profile"))
