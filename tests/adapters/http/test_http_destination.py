"""Base URLs, credentials and headers: what is accepted, what is sent, what is never shown."""

import base64

import pytest

from loadgen.adapters.http.destination import Destination
from loadgen.core.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "authority", "target"),
    [
        ("http://host:8000", "host:8000", "/v1/chat/completions"),
        ("http://host:8000/", "host:8000", "/v1/chat/completions"),
        ("http://host:8000/v1", "host:8000", "/v1/chat/completions"),
        ("http://host:8000/v1/", "host:8000", "/v1/chat/completions"),
        ("http://host", "host", "/v1/chat/completions"),
        ("https://host:443", "host", "/v1/chat/completions"),
        ("http://host:443", "host:443", "/v1/chat/completions"),
        ("https://gate.example/llm", "gate.example", "/llm/v1/chat/completions"),
        ("https://gate.example/llm/v1", "gate.example", "/llm/v1/chat/completions"),
        ("https://gate.example/api/v3", "gate.example", "/api/v3/chat/completions"),
        ("https://gate.example/v1beta", "gate.example", "/v1beta/chat/completions"),
        ("http://[::1]:8000", "[::1]:8000", "/v1/chat/completions"),
        ("http://[fe80::1%25lo]:8000", "[fe80::1]:8000", "/v1/chat/completions"),
        ("http://bücher.example", "xn--bcher-kva.example", "/v1/chat/completions"),
        ("unix:///run/llm.sock", "localhost", "/v1/chat/completions"),
        ("unix:///run/llm.sock:/gate/v1", "localhost", "/gate/v1/chat/completions"),
    ],
)
def test_base_url_with_and_without_version(url: str, authority: str, target: str) -> None:
    """The version segment may stand in the base URL or not; it is in the request once. Host has no default port."""
    destination = Destination.from_url(url)
    assert destination.request_target("/v1/chat/completions") == target
    assert destination.request_headers()["Host"] == authority


def test_paths_outside_the_api_are_below_the_prefix() -> None:
    """`/metrics` and `/health` are beside `/v1`, not below it."""
    assert Destination.from_url("http://h/v1").request_target("/metrics") == "/metrics"
    assert Destination.from_url("http://h/llm/v1").request_target("/metrics") == "/llm/metrics"


def test_addresses_for_the_resolver() -> None:
    """Brackets and percent-encoding are the URL's, not the host's; a unix socket is a file."""
    assert Destination.from_url("http://[fe80::1%25eth0]:8000").host == "fe80::1%eth0"
    assert Destination.from_url("http://h").port == 80
    assert Destination.from_url("https://h").port == 443
    assert Destination.from_url("unix:///tmp/a%20b.sock").unix_path == "/tmp/a b.sock"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:8000",
        "localhost",
        "ftp://host",
        "http://",
        "http://:80",
        "http://host:0",
        "http://host:99999",
        "http://host:port",
        "http://ho st",
        "http://host/a\r\nX: y",
        "http://host/é",
        "http://host/?key=s3cret",
        "http://host/#part",
        "http://[::1",
        "unix://relative/path.sock",
        "unix:relative.sock",
        "unix:///run/x.sock:v1",
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url: str) -> None:
    """Each is a ConfigError that says which forms are expected, and repeats no secret."""
    with pytest.raises(ConfigError, match=r"base URL: .*(expected|written|starts with)") as caught:
        Destination.from_url(url)
    assert "s3cret" not in str(caught.value)


def test_user_info_becomes_basic_authorization_and_is_not_stored() -> None:
    """Percent-decoded user and password are sent as Basic; URL and repr show neither."""
    destination = Destination.from_url("http://me:p%40ss@host:8000/v1")
    expected = base64.b64encode(b"me:p@ss").decode()
    assert destination.request_headers()["Authorization"] == f"Basic {expected}"
    assert destination.url == "http://host:8000/v1"
    assert {"p@ss", expected} <= set(destination.secrets)
    assert "p@ss" not in repr(destination)
    assert expected not in repr(destination)


def test_api_key_wins_over_user_info_with_a_notice() -> None:
    """Both given: the key is sent, the user is told, and both stay secret."""
    destination = Destination.from_url("http://me:pass@host", api_key="sk-123")
    assert destination.request_headers()["Authorization"] == "Bearer sk-123"
    assert len(destination.notices) == 1
    assert {"sk-123", "pass"} <= set(destination.secrets)


def test_an_authorization_header_wins_over_the_key() -> None:
    """What the user wrote as a header is what is sent; its credential is a secret too."""
    destination = Destination.from_url("http://host", api_key="sk-123", headers={"authorization": "Token abcd"})
    sent = {name.lower(): value for name, value in destination.request_headers().items()}
    assert sent["authorization"] == "Token abcd"
    assert destination.notices
    assert {"Token abcd", "abcd"} <= set(destination.secrets)


def test_headers_replace_ours_whatever_their_case() -> None:
    """A given `user-agent` replaces the default and appears once; compression is not asked for."""
    headers = Destination.from_url("http://host", headers={"user-agent": "me", "X-Team": "a"}).request_headers()
    assert [value for name, value in headers.items() if name.lower() == "user-agent"] == ["me"]
    assert headers["X-Team"] == "a"
    assert headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-A", "one\r\nX-B: two"),
        ("X-A", "one\nX-B: two"),
        ("X-A", "nul\0"),
        ("X-A", "€uro"),
        ("X A", "v"),
        ("X-A:", "v"),
        ("", "v"),
        ("Content-Length", "3"),
        ("Transfer-Encoding", "chunked"),
        ("x-request-id", "mine"),
    ],
)
def test_a_header_that_could_break_a_request_is_refused(name: str, value: str) -> None:
    """Line breaks, bad names, and what loadgen sets itself are ConfigErrors naming the header but not its value."""
    with pytest.raises(ConfigError, match="header") as caught:
        Destination.from_url("http://host", headers={name: value})
    assert "two" not in str(caught.value)


@pytest.mark.parametrize("key", ["", " ", "sk\n", "sk\r\nX: y", "sk-é"])
def test_an_api_key_that_no_header_can_hold_is_refused(key: str) -> None:
    """A key with a line break (a file's last newline) is refused without being shown."""
    with pytest.raises(ConfigError, match="API key") as caught:
        Destination.from_url("http://host", api_key=key)
    assert "X: y" not in str(caught.value)


def test_unverified_tls_is_noted() -> None:
    """Switching verification off leaves a notice for the report."""
    assert Destination.from_url("https://host", insecure=True).notices
    assert not Destination.from_url("https://host").notices


def test_tls_files_that_cannot_be_used_are_named(tmp_path) -> None:
    """A missing or malformed CA or certificate file is a ConfigError that names it."""
    bad = tmp_path / "bad.pem"
    bad.write_text("no certificate")
    for options in ({"ca_file": str(bad)}, {"ca_file": str(tmp_path / "none.pem")}, {"client_cert": str(bad)}):
        with pytest.raises(ConfigError, match=r"(bad|none)\.pem"):
            Destination.from_url("https://host", **options).ssl_context()
    assert Destination.from_url("http://host", ca_file=str(bad)).ssl_context() is None


@pytest.mark.parametrize("route", ["/v1/chat/completions", "/v1/completions/", "/api/v1/responses"])
def test_the_address_of_a_route_is_not_a_base_url(route: str) -> None:
    """Pasting the whole address of a route is said, with what to leave off."""
    with pytest.raises(ConfigError, match="which --endpoint chooses"):
        Destination.from_url(f"http://127.0.0.1:8000{route}")
