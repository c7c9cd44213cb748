"""The end of a server's log, as people see it."""

from pathlib import Path

from loadgen.adapters.launch.log import tail


def test_a_log_has_no_say_in_the_terminal(tmp_path: Path) -> None:
    """Colours are left out, other control characters are shown as escapes, and empty lines are none."""
    path = tmp_path / "log"
    path.write_bytes(b"\x1b[36mINFO\x1b[0m ready\n\x1b[0m\n\x1b]0;owned\x07\n\tat line 3\n\n")
    assert tail(path) == ("INFO ready", "\\x1b]0;owned\\x07", "\\tat line 3")
    assert tail(path, lines=1) == ("\\tat line 3",)
    assert tail(tmp_path / "none") == ()
