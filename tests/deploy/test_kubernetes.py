"""Manifests and rendered pods against Kubernetes' own schemas, and against one another."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from loadgen import __version__
from loadgen.options.load import SweepOptions
from loadgen.options.resolve import resolve
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


def job() -> dict[str, Any]:
    """The pod that sends load."""
    (found,) = of("Job")
    return found["spec"]["template"]  # type: ignore[no-any-return]


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
    (service,), server = of("Service"), pod("llama-3.1-8b-eagle3")
    (container,) = server["spec"]["containers"]
    assert service["spec"]["selector"].items() <= server["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] == container["ports"][0]["name"]
    assert f"--url=http://{service['metadata']['name']}:{port['port']}" in job()["spec"]["containers"][0]["args"]


def test_only_load_reaches_the_server() -> None:
    """The policy covers the server's pods and lets in those of the job, which keep away from the server's node."""
    (policy,), server = of("NetworkPolicy"), pod("llama-3.1-8b-eagle3")
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= server["metadata"]["labels"].items()
    (rule,) = policy["spec"]["ingress"]
    (allowed,) = rule["from"]
    assert allowed["podSelector"]["matchLabels"].items() <= job()["metadata"]["labels"].items()
    (apart,) = job()["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"].items() <= server["metadata"]["labels"].items()


def test_claims_are_there() -> None:
    """Those of the job and of a server."""
    claims = {each["metadata"]["name"] for each in of("PersistentVolumeClaim")}
    volumes = [*job()["spec"]["volumes"], *pod("llama-3.1-8b-eagle3")["spec"]["volumes"]]
    wanted = {each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each}
    assert wanted == claims


def test_the_job_runs_our_image_as_its_user() -> None:
    """Of this version; the command's options are read without a complaint, and it writes where a volume is."""
    for spec in (job()["spec"], of("Pod")[0]["spec"]):
        (container,), context = spec["containers"], spec["securityContext"]
        assert container["image"] == f"loadgen:{__version__}"
        assert image_of("loadgen")["USER"] == f"{context['runAsUser']}:{context['runAsGroup']}"
    (container,) = job()["spec"]["containers"]
    command, *arguments = container["args"]
    assert command == "sweep"
    given = {name.removeprefix("--").replace("-", "_"): text for name, _, text in (a.partition("=") for a in arguments)}
    options = resolve(SweepOptions, {name: text or "true" for name, text in given.items()}, environment={})
    assert Path(options.out).is_relative_to(container["volumeMounts"][0]["mountPath"])
    assert container["resources"]["requests"] == container["resources"]["limits"]
