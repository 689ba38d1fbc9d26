"""What `make release` says of what it built: python release_documents.py DIST ENVIRONMENT STARTED

Completes the bill of materials (sbom.cdx.json, CycloneDX) with flagadmin's version, the hashes of what was locked and
licenses that are not of SPDX's list, and writes provenance.json: what was built, from which commit, with which inputs.
It is an in-toto statement in the shape of SLSA's provenance 1.0, by whoever ran the build; nobody else vouches for it.
"""

import hashlib
import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
INPUTS = ("pyproject.toml", "requirements/run.txt", "deploy/release.sh", "deploy/release_documents.py")
BUILT_WITH = ("hatchling", "uv")


def main() -> None:
    dist, environment, started = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    [wheel] = dist.glob("flagadmin-*.whl")
    complete_bill(dist, environment, wheel)
    write(dist / "provenance.json", provenance(sorted(dist.iterdir()), started))


def complete_bill(dist: Path, environment: Path, wheel: Path) -> None:
    """The bill is of the environment, which knows licenses and dependencies; the requirements know hashes."""
    path, locked = dist / "sbom.cdx.json", environment / "locked.cdx.json"
    bill = read(path)
    references = {
        normal(component["name"]): component["externalReferences"] for component in read(locked)["components"]
    }
    licenses = {
        normal(distribution.metadata["Name"]): distribution.metadata.get("License")
        for distribution in installed(environment)
    }
    for component in bill["components"]:
        name = normal(component["name"])
        component.setdefault("externalReferences", []).extend(references[name])
        component.setdefault("licenses", [{"license": {"name": licenses.get(name) or "unknown"}}])
    number = wheel.name.split("-")[1]
    bill["metadata"]["component"] |= {
        "version": number,
        "purl": f"pkg:pypi/flagadmin@{number}",
        "hashes": [{"alg": "SHA-256", "content": sha256(wheel)}],
    }
    write(path, bill)


def normal(name: str) -> str:
    """A package's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(environment: Path) -> Iterable[Distribution]:
    return distributions(path=[str(path) for path in environment.glob("lib/python*/site-packages")])


def provenance(files: Iterable[Path], started: str) -> dict[str, Any]:
    """https://slsa.dev/spec/v1.0/provenance"""
    tools = [{"uri": f"pkg:pypi/{name}@{version(name)}"} for name in BUILT_WITH]
    inputs = [{"name": name, "digest": {"sha256": sha256(ROOT / name)}} for name in INPUTS]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path.name, "digest": {"sha256": sha256(path)}} for path in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:flagadmin:make-release:1",
                "externalParameters": {"command": "make release"},
                "internalParameters": {
                    "python": platform.python_version(),
                    "uncommittedChanges": is_changed(),
                },
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": git("rev-parse", "HEAD")}},
                    *inputs,
                    *tools,
                ],
            },
            "runDetails": {
                # Not a hosted builder: SLSA's level 1 at most.
                "builder": {"id": "urn:flagadmin:make-release:local"},
                "metadata": {"startedOn": started, "finishedOn": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"},
            },
        },
    }


def is_changed() -> bool:
    return bool(git("status", "--porcelain"))


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def write(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
