"""What `make release` says of what it built, and that container images keep their health check."""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.paths import ROOT

pytestmark = [pytest.mark.processes, pytest.mark.exhaustive]

STARTED = "2026-11-23T05:00:00Z"
HASHED = [
    {"type": "distribution", "url": "https://example.org", "hashes": [{"alg": "SHA-256", "content": "ab"}]}
]


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """As release.sh leaves it to release_documents.py, which has run."""
    dist, environment = tmp_path / "dist", tmp_path / "environment"
    package = environment / "lib/python3.11/site-packages/odd_license-1.0.dist-info"
    dist.mkdir()
    package.mkdir(parents=True)
    (package / "METADATA").write_text(
        "Name: odd_license\nVersion: 1.0\nLicense: BSD 3-Clause OR Apache-2.0\n"
    )
    (dist / "flagadmin-9.8.7-py3-none-any.whl").write_bytes(b"the package")
    declared = [{"license": {"id": "MIT"}}]
    components: list[dict[str, Any]] = [{"name": "Plain", "licenses": declared}, {"name": "odd_license"}]
    bill = {"metadata": {"component": {"name": "flagadmin"}}, "components": components}
    (dist / "sbom.cdx.json").write_text(json.dumps(bill))
    locked = [{"name": name, "externalReferences": HASHED} for name in ("plain", "odd-license")]
    (environment / "locked.cdx.json").write_text(json.dumps({"components": locked}))
    script = ROOT / "deploy" / "release_documents.py"
    subprocess.run([sys.executable, script, dist, environment, STARTED], check=True)
    return dist


def test_the_bill_has_our_version_and_the_license_and_hashes_of_each_component(dist: Path) -> None:
    bill = json.loads((dist / "sbom.cdx.json").read_text())
    component = bill["metadata"]["component"]
    assert (component["version"], component["purl"]) == ("9.8.7", "pkg:pypi/flagadmin@9.8.7")
    assert component["hashes"][0]["content"] == hashlib.sha256(b"the package").hexdigest()
    plain, odd = bill["components"]
    assert plain["licenses"] == [{"license": {"id": "MIT"}}]
    assert odd["licenses"] == [{"license": {"name": "BSD 3-Clause OR Apache-2.0"}}]
    assert [entry["externalReferences"] for entry in (plain, odd)] == [HASHED, HASHED]


def test_the_provenance_names_what_was_built_and_what_from(dist: Path) -> None:
    statement = json.loads((dist / "provenance.json").read_text())
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    digests = {entry["name"]: entry["digest"]["sha256"] for entry in statement["subject"]}
    files = [path for path in dist.iterdir() if path.name != "provenance.json"]
    assert digests == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    built = statement["predicate"]["buildDefinition"]
    source, *inputs = built["resolvedDependencies"]
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    assert source["digest"] == {"gitCommit": head.stdout.strip()}
    locked = hashlib.sha256((ROOT / "requirements" / "run.txt").read_bytes()).hexdigest()
    assert {"name": "requirements/run.txt", "digest": {"sha256": locked}} in inputs
    assert built["internalParameters"]["uncommittedChanges"] in (True, False)
    assert statement["predicate"]["runDetails"]["metadata"]["startedOn"] == STARTED


def test_the_signature_is_checked_as_documented(dist: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    subprocess.run("sha256sum -- * > SHA256SUMS", shell=True, cwd=dist, check=True)
    (dist / "signers").write_text(f"release {key.with_suffix('.pub').read_text()}")
    [sign] = re.findall(r"\|\| (ssh-keygen -Y sign .*)", (ROOT / "deploy" / "release.sh").read_text())
    subprocess.run(sign, shell=True, cwd=dist, env=os.environ | {"RELEASE_KEY": str(key)}, check=True)
    page = (ROOT / "docs" / "operations" / "run.md").read_text()
    [verify] = re.findall(r"^ssh-keygen -Y verify .*", page, re.MULTILINE)

    verified = subprocess.run(verify, shell=True, cwd=dist, check=False, capture_output=True, text=True)
    assert (verified.returncode, verified.stdout.splitlines()[0][:14]) == (0, 'Good "flagadmi')

    with (dist / "SHA256SUMS").open("a") as sums:
        sums.write("another line\n")
    assert subprocess.run(verify, shell=True, cwd=dist, check=False, capture_output=True).returncode != 0


def test_images_are_built_in_the_format_that_has_a_health_check() -> None:
    """OCI's has none: Podman drops it with a warning."""
    for name in ("docs/operations/run.md", "deploy/README.md", "deploy/Containerfile"):
        for command in re.findall(r"podman build[^`\n]*", (ROOT / name).read_text()):
            assert "--format docker" in command, name


def test_compose_has_the_health_check_of_the_image_whatever_its_format() -> None:
    image = (ROOT / "deploy" / "Containerfile").read_text()
    options, command = re.findall(r"^HEALTHCHECK (.*) \\\n +CMD (.*)$", image, re.MULTILINE)[0]
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    check = compose["services"]["flagadmin"]["healthcheck"]
    kind, shell = check.pop("test")  # for a shell, because podman-compose loses the quotes of a list
    assert kind == "CMD-SHELL"
    assert [part.replace('"', "'") for part in shlex.split(shell)] == json.loads(command)
    assert {f"--{name.replace('_', '-')}={value}" for name, value in check.items()} == set(options.split())
