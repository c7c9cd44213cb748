"""Requests as bytes."""

import pytest

from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.head import RequestHead
from loadgen.core.errors import ConfigError


def test_a_request_is_one_value_with_its_own_id_and_length() -> None:
    """The head ends in an empty line, the length counts bytes (not characters), and the body follows unchanged."""
    head = RequestHead.of(Destination.from_url("http://host:8000/llm", api_key="k"), "/v1/completions")
    body = '{"prompt": "語"}'.encode()
    request = head.request(body, "req-7")
    start, _, rest = request.partition(b"\r\n\r\n")
    lines = start.decode().split("\r\n")
    assert lines[0] == "POST /llm/v1/completions HTTP/1.1"
    assert rest == body
    assert {"Host: host:8000", "X-Request-Id: req-7", f"Content-Length: {len(body)}"} <= set(lines)
    assert "Authorization: Bearer k" in lines
    assert any(line.startswith("User-Agent: loadgen/") for line in lines)


@pytest.mark.parametrize("request_id", ["", "a b", "a\r\nX: y", "é"])
def test_an_id_that_no_header_can_hold_is_refused(request_id: str) -> None:
    """An id from a trace cannot inject a header."""
    head = RequestHead.of(Destination.from_url("http://host"), "/v1/completions")
    with pytest.raises(ConfigError, match="request id"):
        head.request(b"{}", request_id)
