"""What `docs/profiles.md` says is so."""

import re
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from loadgen.adapters.profiles.model import Arm, DraftMethod, Profile, ProfileSpeculation

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "profiles.md").read_text(encoding="utf-8")
FOLDER = ROOT / "server_profiles"


@pytest.mark.parametrize("section", [Profile, Arm, ProfileSpeculation])
def test_every_field_is_explained(section: type[BaseModel]) -> None:
    """By its name as code."""
    assert [name for name in section.model_fields if f"`{name}`" not in TEXT] == []


def test_every_method_is_named() -> None:
    """In the order of the type."""
    assert ", ".join(f"`{method}`" for method in DraftMethod) in TEXT


def test_every_shipped_profile_is_named_and_no_other() -> None:
    """A name that begins with a dash goes on from the first of its row."""
    named = set()
    for row in re.findall(r"^\| (`[a-z].*?) \| ", TEXT.partition("## The shipped profiles")[2], re.MULTILINE):
        first, *rest = re.findall(r"`([^`]+)`", row)
        family = re.sub(r"-(runner-v1-)?baseline$", "", first)
        named |= {first, *(f"{family}{name}" if name.startswith("-") else name for name in rest)}
    assert named == {path.stem for path in FOLDER.glob("*.yaml")}


def test_the_arm_shown_is_one_of_ours() -> None:
    """And what is shown of its baseline stands in it."""
    baseline, arm = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
    assert arm == yaml.safe_load((FOLDER / f"{arm['name']}.yaml").read_text(encoding="utf-8"))
    ours = yaml.safe_load((FOLDER / f"{baseline['name']}.yaml").read_text(encoding="utf-8"))
    for name, value in baseline.items():
        assert ours[name] == value if not isinstance(value, dict) else value.items() <= ours[name].items()
