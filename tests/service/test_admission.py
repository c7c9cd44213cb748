"""What a run may not ask for: servers beyond the list, files beyond the folder, variables, more load than allowed."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.options.metrics import MetricsOptions
from loadgen.service.admission.addresses import AllowList, literal_address
from loadgen.service.admission.guard import check_connection
from loadgen.service.jobs.process import child_environment
from tests.service.conftest import Make, a_run, client_of

LOOPBACK = ["loopback"]


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://[fd00:ec2::254]/",
        "http://[fd20:ce::254]/",
        "http://100.100.100.200/",
        "http://192.0.0.192/",
        "http://168.63.129.16/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::]/",
        "http://[2001:0:4136:e378:8000:63bf:5601:5601]/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
        "http://metadata.google.internal/",
        "http://sly.example/",
        "http://0.0.0.0:8000/",
        "http://[::]:8000/",
        "http://[fe80::1%25eth0]/",
        "http://224.0.0.1/",
        "http://10.0.0.7:8000/",
        "http://example.org/",
        "http://localhost.example.org/",
        "http://127.0.0.1.example.org/",
        "unix:///var/run/docker.sock",
    ],
)
@pytest.mark.parametrize("allowed", [LOOPBACK, ["loopback", "sly.example", "0.0.0.0/0", "::/0"]])
async def test_servers_beyond_the_list_are_refused(make: Make, url: str, allowed: list[str]) -> None:
    """Metadata services and the like never, under whatever spelling and however wide the list; others unless listed."""
    listed = allowed != LOOPBACK and url == "http://10.0.0.7:8000/"
    services = make(allow_host=allowed)
    async with client_of(services) as client:
        answer = await client.post("/v1/runs", json=a_run(url))
        assert answer.status_code == (202 if listed else 403), answer.text
        if not listed:
            assert answer.json()["errors"][0]["pointer"] == "/target/url"
            assert "169.254" not in answer.json()["detail"] or "169.254" in url


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1/", "http://", "x", ""])
async def test_what_is_no_url_is_invalid(make: Make, url: str) -> None:
    """Only http and https."""
    async with client_of(make()) as client:
        assert (await client.post("/v1/runs", json=a_run(url))).status_code == 422


async def test_a_name_that_is_bent_to_this_machine(make: Make) -> None:
    """A listed name does not reach this machine's own services by changing its address, unless those are listed too."""
    async with client_of(make(allow_host=["bent.example"])) as client:
        assert (await client.post("/v1/runs", json=a_run("http://bent.example:8000"))).status_code == 403


async def test_other_addresses_in_options_are_held_against_the_list(make: Make) -> None:
    """A metrics page is an address as well."""
    async with client_of(make()) as client:
        for options in ({"metrics_url": "http://10.0.0.7/metrics"}, {"gpu_metrics_url": "http://169.254.169.254/"}):
            assert (await client.post("/v1/runs", json=a_run(**options))).status_code == 403


@pytest.mark.parametrize(
    ("entries", "host", "port", "admitted"),
    [
        (["gpu1.example"], "GPU1.example.", 8000, True),
        (["gpu1.example:8000"], "gpu1.example", 8001, False),
        (["*.example"], "gpu1.example", 1, True),
        (["*.example"], "example", 1, False),
        (["*.example"], "badexample", 1, False),
        (["10.0.0.0/8:8000"], "10.1.2.3", 8000, True),
        (["10.0.0.0/8"], "11.1.2.3", 8000, False),
        (["[::1]:8000"], "::1", 8000, True),
        (["loopback"], "127.8.8.8", 8000, True),
        (["0.0.0.0/0"], "169.254.1.1", 80, False),
    ],
)
def test_entries_of_the_list(entries: list[str], host: str, port: int, admitted: bool) -> None:
    """Names whatever their case, domains beneath a star, networks, and ports where they are given."""
    assert AllowList.parse(entries).admits_name(host, port) is admitted


class Socket:
    """A socket by its family and kind."""

    def __init__(self, family: int = 2, kind: int = 1) -> None:
        self.family, self.type = family, kind


@pytest.mark.parametrize(
    ("entries", "address", "refused"),
    [
        (["loopback"], "127.0.0.1", False),
        (["loopback"], "10.0.0.7", True),
        (["gpu1.example"], "10.0.0.7", False),
        (["gpu1.example"], "127.0.0.1", True),
        (["gpu1.example"], "169.254.169.254", True),
        (["gpu1.example:8000"], "10.0.0.7", True),
    ],
)
def test_connections_are_held_against_the_list(entries: list[str], address: str, refused: bool) -> None:
    """At the address that a connection really goes to, whatever its name meant before."""
    assert literal_address(address) is not None
    allowed = AllowList.parse(entries)
    if refused:
        with pytest.raises(PermissionError):
            check_connection(allowed, Socket(), (address, 9000))
    else:
        check_connection(allowed, Socket(), (address, 9000))


@pytest.mark.parametrize(
    "name",
    ["../secret.txt", "/etc/passwd", "a/../../secret.txt", "link.txt", "none.txt", ".", "a\\b", "x\x00y", "n" * 300],
)
@pytest.mark.parametrize("option", ["trace", "prompts", "ca_file"])
async def test_files_beyond_the_folder_are_refused(make: Make, tmp_path: Path, name: str, option: str) -> None:
    """No path leads out, not even by a link, and what is not there is said as such."""
    services = make()
    (tmp_path / "secret.txt").write_text("secret")
    files = services.policy.files
    (files / "link.txt").symlink_to(tmp_path / "secret.txt")
    async with client_of(services) as client:
        answer = await client.post("/v1/runs", json=a_run(**{option: name}))
    assert answer.status_code == 422
    assert str(tmp_path) not in answer.text


async def test_a_file_in_the_folder_is_given_by_its_path(make: Make, nursery: Any) -> None:
    """The process that measures gets the path, and the request keeps the name."""
    services = make()
    (services.policy.files / "prompts.jsonl").write_text('{"prompt": "a"}\n')
    async with client_of(services) as client:
        asked = (await client.post("/v1/runs", json=a_run(prompts="prompts.jsonl"))).json()
    services.supervisor.turn()
    assert asked["options"]["prompts"] == "prompts.jsonl"
    assert nursery.latest.order.options["prompts"] == str(services.policy.files / "prompts.jsonl")


async def test_variables_have_to_be_allowed(make: Make) -> None:
    """A run may name the variables of the settings and no other, so that no secret of the service leaves it."""
    async with client_of(make(allow_env=["TARGET_KEY"])) as client:
        assert (await client.post("/v1/runs", json=a_run(api_key_env="TARGET_KEY"))).status_code == 202
        assert (await client.post("/v1/runs", json=a_run(api_key_env="PGPASSWORD"))).status_code == 403


EXPERIMENT = {
    "name": "pays",
    "workload": {"synthetic": {"input_tokens": 64, "output_tokens": 16}},
    "load": {"concurrency": [1]},
    "level": {"num_requests": 20},
}


@pytest.mark.parametrize(
    ("arm", "status"),
    [
        ({"command": "sh -c 'curl evil' {port}"}, 403),
        ({"profile": "llama-3.1-8b-baseline"}, 403),
        ({"profile": "llama-3.1-8b-baseline", "launch": "sim"}, 202),
        ({"profile": "/etc/passwd.yaml"}, 422),
        ({"sim": {"profile": "../x.yaml"}}, 422),
        ({"url": "http://10.0.0.7:8000"}, 403),
        ({"url": "http://${HOST}:8000"}, 403),
        ({"sim": {}}, 202),
        ({"url": "http://127.0.0.1:8000"}, 202),
    ],
)
async def test_arms_start_nothing_and_reach_nothing_else(make: Make, arm: dict[str, Any], status: int) -> None:
    """No command of a request is run, no profile launched, no other server reached; a simulated one is harmless."""
    options = {**EXPERIMENT, "arms": {"baseline": arm}}
    async with client_of(make()) as client:
        answer = await client.post("/v1/experiments", json={"options": options})
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    "arm", [{"profile": "PATH"}, {"profile": "PATH", "launch": "sim"}, {"sim": {"profile": "PATH"}}]
)
async def test_a_profile_by_path_is_not_even_read(make: Make, tmp_path: Path, arm: dict[str, Any]) -> None:
    """What is wrong with a file of this machine would tell what stands in it."""
    file = tmp_path / "passwords.yaml"
    file.write_text("hunter2: 1\n")
    text = json.dumps({**EXPERIMENT, "arms": {"baseline": arm}}).replace("PATH", str(file))
    async with client_of(make()) as client:
        answer = await client.post("/v1/experiments", json={"options": json.loads(text)})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/options/arms/baseline/" + ("sim/profile" if "sim" in arm else "profile")
    assert error["detail"] == "a profile is named, not given by path"


async def test_an_experiment_has_no_further_processes(make: Make) -> None:
    """As every run: connections of workers would go where the list does not let them."""
    options = {**EXPERIMENT, "arms": {"baseline": {"sim": {}}}}
    async with client_of(make()) as client:
        answer = await client.post("/v1/experiments", json={"options": {**options, "workers": 2}})
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"] == "/options/workers"
        assert (await client.post("/v1/experiments", json={"options": {**options, "workers": 1}})).status_code == 202


def test_a_process_that_measures_knows_little_of_the_services_environment() -> None:
    """Variables that runs may name, and what finds programs and profiles; nothing else of the service's."""
    known = child_environment(
        dict.fromkeys(("PATH", "PGPASSWORD", "TARGET_KEY", "LOADGEN_PROFILES_DIR"), "x"), ["TARGET_KEY"]
    )
    assert set(known) == {"PATH", "TARGET_KEY", "LOADGEN_PROFILES_DIR"}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("run", {"concurrency": 101}),
        ("run", {"request_rate": 51}),
        ("run", {"request_rate": 5, "max_concurrency": 101}),
        ("sweep", {"concurrency": [1, 101]}),
        ("sweep", {"request_rate": [1, 51]}),
        ("capacity", {"slo": "ttft=1s"}),
        ("capacity", {"slo": "ttft=1s", "variable": "request-rate", "most": 51}),
    ],
)
async def test_more_load_than_allowed_is_refused(make: Make, kind: str, options: dict[str, Any]) -> None:
    """Concurrency and rate have a limit, whatever the kind of run; the highest level counts."""
    async with client_of(make(max_concurrency=100, max_rate=50)) as client:
        body = {"kind": kind, "target": {"url": "http://127.0.0.1:8000"}, "options": options}
        answer = await client.post("/v1/runs", json=body)
        assert answer.status_code == 403, answer.text
        assert (await client.post("/v1/runs", json={**a_run(), "time_limit_s": 86400})).status_code == 403


async def test_a_target_by_name(make: Make, nursery: Any) -> None:
    """A server of the settings is reached by its name, and its host is allowed by that."""
    services = make(target={"prod": "http://10.0.0.7:8000"}, allow_host=[])
    async with client_of(services) as client:
        body = {**a_run(), "target": {"profile": "prod"}}
        assert (await client.post("/v1/runs", json=body)).json()["target"] == {
            "profile": "prod",
            "url": "http://10.0.0.7:8000",
        }
        assert (await client.post("/v1/runs", json=a_run("http://10.0.0.8:8000"))).status_code == 403
        assert (await client.post("/v1/runs", json={**body, "target": {"profile": "../x"}})).status_code == 422
    services.supervisor.turn()
    assert nursery.latest.order.options["url"] == "http://10.0.0.7:8000"


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/passwd", "none.jsonl"])
@pytest.mark.parametrize("option", ["trace", "prompts"])
async def test_an_experiments_files_are_those_of_the_folder(make: Make, tmp_path: Path, name: str, option: str) -> None:
    """What its file would find beside it, or anywhere, is not read here."""
    (tmp_path / "secret.txt").write_text("secret")
    workload = {option: name}
    options = {**EXPERIMENT, "workload": workload, "arms": {"baseline": {"sim": {}}}}
    async with client_of(make()) as client:
        answer = await client.post("/v1/experiments", json={"options": options})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == f"/options/workload/{option}"


async def test_metrics_and_traces_of_the_service_itself_are_not_for_requests(make: Make) -> None:
    """No option lets a run listen on a port, or send its telemetry somewhere."""
    async with client_of(make()) as client:
        for name in MetricsOptions.model_fields:
            answer = await client.post("/v1/runs", json=a_run(**{name: "x"}))
            assert answer.json()["errors"][0]["pointer"] == f"/options/{name}"
