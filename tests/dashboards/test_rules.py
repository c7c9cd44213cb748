"""Rules by Prometheus' own tool: they are well-formed, and do what their unit tests say."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.dashboards.written import PROMETHEUS, RULE_FILES, rules
from tests.needs import program

UNIT_TESTS = sorted((PROMETHEUS / "tests").glob("*.yml"))


def promtool(*arguments: str) -> str:
    """What it says. Raises AssertionError with that when it objects."""
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_configuration_and_rules_are_well_formed(tmp_path: Path) -> None:
    """The configuration finds all rule files. The key of the service that it names is in the container alone."""
    folder, key = tmp_path / "prometheus", tmp_path / "key"
    shutil.copytree(PROMETHEUS, folder)
    key.write_text("of a test", encoding="utf-8")
    config = folder / "prometheus.yml"
    text = config.read_text(encoding="utf-8")
    assert "/keys/metrics/key" in text
    config.write_text(text.replace("/keys/metrics/key", str(key)), encoding="utf-8")
    said = promtool("check", "config", str(config))
    assert all(path.name in said for path in RULE_FILES)


@pytest.mark.parametrize("path", UNIT_TESTS, ids=lambda path: path.stem)
def test_rules_do_what_their_unit_tests_say(path: str) -> None:
    """Each alert where it has to fire, and where it must not."""
    promtool("test", "rules", str(path))


def test_every_rule_has_a_unit_test() -> None:
    """By its name."""
    tested = " ".join(path.read_text(encoding="utf-8") for path in UNIT_TESTS)
    assert [rule for rule in rules() if (rule.get("record") or rule["alert"]) not in tested] == []


def test_alerts_tell_people_what_is_wrong() -> None:
    """A summary, a description and a severity each."""
    for rule in rules():
        if "alert" in rule:
            assert rule["annotations"].keys() == {"summary", "description"}
            assert rule["labels"]["severity"] in ("warning", "critical")


def test_what_stands_for_a_short_time_is_looked_at_often() -> None:
    """Only what looks back over weeks has an interval of its own: a page may be gone before a longer one is over."""
    groups = [group for path in RULE_FILES for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]]
    seldom = [rule for group in groups if "interval" in group for rule in group["rules"]]
    assert seldom
    assert all("28d" in rule["expr"] for rule in seldom)
