"""SDKs that switch with their tokens evaluate the same, before and after: the real ones, and their engines alone."""

import gzip
import json
import os
import random
import subprocess
import sys

import pytest
from django.core.management import call_command
from yggdrasil_engine.engine import UnleashEngine

from importer.moving.reading import source
from tests.support.live_server import PATIENT, started
from tests.support.node_packages import installed
from tests.support.paths import ROOT
from tests.support.real_sdks import node_sdk, python_sdk
from tests.support.recorded_unleash import ADMIN, replayed
from tests.support.yggdrasil import sdk_results

RECORDING = json.loads(gzip.decompress((ROOT / "tests" / "vectors" / "moving.json.gz").read_bytes()))
USERS = 60


@pytest.fixture
def answers(monkeypatch, client):
    """By token: what an SDK gets before and after the move."""
    monkeypatch.setattr(source, "WAIT", 0)
    with replayed(RECORDING) as replay:
        call_command("move", "apply", "--from", replay.address, "--token", ADMIN)
        pairs = {}
        for name, secret in RECORDING["tokens"].items():
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


@pytest.fixture(scope="module")
def both(tmp_path_factory, install):
    """The ports of the recorded server and of ours, which has been moved to."""
    folder = tmp_path_factory.mktemp("moved")
    install(folder)
    variables = {
        "FLAGADMIN_DATA_DIR": str(folder),
        "FLAGADMIN_DATABASE_DURABLE": "0",
        "FLAGADMIN_LOG_LEVEL": "ERROR",
        "DJANGO_SETTINGS_MODULE": "flagadmin.settings",
    }
    with replayed(RECORDING) as replay:
        command = [sys.executable, "manage.py", "move", "apply", "--from", replay.address, "--token", ADMIN]
        subprocess.run(
            command, cwd=ROOT, env=os.environ | PATIENT | variables, capture_output=True, check=True
        )
        with started(workers=1, **variables) as (port, _):
            yield replay.server.server_port, port


@pytest.mark.processes
@pytest.mark.parametrize(
    "connect", [python_sdk, lambda port, secret: node_sdk(port, secret, {"type": "polling"})]
)
@pytest.mark.parametrize("token", ["be-dev", "be-prod"])
def test_real_sdks_evaluate_the_same_from_both_servers(connect, token, both):
    secret = RECORDING["tokens"][token]
    [answer] = [
        each["answer"]
        for each in RECORDING["requests"]
        if each["path"] == "/api/client/features" and each["token"] == token and each["headers"]
    ]
    names, on = certain(answer), 0
    with connect(both[0], secret) as before, connect(both[1], secret) as after:
        for context in make_contexts():
            there, here = (sdk.evaluate(names, context) for sdk in (before, after))
            assert there == here, context
            on += sum(enabled for enabled, _ in there.values())
    assert 0 < on < USERS * len(names)
