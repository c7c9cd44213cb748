"""What docs/simulator.md shows can be done."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from loadgen.options.fields import flag_of
from loadgen.options.resolve import resolve
from loadgen.options.sim import SimOptions
from loadgen.sim.server.faults import FaultKind, parse_faults

ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8")
LINES = re.findall(r"^loadgen sim *(.*?) *(?:#.*)?$", DOC, re.MULTILINE)
FLAGS = {flag_of(name, field): name for name, field in SimOptions.model_fields.items()}
OTHERS = {"--config", "--help", "--no-prefix-caching"}


@pytest.mark.parametrize("line", LINES)
def test_each_example_is_a_server(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its options are read without a complaint."""
    monkeypatch.chdir(ROOT)
    words = shlex.split(line)
    given: dict[str, list[str]] = {}
    for flag, value in zip(words[::2], words[1::2], strict=True):
        given.setdefault(FLAGS[flag], []).append(value)
    options = resolve(SimOptions, {name: v if len(v) > 1 else v[0] for name, v in given.items()}, environment={})
    parse_faults(options.fault)


def test_each_flag_is_there() -> None:
    """No option that is told of is missing."""
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", DOC)) <= FLAGS.keys() | OTHERS
    assert len(LINES) == 6


def test_the_table_of_faults() -> None:
    """Every fault can be given as it stands there, and none is missing."""
    table = DOC.partition("| fault |")[2].partition("\n\n")[0]
    texts = re.findall(r"`([a-z0-9-]+(?:=[^`]*|@[^`]*))`", table)
    for text in texts:
        parse_faults([text])
    assert {re.split("[=@]", text)[0] for text in texts} == {*FaultKind, "slow-start", "restart", "lossy"}


def test_the_profile_is_one_of_ours() -> None:
    """The commented example and the file say the same, but for the key that is empty."""
    shown = yaml.safe_load(DOC.partition("```yaml\n")[2].partition("```")[0])
    assert shown["speculation"].pop("config") == {}
    assert shown == yaml.safe_load((ROOT / "server_profiles" / "sim-eagle3.yaml").read_text(encoding="utf-8"))
