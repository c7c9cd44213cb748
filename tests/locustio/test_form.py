"""The form of Locust's page."""

from typing import Any

import pytest

from loadgen.core.errors import ConfigError
from loadgen.locustio.form import FIELDS, SHOWN, fields_of, options_from, shown_url
from loadgen.options.locust import LocustOptions
from loadgen.options.resolve import resolve

URL = "http://127.0.0.1:8000"


def started_with(**given: Any) -> LocustOptions:
    return resolve(LocustOptions, given, environment={})


def whole(options: LocustOptions, **changed: str) -> dict[str, str]:
    """What the page sends when these fields were changed."""
    return {"host": shown_url(options)} | {field.name: field.value for field in fields_of(options)} | changed


def test_fields_hold_what_the_command_said() -> None:
    """As it is typed; what has few answers has them to choose from."""
    fields = {field.name: field for field in fields_of(started_with(url=URL, concurrency="1,2", duration="90s"))}
    assert list(fields) == list(SHOWN)
    assert (fields["concurrency"].value, fields["duration"].value, fields["slo"].value) == ("1,2", "90s", "")
    assert fields["ignore_eos"].choices == ("no", "yes")
    assert fields["endpoint"].choices == ("chat", "completions", "responses")


def test_a_form_sent_as_it_was_changes_nothing() -> None:
    """Whatever it was started with."""
    before = started_with(url=URL, request_rate="1,2.5", slo="ttft=1s", ignore_eos=True, output_tokens="16")
    after = options_from(whole(before), before)
    assert {name: getattr(after, name) for name in FIELDS} == {name: getattr(before, name) for name in FIELDS}
    assert after.url == URL


def test_an_emptied_field_is_the_options_default_and_one_left_out_stays() -> None:
    """A page sends all fields, a script what it means."""
    before = started_with(url=URL, concurrency="4", num_requests="10")
    assert options_from({"num_requests": ""}, before).num_requests is None
    assert options_from({"slo": "ttft=1s"}, before).num_requests == 10
    assert options_from(whole(before, concurrency="", request_rate="2,4"), before).request_rate == [2.0, 4.0]


def test_credentials_of_the_target_are_not_shown_and_not_lost() -> None:
    """The page has the address without them; sent back as it was, it is the whole again."""
    before = started_with(url="http://user:secret@host:8000/v1")
    assert shown_url(before) == "http://host:8000/v1"
    assert shown_url(started_with(url="http://host:8000/v1?token=abc")) == "http://host:8000/v1"
    assert options_from(whole(before), before).url == before.url
    assert options_from(whole(before, host="http://other:1"), before).url == "http://other:1"


def test_a_script_can_say_more_than_the_page_asks() -> None:
    """Fields that the page leaves out are known by name."""
    assert options_from({"settle": "0s", "burstiness": "inf", "request_rate": "1"}, started_with(url=URL)).settle == 0


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"host": URL, "concurrency": "1,x"}, "--concurrency: "),
        ({"host": URL, "slo": "fast"}, "--slo: expected METRIC=TIME pairs"),
        ({"host": ""}, "expected a target"),
        ({"host": "http://user:secret@h:1"}, "host: a secret does not belong here"),
        ({"host": URL, "arm": "a=http://x:1,b=http://y:2"}, "expected one kind of target"),
        ({"host": URL, "ignore_eos": "perhaps"}, "--ignore-eos: "),
        ({"host": "localhost:8000"}, "base URL: expected http://host[:port]"),
        ({"host": URL, "prompts": "/no/such/file"}, "--prompts: expected a file"),
        ({"host": URL, "trace": "/dev/zero"}, "--trace: expected a file"),
        ({"host": URL, "trace_format": "azure"}, "--trace-format needs --trace"),
        ({"host": URL, "trace": "x" * 5000}, "--trace: expected a file"),
        ({"server_profile": "/dev/zero"}, "--server-profile: expected a file"),
        ({"host": URL, "server_launch": "magic", "server_profile": ""}, "--server-launch: "),
        ({"arm": "a=http://x:1,b=http://y:2", "concurrency": "1", "duration": "2s"}, "level.duration"),
        ({"server_profile": "no-such-profile"}, "--server-profile: "),
    ],
)
def test_a_wrong_field_is_named(form: dict[str, str], said: str) -> None:
    """With what was expected, and before the process that measures hears of it."""
    with pytest.raises(ConfigError) as refused:
        options_from(form, started_with())
    assert said in str(refused.value)
