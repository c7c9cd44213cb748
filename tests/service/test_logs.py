"""Logs of the service."""

import json
import logging

from loadgen.service.logs import JsonLines


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
