"""What docker-compose.yml and its overrides say, as the real Compose resolves them."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadgen.wiring.profiles import Form, rendered
from tests.deploy.compose import MAIN, ROOT, all_services, compose, instructions, project, services

ADMIN, CPU, POSTGRES = (ROOT / f"compose.{name}.yml" for name in ("admin", "cpu", "postgres"))
METHODS = ("ngram", "ngram-k5", "draft-model", "eagle", "eagle3", "eagle3-dynamic", "suffix", "mtp")
OURS = ("sim", "service", "locust", "monitoring", "cli")
PROFILES = (*OURS, "all-gpus", "baseline", "suffix-baseline", "mtp-baseline", *METHODS)
OVERRIDES = [(MAIN,), (MAIN, ADMIN), (MAIN, CPU), (MAIN, POSTGRES), (MAIN, CPU, ADMIN, POSTGRES)]
ADDED = {POSTGRES: {"postgres"}}
"""Services that an override adds."""
BUILT_HERE = {"loadgen:local", "loadgen-simulator:local", "loadgen-service:local", "loadgen-locust:local"}
OF_COMPOSE = {"profiles", "labels"}
"""What a service has beside what its profile says: when it starts, and which profile that is."""


def alone() -> list[str]:
    """Services that have a GPU and port 8000 to themselves."""
    return [name for name in all_services() if name.startswith("vllm-")]


def side_by_side() -> list[str]:
    """Services with a GPU and a port of their own."""
    return [name for name in all_services() if re.match(r"gpu\d+-", name)]


def test_the_profiles() -> None:
    """One for no GPU, one a speculative method with its baseline, one for several GPUs, and what goes with them."""
    assert sorted(compose("config", "--profiles").split()) == sorted(PROFILES)


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_resolves(profile: str) -> None:
    """To the services that this profile is for, and no other."""
    found = services(profile)
    assert set(found) == {name for name, service in all_services().items() if profile in service["profiles"]} != set()


@pytest.mark.parametrize("files", OVERRIDES, ids=lambda files: "+".join(file.name for file in files))
def test_every_override_resolves(files: tuple[Path, ...]) -> None:
    """With all profiles at once, and it makes no service of its own but those that are known."""
    added = set().union(*(ADDED.get(file, set()) for file in files))
    assert set(services("*", files=files)) == set(all_services()) | added


def test_nothing_starts_without_a_profile() -> None:
    """A plain `up` on a machine with a GPU takes nothing of it."""
    assert services() == {}


def as_rendered(files: tuple[Path, ...], names: list[str], tmp_path: Path) -> None:
    """Asserts that services are what `loadgen profiles render` gives for the profiles that their labels name."""
    found = {name: service for name, service in services("*", files=files).items() if name in names}
    wanted = {name: _rendered(service) for name, service in found.items()}
    file = tmp_path / "rendered.yml"
    file.write_text(yaml.safe_dump({"services": wanted, "volumes": {"model-cache": None}}), encoding="utf-8")
    expected = services(files=(file,))
    for name, service in found.items():
        assert {key: value for key, value in service.items() if key not in OF_COMPOSE} == expected[name], name


def _rendered(service: dict[str, Any]) -> Any:
    """The service of its profile, on the same port and, where it names one, on the same GPU."""
    name = service["labels"]["loadgen.profile"]
    port = int(service["ports"][0]["published"])
    devices = service.get("deploy", {"resources": {"reservations": {"devices": [{}]}}})
    chosen = ",".join(devices["resources"]["reservations"]["devices"][0].get("device_ids", ()))
    text = rendered(name, Form.COMPOSE, [ROOT / "server_profiles"], port=port, devices=chosen)
    return yaml.safe_load(text)["services"][name]


def test_servers_are_what_their_profiles_say(tmp_path: Path) -> None:
    """All of them, alone on a GPU and side by side."""
    assert len(alone()) == 11
    assert len(side_by_side()) == 7
    as_rendered((MAIN,), alone() + side_by_side(), tmp_path)


def test_servers_on_a_cpu_are_what_their_profiles_say(tmp_path: Path) -> None:
    """The override takes GPU, user and shared caches away, and says which profiles the services are then."""
    files = (MAIN, CPU)
    cpu = [name for name in alone() if "-cpu-" in services("*", files=files)[name]["labels"]["loadgen.profile"]]
    assert cpu == ["vllm-baseline", "vllm-ngram"]
    as_rendered(files, cpu, tmp_path)


@pytest.mark.parametrize("files", [(MAIN,), (MAIN, CPU)], ids=["gpu", "cpu"])
def test_weights_are_fetched_once(files: tuple[Path, ...]) -> None:
    """The volume is that of `loadgen profiles render`, so that experiments find what these services fetched."""
    name = services("*", files=files)["vllm-baseline"]["labels"]["loadgen.profile"]
    file = yaml.safe_load(rendered(name, Form.COMPOSE, [ROOT / "server_profiles"]))
    assert project("*", files=files)["volumes"]["model-cache"] == file["volumes"]["model-cache"]


@pytest.mark.parametrize("method", METHODS)
def test_an_arm_differs_from_its_baseline_in_speculation_alone(method: str) -> None:
    """Same image, environment, caches and options: only the last option is more."""
    own = f"vllm-{method}-baseline"
    arm, plain = (
        {key: value for key, value in all_services()[each].items() if key not in OF_COMPOSE}
        for each in (f"vllm-{method}", own if own in all_services() else "vllm-baseline")
    )
    *shared, option, config = arm.pop("command")
    assert (shared, option) == (plain.pop("command"), "--speculative-config")
    assert config.startswith('{"method":')
    assert arm == plain


def test_side_by_side_nobody_shares_a_gpu_or_a_port() -> None:
    """Each service has both to itself, and is otherwise the one that runs alone."""
    seen = set()
    for name in side_by_side():
        service = dict(all_services()[name])
        (device,) = service.pop("deploy")["resources"]["reservations"]["devices"]
        (port,) = service.pop("ports")
        seen.add((*device["device_ids"], port["published"]))
        alone = dict(all_services()["vllm-" + name.partition("-")[2]])
        del alone["deploy"], alone["ports"]
        assert service | {"profiles": None} == alone | {"profiles": None}
    assert seen == {(str(gpu), str(8000 + gpu)) for gpu in range(len(side_by_side()))}


@pytest.mark.parametrize("files", OVERRIDES, ids=lambda files: "+".join(file.name for file in files))
def test_nothing_is_open_to_the_network(files: tuple[Path, ...]) -> None:
    """Ports are published on the loopback address, and no container shares the host's network."""
    for name, service in services("*", files=files).items():
        assert {port["host_ip"] for port in service.get("ports", ())} <= {"127.0.0.1"}, name
        assert "network_mode" not in service, name


