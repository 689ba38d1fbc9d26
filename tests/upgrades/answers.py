"""What an installation answers, as far as an upgrade must not change it.

``python -m tests.upgrades.answers FOLDER`` records this version: the backup of an installation with the demo's data,
its answers, and its code. Run it once for each release, and remove the code of the one before.
"""

import json
import lzma
import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.live_server import PATIENCE, Client, reserved_port, wait_until_ready
from tests.support.paths import APPS

CONTEXTS = [
    {"userId": str(user), "sessionId": "s-1", "currentTime": "2026-12-01T12:00:00Z", "properties": properties}
    for user in (1, 7, 42, 1001, 31337)
    for properties in (
        {},
        {"country": "NO", "plan": "pro", "appVersion": "4.3.1", "region": "eu"},
        {"country": "DE", "plan": "enterprise", "appVersion": "4.1.0", "region": "us", "age": "17"},
    )
]
RANDOM = {"release-notes-popup", "request-tracing"}  # on for other users at every call


def answers(port: int, secret: str, sdk_secrets: list[str]) -> dict[str, Any]:
    """The results of the playground, what SDKs get, an export, and counts. JSON values."""
    with closing(Client(port, secret)) as client:

        def ask(method: str, path: str, body: Any = None) -> Any:
            status, answer = client.call(method, path, body)
            assert status == 200, (path, status, answer[:500])
            return json.loads(answer)

        projects = ask("GET", "/api/admin/projects")["projects"]
        evaluated = [
            ask(
                "POST",
                "/api/admin/playground",
                {"environment": environment, "projects": "*", "context": context},
            )
            for environment in ("development", "production")
            for context in CONTEXTS
        ]
        exported = ask(
            "POST", "/api/admin/features-batch/export", {"environment": "production", "project": "storefront"}
        )
        answered = {
            "projects": sorted(project["id"] for project in projects),
            "results": [
                {flag["name"]: result(flag) for flag in each["features"] if flag["name"] not in RANDOM}
                for each in evaluated
            ],
            "strategies": sorted(exported["featureStrategies"], key=lambda strategy: strategy["id"]),
            "applications": ask("GET", "/api/admin/projects/storefront/applications")["total"],
            "roles": [
                ask("GET", f"/api/admin/projects/roles/{role}/access")["projects"] for role in (4, 5, 6)
            ],
            "groups": sorted(group["name"] for group in ask("GET", "/api/admin/groups")["groups"]),
        }
    answered["sdk"] = [features(port, sdk_secret) for sdk_secret in sdk_secrets]
    return answered


def result(flag: dict[str, Any]) -> list[Any]:
    variant = flag["variant"]
    return [flag["isEnabled"], variant["name"], variant.get("payload"), flag["strategies"]["result"]]


def features(port: int, secret: str) -> Any:
    with closing(Client(port, secret)) as client:
        status, answer = client.call("GET", "/api/client/features", **{"Unleash-Client-Spec": "5.2.0"})
        assert status == 200, (status, answer[:500])
        document = json.loads(answer)
        return [document["features"], document["segments"]]


def pack(commit: str, target: Path) -> None:
    """The code of a version as committed, ready to run."""
    command = ["git", "archive", commit, *APPS, "templates", "manage.py"]
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    target.write_bytes(lzma.compress(packed, preset=9 | lzma.PRESET_EXTREME))


def record(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="flagadmin-record-") as data, reserved_port() as port:
        environment = os.environ | {"FLAGADMIN_DATA_DIR": data}

        def manage(*arguments: str) -> str:
            command = [sys.executable, "manage.py", *arguments]
            return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

        greeting = manage("demo", "--no-serve")
        secret = next(word for word in greeting.split() if word.startswith("user:"))
        sdk = [
            manage(
                "token",
                "create",
                "--kind",
                "backend",
                "--name",
                f"sdk-{name}",
                "--projects",
                "*",
                "--environment",
                name,
            ).split()[-1]
            for name in ("development", "production")
        ]
        manage("backup", str(folder / "backup"))
        command = [sys.executable, "manage.py", "serve", "--port", str(port), "--workers", "1"]
        server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        try:
            wait_until_ready(port, server)
            recorded = {"secret": secret, "sdk": sdk, "answers": answers(port, secret, sdk)}
        finally:
            server.terminate()
            server.wait(PATIENCE)
    pack("HEAD", folder / "code.tar.xz")
    (folder / "answers.json").write_text(json.dumps(recorded, sort_keys=True) + "\n")


if __name__ == "__main__":
    record(Path(sys.argv[1]).resolve())
