"""The real Python SDK and the playground give the same results for the demo's flags on a real server."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from UnleashClient import UnleashClient
from UnleashClient.constants import SDK_NAME, SDK_VERSION
from UnleashClient.events import BaseEvent, UnleashEventType

from tests.support.live_server import PATIENCE, PATIENT, Client, running, wait_until

pytestmark = pytest.mark.processes

FILL = """
import json
import django
django.setup()
from flagadmin.demo.load import load_demo
load_demo()
from projects.models import Flag
from tests.support.cast import make_token
keys = {"admin": make_token("admin"), "backend": make_token("backend", environment="production")}
names = sorted(Flag.objects.filter(archived_at=None).values_list("name", flat=True))
print(json.dumps({"keys": keys, "flags": names}))
"""
APP = "sdk-check"
CONTEXTS: list[dict[str, Any]] = [
    {"userId": "42", "sessionId": "s-42"},
    {"userId": "7", "sessionId": "s-7", "remoteAddress": "10.0.0.7"},
    {"userId": "1001", "sessionId": "x", "properties": {"country": "NO", "plan": "pro", "region": "eu"}},
    {"userId": "ü", "sessionId": "y", "properties": {"country": "SE", "plan": "free", "appVersion": "2.4.0"}},
]


class Sdk(UnleashClient):
    """The SDK, with what it was answered whenever it asked for the flags: statuses in order."""

    def __init__(self, port: int, secret: str) -> None:
        self.answers: list[int] = []
        self.ready = threading.Event()
        super().__init__(
            url=f"http://127.0.0.1:{port}/api",
            app_name=APP,
            instance_id="py-1",
            refresh_interval=1,
            metrics_interval=1,
            custom_headers={"Authorization": secret},
            custom_options={"hooks": {"response": self._keep_answer}},
            cache_directory=tempfile.mkdtemp(),
            event_callback=self._keep_event,
        )

    def _keep_answer(self, answer: requests.Response, **_: Any) -> None:
        if answer.request.path_url == "/api/client/features":
            self.answers.append(answer.status_code)

    def _keep_event(self, event: BaseEvent) -> None:
        if event.event_type == UnleashEventType.READY:
            self.ready.set()


@dataclass
class Served:
    port: int
    keys: dict[str, str]
    flags: list[str]

    def call(self, key: str, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        with closing(Client(self.port, self.keys[key])) as client:
            return client.call(method, path, body)

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.call("admin", method, f"/api/admin/{path}", body)
        assert status == 200, answer
        return json.loads(answer) if answer else None

    @contextmanager
    def sdk(self) -> Iterator[Sdk]:
        client = Sdk(self.port, self.keys["backend"])
        client.initialize_client()
        try:
            assert client.ready.wait(PATIENCE)
            yield client
        finally:
            client.destroy()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, install: Callable[[Path], None]) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("sdk")
    install(folder)
    variables = {
        "FLAGADMIN_DATA_DIR": str(folder),
        "FLAGADMIN_DATABASE_DURABLE": "0",
        "FLAGADMIN_LOG_LEVEL": "ERROR",
        "DJANGO_SETTINGS_MODULE": "flagadmin.settings",
    }
    filled = subprocess.run(
        [sys.executable, "-c", FILL],
        env=os.environ | PATIENT | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    with running(workers=2, **variables) as port:
        yield Served(port, **json.loads(filled.stdout.strip().splitlines()[-1]))


def test_it_evaluates_every_flag_as_the_playground_says(served: Served) -> None:
    with served.sdk() as sdk:
        assert sorted(sdk.feature_definitions()) == served.flags
        on, drawn = 0, drawn_at_random(served)
        for context in CONTEXTS:
            said, expected = sdk_says(sdk, served.flags, context), playground_says(served, context)
            assert said.keys() == expected.keys()
            differing = {name for name in said if said[name] != expected[name]}
            assert differing <= drawn, context
            on += sum(enabled for enabled, _ in said.values())
        assert on > 0


def sdk_says(sdk: UnleashClient, flags: list[str], context: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    return {
        name: (sdk.is_enabled(name, dict(context)), sdk.get_variant(name, dict(context))["name"])
        for name in flags
    }


def drawn_at_random(served: Served) -> set[str]:
    """The flags for which every question is a new draw."""
    status, answer = served.call("backend", "GET", "/api/client/features")
    assert status == 200
    return {
        flag["name"]
        for flag in json.loads(answer)["features"]
        if any(is_drawn(strategy) for strategy in flag["strategies"])
    }


def is_drawn(strategy: dict[str, Any]) -> bool:
    return strategy["name"] == "gradualRolloutRandom" or strategy["parameters"].get("stickiness") == "random"


def playground_says(served: Served, context: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    question = {"environment": "production", "context": context | {"appName": APP, "environment": "default"}}
    features = served.admin("POST", "playground", question)["features"]
    return {flag["name"]: (flag["isEnabled"], flag["variant"]["name"]) for flag in features}


def test_it_registers_and_reports(served: Served) -> None:
    with served.sdk() as sdk:
        sdk.is_enabled(served.flags[0], {"userId": "42"})
        application = wait_until(lambda: known_application(served))
    [instance] = application["instances"]
    assert instance["sdkVersion"] == f"{SDK_NAME}:{SDK_VERSION}"
    assert (instance["instanceId"], instance["environment"]) == ("py-1", "production")
    usage = served.admin("GET", f"client-metrics/features/{served.flags[0]}")
    assert APP in usage["seenApplications"]


def known_application(served: Served) -> Any:
    listed = served.admin("GET", f"metrics/applications?query={APP}")["applications"]
    if not listed or not listed[0]["usage"]:
        return None
    return served.admin("GET", f"metrics/applications/{APP}")


def test_it_fetches_again_only_after_a_change(served: Served) -> None:
    flag = next(
        f
        for f in served.admin("POST", "playground", {"environment": "production", "context": {}})["features"]
        if not f["isEnabledInCurrentEnvironment"]
    )
    place = f"projects/{flag['projectId']}/features/{flag['name']}/environments/production"
    with served.sdk() as sdk:
        wait_until(lambda: len(sdk.answers) >= 3)
        assert sdk.answers[:3] == [200, 304, 304]
        served.admin("POST", f"{place}/on", {})
        wait_until(lambda: 200 in sdk.answers[3:])
        wait_until(lambda: sdk.feature_definitions()[flag["name"]])
    served.admin("POST", f"{place}/off", {})