def test_alone_or_together_no_two_services_want_one_port() -> None:
    """Whatever starts together can be published together."""
    for wanted in ({"all-gpus", "sim", "monitoring"}, *({name, "sim"} for name in PROFILES)):
        together = [service for service in all_services().values() if wanted & set(service["profiles"])]
        ports = [port["published"] for service in together for port in service.get("ports", ())]
        assert len(ports) == len(set(ports)), wanted


def test_a_container_may_little() -> None:
    """No root, no capabilities, no new ones, nothing of the host's; images are pinned; somebody tells of its health."""
    for name, service in services("*", files=(MAIN, POSTGRES)).items():
        image = service["image"]
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not {"privileged", "pid", "ipc", "cap_add"} & set(service), name
        assert all(volume["type"] == "volume" or volume["read_only"] for volume in service.get("volumes", ())), name
        assert image in BUILT_HERE or re.search(r":v?\d+\.\d+(\.\d+|-\w+@)", image), name
        if image.startswith(("prom/", "grafana/", "postgres:")):
            assert "@sha256:" in image, name  # and its user is not root by itself
        elif image not in BUILT_HERE or "user" in service:
            assert service["user"].partition(":")[0] not in ("", "0", "root"), name
        assert "healthcheck" in service or image in BUILT_HERE, name
        assert service["init"] is True, name


def test_what_is_built_here_is_asked_of_no_registry() -> None:
    """Compose would look for it there before it builds it; what is published is fetched where it is missing."""
    for files in ((MAIN, POSTGRES), (MAIN, CPU)):
        for name, service in services("*", files=files).items():
            assert service.get("pull_policy") == ("never" if "build" in service else None), name


def test_no_log_fills_the_disk() -> None:
    """Each is cut off at the front, whatever Docker does by itself."""
    for name, service in services("*", files=(MAIN, POSTGRES)).items():
        assert service["logging"] == {"driver": "json-file", "options": {"max-file": "5", "max-size": "20m"}}, name


