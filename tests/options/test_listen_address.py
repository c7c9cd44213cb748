"""Where to listen, as people write it."""

import pytest

from loadgen.options.fields import parse_listen


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("9464", ("127.0.0.1", 9464)),
        (":9464", ("127.0.0.1", 9464)),
        ("0", ("127.0.0.1", 0)),
        ("0.0.0.0:9464", ("0.0.0.0", 9464)),
        ("[::1]:9464", ("::1", 9464)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_an_address_is_of_this_machine_unless_it_says_otherwise(text: str, meant: tuple[str, int]) -> None:
    """A port alone is on the loopback address."""
    assert parse_listen(text) == meant


@pytest.mark.parametrize("text", ["", "http", "-1", "65536", "127.0.0.1", "127.0.0.1:", "9464/metrics", "²"])
def test_anything_else_is_refused(text: str) -> None:
    """With what was expected and what was given."""
    with pytest.raises(ValueError, match="expected PORT or ADDRESS:PORT"):
        parse_listen(text)
