"""SDKs that switch with their tokens evaluate the same, before and after: the real ones, and their engines alone."""

import gzip
import json
import random
import subprocess
import sys
from functools import cache

import pytest
from django.core.management import call_command
from yggdrasil_engine.engine import UnleashEngine

from importer.moving.reading import source
from tests.support.node_packages import installed
from tests.support.paths import ROOT
from tests.support.real_sdks import node_sdk, python_sdk
from tests.support.recorded_unleash import ADMIN, replayed
from tests.support.serve import environment
from tests.support.served import Served
from tests.support.yggdrasil import sdk_results

USERS = 60


@cache
def recording():
    return json.loads(gzip.decompress((ROOT / "tests" / "vectors" / "moving.json.gz").read_bytes()))


@pytest.fixture
def answers(monkeypatch, client):
    """By token: what an SDK gets before and after the move."""
    monkeypatch.setattr(source, "WAIT", 0)
    with replayed(recording()) as replay:
        call_command("move", "apply", "--from", replay.address, "--token", ADMIN)
        pairs = {}
        for name, secret in recording()["tokens"].items():
            status, before = replay.answer("GET", "/api/client/features", secret, b"")
            if status == 200:
                headers = {"Authorization": secret, "Unleash-Client-Spec": "5.2.0"}
                after = client.get("/api/client/features", headers=headers)
                assert after.status_code == 200
                pairs[name] = before, after.json()
    assert len(pairs) == 6
    return pairs


def make_contexts():
    chance = random.Random(1)
    for number in range(USERS):
        yield {
            "userId": str(number),
            "sessionId": f"s{number}",
            "appName": "shop",
            "remoteAddress": f"10.0.0.{number}",
            "currentTime": "2026-11-25T00:00:00.000Z",
            "properties": {
                "country": chance.choice(["NO", "SE", "DE", ""]),
                "plan": chance.choice(["free", "pro"]),
                "cartTotal": str(chance.randint(0, 300)),
                "appVersion": chance.choice(["2.9.9", "3.0.0", "3.1.0-beta.1"]),
                "storeId": str(number % 3),
            },
        }


def certain(answer):
    """Flags whose results chance does not decide."""
    return sorted(flag["name"] for flag in answer["features"] if '"random"' not in json.dumps(flag))


@pytest.mark.django_db
def test_engines_of_sdks_evaluate_the_same(answers):
    check_yggdrasil(answers)
    check_node(answers)


def check_yggdrasil(answers):
    for before, after in answers.values():
        names = certain(before)
        assert names == certain(after)
        engines = []
        for answer in (before, after):
            engine = UnleashEngine()
            engine.take_state(json.dumps({"version": 2, **answer}))
            engines.append(engine)
        for context in make_contexts():
            there, here = (sdk_results(engine, names, context) for engine in engines)
            assert there == here


def check_node(answers):
    contexts = list(make_contexts())
    lines = [
        json.dumps({"features": answer["features"], "segments": answer["segments"], "contexts": contexts})
        for pair in answers.values()
        for answer in pair
    ]
    program = installed("unleash-client") / "evaluate.mjs"
    done = subprocess.run(
        ["node", program], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    for pair, there, here in zip(answers.values(), results[::2], results[1::2], strict=True):
        for name in certain(pair[0]):
            assert [each[name] for each in there] == [each[name] for each in here], name


CONNECT = {
    "Python": python_sdk,
    "Node": lambda port, secret: node_sdk(port, secret, {"type": "polling"}),
}


@pytest.mark.processes
def test_real_sdks_evaluate_the_same_from_both_servers(served: Served) -> None:
    variables = environment(served.data_dir, DJANGO_SETTINGS_MODULE="flagadmin.settings")
    with replayed(recording()) as replay:
        command = [sys.executable, "manage.py", "move", "apply", "--from", replay.address, "--token", ADMIN]
        subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, check=True)
        for name, connect in CONNECT.items():
            for token in ("be-dev", "be-prod"):
                check_sdk(name, connect, token, replay.server.server_port, served.port)


def check_sdk(name, connect, token, there_port, here_port):
    secret = recording()["tokens"][token]
    [answer] = [
        each["answer"]
        for each in recording()["requests"]
        if each["path"] == "/api/client/features" and each["token"] == token and each["headers"]
    ]
    names, on = certain(answer), 0
    with connect(there_port, secret) as before, connect(here_port, secret) as after:
        contexts = list(make_contexts())
        for context, there, here in zip(
            contexts, before.evaluate(names, contexts), after.evaluate(names, contexts), strict=True
        ):
            assert there == here, (name, token, context)
            on += sum(enabled for enabled, _ in there.values())
    assert 0 < on < USERS * len(names), (name, token)
