"""Server profiles: reading them, and what a wrong one is told."""

from pathlib import Path

import pytest

from loadgen.adapters.profiles.files import load_profile
from loadgen.adapters.profiles.model import DraftMethod
from loadgen.core.errors import ConfigError

OURS = sorted((Path(__file__).parents[2] / "server_profiles").glob("*.yaml"))
WHOLE = """\
name: mine
description: one of ours
engine: vllm
model: meta-llama/Llama-3.1-8B-Instruct
speculation:
  method: ngram
  draft_tokens: 5
  config: {prompt_lookup_max: 7}
simulator:
  gpu: h100
"""


def profile_of(text: str, folder: Path) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


def test_a_whole_profile(tmp_path: Path) -> None:
    """Every section; the engine's own keys are kept as they are."""
    found = load_profile(profile_of(WHOLE, tmp_path))
    assert found.profile.engine == "vllm"
    assert found.profile.speculation is not None
    assert (found.profile.speculation.method, found.profile.speculation.draft_tokens) == (DraftMethod.NGRAM, 5)
    assert found.profile.speculation.config == {"prompt_lookup_max": 7}
    assert found.profile.simulator == {"gpu": "h100"}
    assert found.file.where("simulator", "gpu") == f"{tmp_path}/mine.yaml:10: simulator.gpu"


def test_a_baseline_has_no_speculation(tmp_path: Path) -> None:
    """The section is left out, and so may be the simulator's."""
    profile = load_profile(profile_of("".join(WHOLE.splitlines(keepends=True)[:4]), tmp_path)).profile
    assert (profile.speculation, profile.simulator, profile.method_name) == (None, {}, "none")


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ("engine: vllm", "engine: tgi", r"mine\.yaml:3: engine: input should be 'vllm', 'sglang', .*, got 'tgi'"),
        ("engine: vllm\n", "", r"mine\.yaml:1: engine: this field is needed"),
        ("  draft_tokens: 5", "  draft_tokens: 0", r"mine\.yaml:7: speculation\.draft_tokens: .*greater than 0, got 0"),
        ("  draft_tokens: 5\n", "", r"mine\.yaml:5: speculation\.draft_tokens: this field is needed"),
        ("  method: ngram", "  metod: ngram", r"mine\.yaml:6: speculation\.metod: no such field; did you mean method"),
        ("  method: ngram", "  method: magic", r"mine\.yaml:6: speculation\.method: input should be 'ngram'.*'magic'"),
        ("simulator:", "simulation:", r"mine\.yaml:9: simulation: no such field; did you mean simulator"),
        ("engine: vllm", "engine: vllm\nquux: 1", r"mine\.yaml:4: quux: no such field; expected one of name, desc"),
        ("name: mine", "name: yours", r"mine\.yaml:1: name: expected the name of the file, 'mine', got 'yours'"),
        ("model: meta", "name: mine\nmodel: meta", r"mine\.yaml:4: name stands twice, first in line 1"),
        ("  gpu: h100", "  gpu: h100\n  gpu: l4", r"mine\.yaml:11: simulator\.gpu stands twice, first in line 10"),
        ("  gpu: h100", f"  gpu: {'[' * 5000}", "nested too deeply to be read"),
        ("  gpu: h100", "  gpu: [h100", r"mine\.yaml:11: not YAML"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path: Path, line: str, instead: str, message: str) -> None:
    """File, line, field, and what was expected there."""
    assert line in WHOLE
    with pytest.raises(ConfigError, match=message):
        load_profile(profile_of(WHOLE.replace(line, instead), tmp_path))


def test_a_profile_that_is_not_there(tmp_path: Path) -> None:
    """The file is named, with the reason; an empty one lacks its fields."""
    with pytest.raises(ConfigError, match=r"mine\.yaml: cannot be read: No such file"):
        load_profile(tmp_path / "mine.yaml")
    with pytest.raises(ConfigError, match=r"mine\.yaml:1: name: this field is needed; .*:1: description"):
        load_profile(profile_of("", tmp_path))


def test_an_alias_is_read_and_one_of_itself_ends(tmp_path: Path) -> None:
    """What is written once may be meant twice; a list that holds itself is no endless walk."""
    aliased = WHOLE.replace("  gpu: h100", "  gpu: &gpu h100\n  fault: [*gpu]")
    assert load_profile(profile_of(aliased, tmp_path)).profile.simulator["fault"] == ["h100"]
    endless = WHOLE.replace("  gpu: h100", "  fault: &all [*all]")
    assert "fault" in load_profile(profile_of(endless, tmp_path)).profile.simulator


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_ours_can_be_read(path: Path) -> None:
    """Each profile that comes with the project."""
    assert load_profile(path).profile.name == path.stem


def test_there_are_ours() -> None:
    """A baseline and a profile for each way of drafting that the simulator's first model has, and one with its own."""
    methods = {load_profile(path).profile.method_name for path in OURS if path.stem.startswith("sim-")}
    assert methods >= {"none", "ngram", "draft_model", "eagle3", "mtp", "suffix"}
