"""What the documents on containers tell people to do can be done."""

import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from loadgen.options.experiment import load_experiment
from tests.deploy.compose import MAIN, ROOT, all_services, compose, project

DOCS = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("compose", "gpu", "kubernetes")}


def lines(start: str) -> list[str]:
    """The commands of all documents that begin so."""
    found = [line for text in DOCS.values() for line in re.findall(rf"^ *({start} .*?)(?: +#.*)?$", text, re.MULTILINE)]
    assert found
    return found


def test_commands_of_compose() -> None:
    """Their files and profiles are there, and services by name."""
    seen = 0
    for line in lines("docker compose"):
        words = shlex.split(line)[2:]
        files = tuple(ROOT / file for flag, file in pairwise(words) if flag == "-f")
        profiles = [name for flag, name in pairwise(words) if flag == "--profile"]
        if profiles:
            known = {*compose("config", "--profiles", files=files or (MAIN,)).split(), "*"}
            assert set(profiles) <= known, line
            seen += 1
        named = {word for word in words if re.fullmatch(r"(sim|vllm|gpu\d)-.*", word)}
        assert named <= set(all_services()), line
    assert seen >= 8


def test_keys_are_where_people_are_told_to_look() -> None:
    """In files that the container for keys makes, on a volume of the container that is named."""
    seen = set()
    for line in lines("docker compose exec"):
        name, program, path = shlex.split(line)[3:]
        assert program == "cat"
        assert path in all_services()["keys"]["command"]
        assert Path(path).parent in {Path(volume["target"]) for volume in all_services()[name]["volumes"]}
        seen.add(name)
    assert seen == {"service", "locust-master"}


@pytest.mark.parametrize("name", DOCS)
def test_what_is_linked_is_there(name: str) -> None:
    """Other documents, and files by their path."""
    for target in re.findall(r"\]\(([^)#:]+)", DOCS[name]):
        assert (ROOT / "docs" / target).is_file(), target
    for path in re.findall(r"`((?:deploy|tools|examples|server_profiles)/[\w./-]+)`", DOCS[name]):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"(?<!`)\b((?:deploy|examples)/[\w./-]+\.\w+)", DOCS[name]):
        assert (ROOT / path).is_file(), path


def test_a_port_is_moved_as_it_is_told(tmp_path: Path) -> None:
    """To the one that is shown, and nothing else changes."""
    (text,) = re.findall(r"```yaml\n(.*?)```", DOCS["compose"], re.DOTALL)
    file = tmp_path / "docker-compose.override.yml"
    file.write_text(text, encoding="utf-8")
    moved = project("*", files=(MAIN, file))["services"]
    (name,) = yaml.safe_load(text.replace("!override ", ""))["services"]
    (before,), (after,) = all_services()[name]["ports"], moved[name]["ports"]
    assert after == before | {"published": after["published"]} != before
    assert moved == {**all_services(), name: all_services()[name] | {"ports": [after]}}


def test_the_table_of_services() -> None:
    """Each service stands in it with its ports."""
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \| ([^|]*) \| [^|]* \|$", DOCS["compose"], re.MULTILINE)
    told = {}
    for profiles, services, ports in rows:
        for service in re.findall(r"`([\w-]+)`", services):
            told[service] = (set(re.findall(r"`([\w-]+)`", profiles)), ports)
    first, last = (re.fullmatch(r"gpu(\d)-.*", name) for name in ("gpu0-baseline", "gpu6-eagle3-dynamic"))
    assert first is not None
    assert last is not None
    for name, service in all_services().items():
        if re.match(r"gpu[1-5]-", name):
            continue  # between the two that are named
        profiles, ports = told.pop(name)
        assert set(service["profiles"]) <= profiles, name
        for port in service.get("ports", ()):
            numbers = [int(number) for number in re.findall(r"\d+", ports)]
            assert min(numbers) <= int(port["published"]) <= max(numbers), name
    assert not told


def test_the_experiment_of_the_gpu_host(tmp_path: Path) -> None:
    """It is one that loadgen reads."""
    (text,) = re.findall(r"```yaml\n(.*?)```", DOCS["gpu"], re.DOTALL)
    file = tmp_path / "comparison.yaml"
    file.write_text(text.replace("examples/prompts.jsonl", str(ROOT / "examples" / "prompts.jsonl")), encoding="utf-8")
    assert set(load_experiment(file).arms) == set(yaml.safe_load(text)["arms"])


@pytest.mark.slow
def test_estimates_are_those_of_the_model() -> None:
    """The script that writes the tables finds nothing to change."""
    line = [sys.executable, ROOT / "tools" / "gpu_estimates.py", "--check"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr
