"""Manifests and rendered pods against Kubernetes' own schemas, and against one another."""

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from loadgen import __version__
from loadgen.options.load import SweepOptions
from loadgen.options.locust import LocustOptions
from loadgen.options.resolve import resolve
from loadgen.options.serve import ServeOptions
from loadgen.wiring.profiles import Form, listed, rendered
from tests.deploy.compose import ROOT, image_of

FOLDER = ROOT / "deploy" / "kubernetes"
PROFILES = ROOT / "server_profiles"
VERSION = "1.37"


def manifests() -> list[dict[str, Any]]:
    """Everything under deploy/kubernetes."""
    return [each for path in sorted(FOLDER.glob("*.yaml")) for each in yaml.safe_load_all(path.read_text("utf-8"))]


def of(kind: str) -> list[dict[str, Any]]:
    """The manifests of a kind."""
    return [each for each in manifests() if each["kind"] == kind]


def named(kind: str, name: str) -> dict[str, Any]:
    """The manifest of a kind that has this name."""
    (found,) = (each for each in of(kind) if each["metadata"].get("name") == name)
    return found


def job() -> dict[str, Any]:
    """The pod that sends load."""
    (found,) = of("Job")
    return found["spec"]["template"]  # type: ignore[no-any-return]


def deployed(name: str) -> dict[str, Any]:
    """The pod of a deployment."""
    return named("Deployment", name)["spec"]["template"]  # type: ignore[no-any-return]


def who_loads() -> dict[str, dict[str, Any]]:
    """All pods that send load to the server, or have it sent."""
    names = [each["metadata"]["name"] for each in of("Deployment")]
    return {"sweep": job()} | {name: deployed(name) for name in names}


