"""The service, Locust and their keys in docker-compose.yml, and who watches them."""

import re
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from loadgen.options.locust import LocustOptions
from loadgen.options.resolve import resolve
from loadgen.options.serve import ServeOptions
from loadgen.service.admission.admit import experiment_of, options_of
from loadgen.service.wire.schedules import ScheduleRequest
from tests.deploy.compose import MAIN, ROOT, all_services, services

POSTGRES = ROOT / "compose.postgres.yml"


def servers_on_gpus() -> list[str]:
    """All that are not simulated."""
    return [name for name in all_services() if re.match(r"vllm-|gpu\d+-", name)]


@pytest.mark.parametrize(
    ("name", "options"), [("service", ServeOptions), ("locust-master", LocustOptions), ("locust-worker", LocustOptions)]
)
def test_a_command_is_read(name: str, options: type[BaseModel]) -> None:
    """Its options, and those of its environment with the override, without a complaint."""
    service = services("*", files=(MAIN, POSTGRES))[name]
    given: dict[str, Any] = {}
    for word in service["command"][1:]:
        flag, equals, value = word.removeprefix("--").partition("=")
        given.setdefault(flag.replace("-", "_"), []).append(value if equals else "true")
    single = {key: values[0] if len(values) == 1 else values for key, values in given.items()}
    found = resolve(options, single, environment=service.get("environment", {}))
    if isinstance(found, ServeOptions):
        assert str(found.database_file) == "/keys/database/url"
        assert found.listens_beyond


def mounts(service: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    """Volumes of a service by their place: the name, and whether it may write."""
    volumes = [each for each in service.get("volumes", ()) if each["type"] == "volume"]
    return {each["target"]: (each["source"], not each.get("read_only", False)) for each in volumes}


def test_a_key_is_where_it_is_needed_and_nowhere_else() -> None:
    """Each on a volume of its own: one container writes it, those that need it read it, by the same path."""
    readers = {
        "/keys/service": {"service", "metrics-key", "first-load"},
        "/keys/metrics": {"prometheus"},
        "/keys/locust": {"locust-master"},
        "/keys/database": {"service", "postgres"},
    }
    found = services("*", files=(MAIN, POSTGRES))
    for place, expected in readers.items():
        (volume,) = {mounts(each)[place][0] for each in found.values() if place in mounts(each)}
        has = {name: mounts(each)[place][1] for name, each in found.items() if place in mounts(each)}
        assert {name for name, writes in has.items() if not writes} == expected
        (writer,) = has.keys() - expected
        assert writer == ("metrics-key" if place == "/keys/metrics" else "keys")
        others = [target for each in found.values() for target, (name, _) in mounts(each).items() if name == volume]
        assert set(others) == {place}


def test_who_needs_a_key_waits_for_it() -> None:
    """Until the container that makes it has ended, by itself or through another that waits."""
    found = services("*", files=(MAIN, POSTGRES))
    for name in ("service", "locust-master", "postgres"):
        assert found[name]["depends_on"]["keys"]["condition"] == "service_completed_successfully"
    for name in ("metrics-key", "first-load"):
        assert found[name]["depends_on"]["service"]["condition"] == "service_healthy"


def test_the_service_reaches_the_servers_of_compose_and_nothing_else() -> None:
    """By its list of hosts, and simulated ones by name too."""
    command = all_services()["service"]["command"]
    targets = dict(word.split("=", 2)[1:] for word in command if word.startswith("--target="))
    assert targets == {name: f"http://{name}:8000" for name in all_services() if name.startswith("sim-")}
    hosts = {host for word in command if word.startswith("--allow-host=") for host in word.split("=")[1].split(",")}
    assert hosts == {f"{name}:8000" for name in servers_on_gpus()}


def test_what_the_first_load_asks_for_is_taken() -> None:
    """Each schedule is one that the service reads, for servers that first-load waits for."""
    files = sorted((ROOT / "deploy" / "compose" / "schedules").glob("*.json"))
    assert files
    for file in files:
        body = ScheduleRequest.model_validate_json(file.read_text(encoding="utf-8"))
        request = body.request
        if request.kind == "experiment":
            arms = experiment_of(request.options, ROOT).arms
            assert len(arms) > 1
            names = {str(arm.url).removeprefix("http://").removesuffix(":8000") for arm in arms.values()}
        else:
            assert request.target is not None
            assert request.target.profile is not None
            names = {request.target.profile}
            options_of(request.kind, request.options, f"http://{request.target.profile}:8000")
        assert names <= set(all_services()["first-load"]["depends_on"])


def test_prometheus_looks_for_those_who_measure() -> None:
    """The service with the key that it was given, Locust's master where it serves metrics, and the command line."""
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    (service,) = jobs["loadgen-service"]["dns_sd_configs"]
    assert service["names"] == ["service"]
    assert service["port"] == all_services()["service"]["ports"][0]["target"]
    key = jobs["loadgen-service"]["authorization"]["credentials_file"]
    assert key == all_services()["metrics-key"]["command"][-1]
    (loads,) = jobs["loadgen"]["dns_sd_configs"]
    assert set(loads["names"]) == {"loadgen", "locust-master"}
    assert f"--prometheus-port=0.0.0.0:{loads['port']}" in all_services()["locust-master"]["command"]


def test_the_database_is_where_the_service_looks() -> None:
    """Its URL and its password are made by the same container; the override changes nothing else of the service."""
    plain, other = all_services()["service"], services("sim", files=(MAIN, POSTGRES))["service"]
    made = services("sim", files=(MAIN, POSTGRES))["keys"]["command"]
    assert other["environment"] == {"LOADGEN_DATABASE_FILE": "/keys/database/url"}
    assert {"/keys/database/url", "/keys/database/password"} <= set(made)
    assert set(all_services()["keys"]["command"]) < set(made)
    assert other["command"] == plain["command"]
