"""The real SDKs, in each of their modes, and the playground give the same results for the demo's flags on a real server."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from UnleashClient.constants import SDK_NAME, SDK_VERSION

from tests.support.live_server import PATIENT, Client, descendants, started, wait_until
from tests.support.real_sdks import APP, NodeSdk, Sdk, node_sdk, python_sdk
from tests.support.relay import relaying

pytestmark = [pytest.mark.processes, pytest.mark.exhaustive]

FILL = """
import json
import django
django.setup()
from flagadmin.demo.load import load_demo
load_demo()
from projects.models import Flag
from tests.support.cast import make_token
keys = {"admin": make_token("admin"), "backend": make_token("backend", environment="production")}
names = sorted(Flag.objects.active().values_list("name", flat=True))
print(json.dumps({"keys": keys, "flags": names}))
"""
IS_42 = {"contextName": "userId", "operator": "IN", "values": ["42"], "inverted": False}
CONTEXTS: list[dict[str, Any]] = [
    {"userId": "42", "sessionId": "s-42"},
    {"userId": "7", "sessionId": "s-7", "remoteAddress": "10.0.0.7"},
    {"userId": "1001", "sessionId": "x", "properties": {"country": "NO", "plan": "pro", "region": "eu"}},
    {"userId": "ü", "sessionId": "y", "properties": {"country": "SE", "plan": "free", "appVersion": "2.4.0"}},
]


@dataclass
class Served:
    port: int
    group: int
    keys: dict[str, str]
    flags: list[str]
    sdk_port: int = 0
    """Of a relay that SDKs ask instead."""

    def call(self, key: str, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        with closing(Client(self.port, self.keys[key])) as client:
            return client.call(method, path, body)

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.call("admin", method, f"/api/admin/{path}", body)
        assert status < 300, answer
        return json.loads(answer) if answer else None

    def sdk(self, mode: Any = None) -> AbstractContextManager[Sdk]:
        return python_sdk(self.sdk_port or self.port, self.keys["backend"], mode)

    def node(self, mode: Any) -> AbstractContextManager[NodeSdk]:
        return node_sdk(self.sdk_port or self.port, self.keys["backend"], mode)

    def switch(self, flag: str, project: str, to: str) -> None:
        self.admin("POST", f"projects/{project}/features/{flag}/environments/production/{to}", {})


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
    with started(workers=2, **variables) as (port, group):
        yield Served(port, group, **json.loads(filled.stdout.strip().splitlines()[-1]))


MODES: dict[str, Callable[[Served], AbstractContextManager[Sdk | NodeSdk]]] = {
    "Python, polling": lambda served: served.sdk(),
    "Python, streaming": lambda served: served.sdk({"type": "streaming"}),
    "Node, polling": lambda served: served.node({"type": "polling", "format": "full"}),
    "Node, delta": lambda served: served.node({"type": "polling", "format": "delta"}),
    "Node, streaming": lambda served: served.node({"type": "streaming"}),
}
RELAYED = ("Python, polling", "Python, streaming", "Node, delta", "Node, streaming")
Sdks = dict[str, Sdk | NodeSdk]


@pytest.fixture(scope="module")
def sdks(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sdks]:
    """One in each mode, and some that a relay answers."""
    with relaying(served.port, tmp_path_factory.mktemp("relay")) as relay, ExitStack() as stack:
        behind = replace(served, sdk_port=relay.port)
        direct = {mode: stack.enter_context(connect(served)) for mode, connect in MODES.items()}
        relayed = {f"{mode}, relayed": stack.enter_context(MODES[mode](behind)) for mode in RELAYED}
        yield direct | relayed


def test_they_evaluate_every_flag_as_the_playground_says(served: Served, sdks: Sdks) -> None:
    """At first, and after changes that they have been told of or have asked for."""
    project, flag = "default", "new"
    for mode, sdk in sdks.items():
        if isinstance(sdk, Sdk):
            assert sorted(sdk.feature_definitions()) == served.flags, mode
    compare(served, sdks)
    served.admin("POST", f"projects/{project}/features", {"name": flag})
    served.switch(flag, project, "on")
    segment = served.admin("POST", "segments", {"name": flag, "constraints": [IS_42]})["id"]
    place = f"projects/{project}/features/{flag}/environments/production/strategies"
    [strategy] = served.admin("GET", place)
    served.admin("PUT", f"{place}/{strategy['id']}", {"name": "default", "segments": [segment]})
    wait_for(sdks, flag, [True, False])
    served.flags.append(flag)
    compare(served, sdks)
    served.admin("PUT", f"segments/{segment}", {"name": flag, "constraints": [IS_42 | {"inverted": True}]})
    wait_for(sdks, flag, [False, True])
    served.flags.remove(flag)
    served.admin("DELETE", f"projects/{project}/features/{flag}")
    wait_for(sdks, flag, [False, False])
    compare(served, sdks)


def test_those_who_are_told_connect_again_when_a_worker_is_killed(served: Served, sdks: Sdks) -> None:
    told = {mode: sdk for mode, sdk in sdks.items() if "streaming" in mode}
    served.admin("POST", "projects/default/features", {"name": "killed"})
    workers = list(descendants(b"flagadmin-work", served.group))
    # All are told by one of the two, or some by another.
    for number, pid in enumerate(workers):
        on = number % 2 == 0
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda to="on" if on else "off": switched(served, "killed", to))
        wait_for(told, "killed", [on, on])
    served.admin("DELETE", "projects/default/features/killed")


def test_their_impact_metrics_are_stored(served: Served) -> None:
    mode = {"type": "polling", "format": "full"}
    with served.sdk() as python, node_sdk(served.port, served.keys["backend"], mode, "node_paid"):
        python.impact_metrics.define_counter("python_paid", "Help")
        python.impact_metrics.increment_counter("python_paid", 3)
        wait_until(lambda: reads_metrics(served, "node_paid") == [4.0])
        wait_until(lambda: reads_metrics(served, "python_paid") == [3.0])


def reads_metrics(served: Served, name: str) -> list[float]:
    """What Prometheus would get of an impact metric."""
    status, answer = served.call("admin", "GET", "/internal-backstage/impact/metrics")
    assert status == 200
    return [float(line.split()[-1]) for line in answer.decode().splitlines() if line.startswith(f"{name}")]


def switched(served: Served, flag: str, to: str) -> bool:
    """Whether the server did it; a worker may be killed before it answers."""
    try:
        served.switch(flag, "default", to)
    except (AssertionError, OSError, http.client.HTTPException):
        return False
    return True


def wait_for(sdks: Sdks, flag: str, expected: list[bool]) -> None:
    """Until each SDK says whether user 42 and user 7 have the flag."""
    contexts = [{"userId": user} for user in ("42", "7")]
    for mode, sdk in sdks.items():
        wait_until(
            lambda sdk=sdk: [said[flag][0] for said in sdk.evaluate([flag], contexts)] == expected,
            f"{mode}: {flag} for {expected}",
        )


def compare(served: Served, sdks: Sdks) -> None:
    """Compares all flags for all contexts.

    The Node SDK does not hash identifiers as UTF-8, unlike the others, and so has other buckets for some.
    """
    drawn = drawn_at_random(served)
    expected = [playground_says(served, context) for context in CONTEXTS]
    for mode, sdk in sdks.items():
        contexts = CONTEXTS[:-1] if isinstance(sdk, NodeSdk) else CONTEXTS
        on = 0
        for context, said, right in zip(
            contexts, sdk.evaluate(served.flags, contexts), expected, strict=False
        ):
            assert said.keys() == right.keys(), mode
            assert {name for name in said if said[name] != right[name]} <= drawn, (mode, context)
            on += sum(enabled for enabled, _ in said.values())
        assert on > 0, mode


def definitions(served: Served) -> list[dict[str, Any]]:
    status, answer = served.call("backend", "GET", "/api/client/features")
    assert status == 200
    flags: list[dict[str, Any]] = json.loads(answer)["features"]
    return flags


def drawn_at_random(served: Served) -> set[str]:
    """The flags for which every question is a new draw."""
    return {
        flag["name"]
        for flag in definitions(served)
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
    [instance] = [each for each in application["instances"] if each["instanceId"] == "py-1"]
    assert instance["sdkVersion"] == f"{SDK_NAME}:{SDK_VERSION}"
    assert instance["environment"] == "production"
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
