"""deploy/kubernetes/ and deploy/helm/: both follow Kubernetes' schemas, fit flagadmin, and are the same."""

import os
import subprocess
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.urls import resolve

from flagadmin import __version__
from flagadmin.core.server.worker_processes import SHUTDOWN_TIMEOUT
from tests.support.paths import ROOT
from tests.support.programs import program

FOLDER = ROOT / "deploy" / "kubernetes"
SCHEMAS = ["1.30", "1.37"]  # the versions that README.md beside the folder promises


def manifests() -> list[Any]:
    files = sorted(FOLDER.glob("*.yaml"))
    return [document for file in files for document in yaml.safe_load_all(file.read_text())]


def resources() -> dict[str, Any]:
    return {manifest["kind"]: manifest for manifest in manifests() if manifest["kind"] != "Kustomization"}


def container() -> Any:
    [container] = resources()["Deployment"]["spec"]["template"]["spec"]["containers"]
    return container


@pytest.mark.parametrize("version", SCHEMAS)
def test_kubernetes_accepts_them(version: str) -> None:
    assert {"Deployment", "Service", "Ingress", "NetworkPolicy"} <= resources().keys()
    for manifest in resources().values():
        kubernetes_validate.validate(manifest, version, strict=True)


def test_a_mistake_would_be_found() -> None:
    deployment = resources()["Deployment"]
    deployment["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readinesProbe"):
        kubernetes_validate.validate(deployment, SCHEMAS[-1], strict=True)


def test_kustomize_lists_every_file_and_this_version() -> None:
    [kustomization] = [manifest for manifest in manifests() if manifest["kind"] == "Kustomization"]
    assert {*kustomization["resources"], "kustomization.yaml"} == set(os.listdir(FOLDER))
    [image] = kustomization["images"]
    assert (image["name"], image["newTag"]) == (container()["image"], __version__)


def test_everything_that_selects_pods_selects_these() -> None:
    by_kind = resources()
    labels = by_kind["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert by_kind["Service"]["spec"]["selector"] == labels
    for kind, name in (
        ("Deployment", "selector"),
        ("PodDisruptionBudget", "selector"),
        ("NetworkPolicy", "podSelector"),
    ):
        assert by_kind[kind]["spec"][name]["matchLabels"] == labels


def test_probes_ask_what_exists_as_a_host_that_is_allowed(settings: Any) -> None:
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        request = container()[name]["httpGet"]
        assert resolve(request["path"])
        assert request["httpHeaders"] == [{"name": "Host", "value": "127.0.0.1"}]
        assert request["port"] == container()["ports"][0]["name"]


def test_a_pod_has_time_to_stop_and_may_do_little() -> None:
    pod = resources()["Deployment"]["spec"]["template"]["spec"]
    wait = int(container()["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > wait + SHUTDOWN_TIMEOUT
    containerfile = (ROOT / "deploy" / "Containerfile").read_text()
    assert f"USER {pod['securityContext']['runAsUser']}" in containerfile
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_settings_exist() -> None:
    described = (ROOT / "docs" / "reference" / "settings.md").read_text()
    names = [*resources()["ConfigMap"]["data"]]
    assert names
    assert all(f"`{name}`" in described for name in names)


# Helm -------------------------------------------------------------------------------------------------------

CHART = ROOT / "deploy" / "helm"
NEEDED = ("host=flags.example.org", "image.repository=registry.example.org/flagadmin")
RELAY = ("relay.enabled=true", "relay.region=eu", "relay.secret=relay", "settings.FLAGADMIN_AUDIT_LOG=stdout")


def helm(command: str, *values: str) -> subprocess.CompletedProcess[str]:
    options = [f"--set={value}" for value in values]
    name = ["flagadmin"] if command == "template" else []
    line = [program("helm", target="helm"), command, *name, str(CHART), "--namespace=flagadmin", *options]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def render(*values: str) -> dict[tuple[str, str], Any]:
    done = helm("template", *NEEDED, *values)
    assert done.returncode == 0, done.stderr
    documents = filter(None, yaml.safe_load_all(done.stdout))
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}


@pytest.mark.machines
def test_the_chart_is_the_manifests() -> None:
    rendered = render("ingress.tlsSecret=flags-example-org-tls")
    pod = rendered["Deployment", "flagadmin"]["spec"]["template"]
    del pod["metadata"]["annotations"]
    [container] = pod["spec"]["containers"]
    assert container["image"] == f"registry.example.org/flagadmin:{__version__}"
    container["image"] = "flagadmin"
    plain = [each for each in manifests() if each["kind"] != "Kustomization"]
    assert rendered == {(each["kind"], each["metadata"]["name"]): each for each in plain}


@pytest.mark.parametrize("version", SCHEMAS)
@pytest.mark.machines
def test_kubernetes_accepts_a_relay_and_settings(version: str) -> None:
    rendered = render(*RELAY, "image.pullSecrets[0].name=registry", "ingress.enabled=false")
    assert rendered.keys() >= {("StatefulSet", "flagadmin-relay"), ("Service", "flagadmin-relay")}
    assert ("Ingress", "flagadmin") not in rendered
    assert rendered["ConfigMap", "flagadmin"]["data"]["FLAGADMIN_AUDIT_LOG"] == "stdout"
    for document in rendered.values():
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.machines
def test_helm_finds_no_fault_in_it() -> None:
    done = helm("lint", *NEEDED, *RELAY)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("given", "lacks"), [(NEEDED[:1], "image.repository"), (NEEDED[1:], "Set host")])
@pytest.mark.machines
def test_what_is_missing_is_named(given: tuple[str, ...], lacks: str) -> None:
    done = helm("template", *given)
    assert done.returncode
    assert lacks in done.stderr


def test_the_chart_has_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__