def given(pod: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The command that its container runs, and the options, as the environment would have them."""
    command, *arguments = pod["spec"]["containers"][0]["args"]
    pairs = (argument.removeprefix("--").partition("=") for argument in arguments)
    return command, {name.replace("-", "_"): text or "true" for name, _, text in pairs}


def pod(name: str) -> dict[str, Any]:
    """The pod of a profile."""
    return yaml.safe_load(rendered(name, Form.KUBERNETES, [PROFILES]))  # type: ignore[no-any-return]


@pytest.mark.slow
def test_kubernetes_knows_every_field() -> None:
    """Of the manifests, and of the pod of every profile that is more than simulated; unknown fields are none."""
    names = [each["name"] for each in listed([PROFILES])["profiles"] if not each["simulated"]]
    assert names
    for each in (*manifests(), *map(pod, names)):
        kubernetes_validate.validate(each, VERSION, strict=True)


def test_the_service_finds_the_server_and_the_load_finds_the_service() -> None:
    """By labels, by the name of a port, and by the name in the URL."""
    service, server = named("Service", "server"), pod("llama-3.1-8b-eagle3")
    (container,) = server["spec"]["containers"]
    assert service["spec"]["selector"].items() <= server["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] == container["ports"][0]["name"]
    url = f"http://{service['metadata']['name']}:{port['port']}"
    assert given(job())[1]["url"] == given(deployed("locust-master"))[1]["url"] == url
    assert given(deployed("loadgen-service"))[1]["target"] == f"server={url}"


def test_only_load_reaches_the_server() -> None:
    """The policy covers the server's pods and lets in those that send load, which keep away from the server's node."""
    policy, server = named("NetworkPolicy", "server"), pod("llama-3.1-8b-eagle3")
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= server["metadata"]["labels"].items()
    (rule,) = policy["spec"]["ingress"]
    (allowed,) = rule["from"]
    for each in who_loads().values():
        assert allowed["podSelector"]["matchLabels"].items() <= each["metadata"]["labels"].items()
        (apart,) = each["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert apart["labelSelector"]["matchLabels"].items() <= server["metadata"]["labels"].items()


@pytest.mark.parametrize("name", ["loadgen-service", "locust-master", "locust-worker"])
def test_a_deployment_has_its_pods_and_a_policy(name: str) -> None:
    """Pods of its own, and nobody reaches them but by a rule: of the master its workers, of the others nobody."""
    labels = deployed(name)["metadata"]["labels"]
    assert named("Deployment", name)["spec"]["selector"]["matchLabels"].items() <= labels.items()
    policy = named("NetworkPolicy", name)["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert "Ingress" in policy["policyTypes"]
    if name != "locust-master":
        assert policy["ingress"] == []
        return
    (rule,) = policy["ingress"]
    assert rule["from"] == [{"podSelector": named("Deployment", "locust-worker")["spec"]["selector"]}]
    assert rule["ports"] == [{"port": "workers"}]


@pytest.mark.parametrize(("service", "name"), [("loadgen-service", "loadgen-service"), ("locust", "locust-master")])
def test_a_name_leads_to_its_pods(service: str, name: str) -> None:
    """And to ports that they have."""
    spec = named("Service", service)["spec"]
    assert spec["selector"].items() <= deployed(name)["metadata"]["labels"].items()
    ports = {port["name"]: port["containerPort"] for port in deployed(name)["spec"]["containers"][0]["ports"]}
    for port in spec["ports"]:
        assert ports[port["targetPort"]] == port["port"]


def test_claims_are_there() -> None:
    """Those of who loads and of a server."""
    claims = {each["metadata"]["name"] for each in of("PersistentVolumeClaim")}
    pods = [*who_loads().values(), pod("llama-3.1-8b-eagle3")]
    volumes = [volume for each in pods for volume in each["spec"]["volumes"]]
    wanted = {each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each}
    assert wanted == claims


def test_secrets_are_named_and_not_given() -> None:
    """By what the document makes: a file for the service, a variable for Locust's page."""
    assert of("Secret") == []
    spec = deployed("loadgen-service")["spec"]
    (secret,) = (volume["secret"] for volume in spec["volumes"] if "secret" in volume)
    (item,) = secret["items"]
    (mount,) = (each for each in spec["containers"][0]["volumeMounts"] if each["name"] == "key")
    assert given({"spec": spec})[1]["admin_key_file"] == f"{mount['mountPath']}/{item['path']}"
    (variable,) = deployed("locust-master")["spec"]["containers"][0]["env"]
    assert given(deployed("locust-master"))[1]["web_login_env"] == variable["name"]
    source = variable["valueFrom"]["secretKeyRef"]
    document = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    for name, key in ((secret["secretName"], item["key"]), (source["name"], source["key"])):
        assert f"kubectl create secret generic {name} --from-file={key}=/dev/stdin" in document


def test_prompts_are_where_they_are_looked_for() -> None:
    """In a ConfigMap that the document makes of a file that is there."""
    (source,) = (volume["configMap"]["name"] for volume in job()["spec"]["volumes"] if "configMap" in volume)
    (mount,) = (each for each in job()["spec"]["containers"][0]["volumeMounts"] if each["name"] == "prompts")
    folder, _, entry = given(job())[1]["prompts"].rpartition("/")
    assert folder == mount["mountPath"]
    document = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    (file,) = re.findall(rf"kubectl create configmap {source} --from-file={re.escape(entry)}=(\S+)", document)
    assert (ROOT / file).is_file()


@pytest.mark.parametrize(
    ("name", "command", "options", "image"),
    [
        ("sweep", "sweep", SweepOptions, "loadgen"),
        ("loadgen-service", "serve", ServeOptions, "service"),
        ("locust-master", "locust", LocustOptions, "locust"),
        ("locust-worker", "locust", LocustOptions, "locust"),
    ],
)
def test_who_loads_runs_our_image_as_its_user(name: str, command: str, options: Any, image: str) -> None:
    """Of this version; the command's options are read without a complaint, and it writes where a volume is."""
    spec = who_loads()[name]["spec"]
    _is_ours(spec, image)
    (container,) = spec["containers"]
    told, values = given({"spec": spec})
    assert told == command
    found = resolve(options, values, environment={})
    folder = getattr(found, "out", None) or getattr(found, "data_dir", None)
    places = [each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")]
    assert "/tmp" in places
    if name != "locust-worker":
        assert any(Path(folder).is_relative_to(place) for place in places)
    assert container["resources"]["requests"] == container["resources"]["limits"]


def test_the_pod_that_holds_results_is_ours() -> None:
    """The same image and user as the job that has written them."""
    _is_ours(named("Pod", "fetch")["spec"], "loadgen")


def all_pods() -> dict[str, dict[str, Any]]:
    """Ours, and that of a server whose image has a user beside root."""
    fetch, server = (each["spec"] for each in (named("Pod", "fetch"), pod("llama-3.1-8b-eagle3")))
    return {name: each["spec"] for name, each in who_loads().items()} | {"fetch": fetch, "server": server}


@pytest.mark.parametrize("name", all_pods())
def test_a_pod_may_little(name: str) -> None:
    """What the level `restricted` of Pod Security asks for, and no key to the cluster's own API."""
    spec = all_pods()[name]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    kinds = {kind for volume in spec["volumes"] for kind in volume if kind != "name"}
    assert kinds <= {"configMap", "emptyDir", "persistentVolumeClaim", "secret"}
    assert spec["automountServiceAccountToken"] is False


def _is_ours(spec: dict[str, Any], image: str) -> None:
    (container,), context = spec["containers"], spec["securityContext"]
    names = {"loadgen": "loadgen", "service": "loadgen-service", "locust": "loadgen-locust"}
    assert container["image"] == f"{names[image]}:{__version__}"
    assert image_of(image)["USER"] == f"{context['runAsUser']}:{context['runAsGroup']}"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