def test_what_is_mounted_from_here_is_here() -> None:
    """Docker would make an empty folder of a path that is missing; and a script that a command names is in it."""
    for service in all_services().values():
        for volume in service.get("volumes", ()):
            assert volume["type"] == "volume" or Path(volume["source"]).is_dir()
        words = [*(service.get("entrypoint") or ()), *(service.get("command") or ())]
        scripts = [ROOT / "deploy" / word.removeprefix("/") for word in words if word.startswith("/compose/")]
        assert all(script.exists() for script in scripts), scripts


def test_secrets_come_from_outside() -> None:
    """The token of the environment reaches servers and nobody else, and nothing asks for it."""
    without, given = services("*"), services("*", HF_TOKEN="hf_of_a_test")
    for name in without:
        has = given[name].get("environment", {}).get("HF_TOKEN")
        assert has == ("hf_of_a_test" if name in alone() + side_by_side() else None)
        assert without[name].get("environment", {}).get("HF_TOKEN") == (None if has is None else "")
    assert "hf_of_a_test" not in str(services("sim", HF_TOKEN="hf_of_a_test"))


def test_a_variable_that_has_to_be_set_ends_the_start(tmp_path: Path) -> None:
    """Of a profile of one's own; by itself Compose would go on with an empty one."""
    text = (ROOT / "server_profiles" / "qwen3-8b-baseline.yaml").read_text(encoding="utf-8")
    mine = text.replace("name: qwen3-8b-baseline", "name: mine").replace("${HF_TOKEN:-}", "${HF_TOKEN}")
    (tmp_path / "mine.yaml").write_text(mine, encoding="utf-8")
    file = tmp_path / "rendered.yml"
    file.write_text(rendered("mine", Form.COMPOSE, [tmp_path]), encoding="utf-8")
    assert project(files=(file,), HF_TOKEN="x")["name"] == "mine"
    with pytest.raises(AssertionError, match="required variable HF_TOKEN is missing a value"):
        compose("config", files=(file,))
    assert services(files=(file,), HF_TOKEN="hf_of_a_test")["mine"]["environment"]["HF_TOKEN"] == "hf_of_a_test"


def test_the_example_of_settings_names_all_of_them() -> None:
    """Those that Compose finds in the files, and the one that a secret is taken from."""
    named = set(re.findall(r"^(\w+)=", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE))
    table = compose("config", "--variables", files=(MAIN, CPU, ADMIN, POSTGRES)).splitlines()[1:]
    secrets = project("sim", files=(MAIN, ADMIN))["secrets"].values()
    assert named == {row.split()[0] for row in table} | {secret["environment"] for secret in secrets}


def test_grafana_has_no_administrator_unless_one_is_asked_for() -> None:
    """Anonymous people look; with the override there is an administrator by a secret, which is no variable."""
    plain = services("sim")["grafana"]["environment"]
    assert (plain["GF_AUTH_ANONYMOUS_ENABLED"], plain["GF_AUTH_ANONYMOUS_ORG_ROLE"]) == ("true", "Viewer")
    assert plain["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert not any("PASSWORD" in name for name in plain)
    admin = services("sim", files=(MAIN, ADMIN), GRAFANA_ADMIN_PASSWORD="of-a-test")["grafana"]
    assert admin["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"] == admin["secrets"][0]["target"]
    assert "of-a-test" not in str(admin)


def test_an_empty_password_makes_no_administrator() -> None:
    """Grafana would take its own, which everybody knows. The settings' example has it empty."""
    with pytest.raises(AssertionError, match='secret "grafana_admin_password" must declare'):
        compose("config", files=(MAIN, ADMIN), GRAFANA_ADMIN_PASSWORD="")


def test_prometheus_looks_for_every_server() -> None:
    """By the names that Compose gives them, at the port they listen on; each becomes a target with its label."""
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    (discovery,) = next(job for job in config["scrape_configs"] if job["job_name"] == "vllm")["dns_sd_configs"]
    servers = {name for name in all_services() if name.startswith(("sim-", "vllm-", "gpu"))}
    assert set(discovery["names"]) == servers
    assert {port["target"] for name in servers for port in all_services()[name]["ports"]} == {discovery["port"]}


def test_what_is_built_here_has_a_target() -> None:
    """A stage of the Dockerfile by that name."""
    stages = {rest.split()[-1] for name, rest in instructions() if name == "FROM"}
    targets = {service["build"]["target"] for service in all_services().values() if service["image"] in BUILT_HERE}
    assert targets <= stages
