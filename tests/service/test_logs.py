"""Logs of the service."""

import json
import logging

import httpx2
import pytest

from loadgen.service.logs import JsonLines, set_up_logs


def test_a_line_is_one_object_without_secrets() -> None:
    """What looks like a secret, or is named so, does not stand in it, wherever it came from."""
    try:
        raise ValueError("Bearer abcdefgh12345678 at postgresql://u:hunter2secret@host/db")
    except ValueError as error:
        record = logging.LogRecord("l", logging.WARNING, "f", 1, "a\nb %s", ("sk-abc123def456ghi789",), None)
        record.exc_info = (ValueError, error, error.__traceback__)
    record.run_id = "r"
    record.api_key = "hidden"
    text = JsonLines().format(record)
    line = json.loads(text)
    assert "\n" not in text
    assert (line["level"], line["run_id"]) == ("warning", "r")
    assert line["message"].startswith("a\nb")
    for secret in ("abcdefgh12345678", "hunter2secret", "sk-abc123def456ghi789", "hidden"):
        assert secret not in text


def test_the_url_of_a_receiver_is_not_logged(capfd: pytest.CaptureFixture[str]) -> None:
    """What is sent over HTTP leaves no line, since a URL may be a secret as a whole; others do."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    try:
        set_up_logs("info")
        answering = httpx2.MockTransport(lambda _: httpx2.Response(200))
        with httpx2.Client(transport=answering) as client:
            client.post("https://hooks.example.org/services/T0/B0/tell-nobody")
        logging.getLogger("loadgen.service").info("told")
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
    lines = capfd.readouterr().err
    assert '"told"' in lines
    assert "tell-nobody" not in lines
