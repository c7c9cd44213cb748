"""YAML files of people: what is no value of its kind, stands for too much, or would take the terminal."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from loadgen.adapters.yaml_file import load_yaml, validated
from loadgen.core.errors import ConfigError

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))


class Server(BaseModel):
    """Some model of a file."""

    env: dict[str, str]


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("9" * 5000, "a number of more than 64 digits"),
        ("0x" + "f" * 5000, "a number of more than 64 digits"),
        ("2020-13-45", "this is no timestamp"),
        ("!!bool x", "this is no bool"),
        ("!!int x", "this is no int"),
        ("!!int ''", "this is no int"),
        ("!!float x", "this is no float"),
        ("!!timestamp x", "this is no timestamp"),
        ("0x_", "this is no int"),
    ],
)
def test_what_is_no_value_of_its_kind_has_a_line(tmp_path: Path, value: str, said: str) -> None:
    """At any depth, and whatever the reader makes of it."""
    for text in (f"a: 1\nb: {value}\n", f"a:\n- {{b: [{value}]}}\n"):
        with pytest.raises(ConfigError, match=rf"mine\.yaml:2: not YAML: {said}$"):
            load_yaml(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, r"mine\.yaml:6: expected at most 100000 values, aliases written out"),
        ("a: 1\nb: &b [1, *b]\n", r"mine\.yaml:2: an alias stands for what it is in"),
        ("a: 1\nb: &b {c: *b}\n", r"mine\.yaml:2: an alias stands for what it is in"),
    ],
)
def test_aliases_stand_for_what_can_be_held(tmp_path: Path, text: str, said: str) -> None:
    """A few lines of them could stand for more than any memory holds."""
    with pytest.raises(ConfigError, match=said):
        load_yaml(written(tmp_path, text))


def test_a_file_that_nobody_wrote_is_not_read(tmp_path: Path) -> None:
    """Not even to its end, which it may not have."""
    for path in (written(tmp_path, f"a: 1\n{'#' * 2**20}\n"), Path("/dev/zero")):
        with pytest.raises(ConfigError, match=f"{path}: expected at most 1048576 bytes"):
            load_yaml(path)


def test_what_is_written_once_and_meant_twice(tmp_path: Path) -> None:
    """An alias is what it stands for, and a key beside `<<` goes before what it brings."""
    found = load_yaml(written(tmp_path, "a: &a {x: 1, y: 2}\nb: *a\nc:\n  <<: *a\n  y: 3\n"))
    assert (found.values["b"], found.values["c"]) == ({"x": 1, "y": 2}, {"x": 1, "y": 3})
    assert found.line_of("c", "y") == 5


@pytest.mark.parametrize(("first", "second"), [("1", "1"), ("1", "1.0"), ("1", "'1'"), ("1.5", "1.5")])
def test_a_key_that_stands_twice(tmp_path: Path, first: str, second: str) -> None:
    """Also as the same number in another spelling, which a mapping would keep once."""
    with pytest.raises(ConfigError, match=rf"mine\.yaml:3: a\.{first} stands twice, first in line 2"):
        load_yaml(written(tmp_path, f"a:\n  {first}: 12\n  {second}: 13\n"))


def test_what_a_file_holds_does_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    """Control characters are shown as escapes, secrets not at all, and long values by their beginning."""
    hostile = written(tmp_path, 'env: {"\\e]0;owned\\a": [1]}\n')
    with pytest.raises(ConfigError, match=r"mine\.yaml:1: env\.\\x1b\]0;owned\\x07: ") as raised:
        validated(load_yaml(hostile), Server)
    assert str(raised.value).isprintable()
    for env in ("[hf_abcdefghijklmnop1234]", "{hf_abcdefghijklmnop1234: [1]}", "{TOKEN: [hunter2-hunter2]}"):
        with pytest.raises(ConfigError) as raised:
            validated(load_yaml(written(tmp_path, f"env: {env}\n")), Server)
        assert "[secret]" in str(raised.value)
    with pytest.raises(ConfigError) as raised:
        validated(load_yaml(written(tmp_path, f"env: {'x' * 5000}\n")), Server)
    assert len(str(raised.value)) < 500
