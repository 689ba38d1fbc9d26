"""Proofs ask both servers what frontend SDKs get. Yggdrasil, the engine of Unleash's SDKs, answers for the other one."""

import json
from urllib.parse import parse_qsl, urlsplit

import pytest
from yggdrasil_engine.engine import UnleashEngine

from importer.moving.reading import source
from projects.models import Strategy
from tests.support.generated_unleash import make_recording
from tests.support.moving import run_step
from tests.support.recorded_unleash import path_of, send

pytestmark = pytest.mark.django_db
PATH = "/api/frontend"


class Frontend:
    """Answers as Unleash does. ``asked`` are the contexts so far."""

    def __init__(self, features):
        self.engine = UnleashEngine()
        self.engine.take_state(json.dumps(features))
        self.names = [flag["name"] for flag in features["features"]]
        self.asked = []

    def answer(self, handler):
        if path_of(handler) != PATH:
            return False
        context = {"properties": {}}
        for name, text in parse_qsl(urlsplit(handler.path).query):
            if name.startswith("properties["):
                context["properties"][name[11:-1]] = text
            else:
                context[name] = text
        self.asked.append((handler.headers["Authorization"], context))
        toggles = [self.toggle(name, context) for name in self.names]
        return send(handler, 200, json.dumps({"toggles": [each for each in toggles if each]}).encode())

    def toggle(self, name, context):
        if not self.engine._do_is_enabled(name, context):
            return None
        variant = self.engine._do_get_variant(name, context)
        document = {"name": variant.name, "enabled": variant.enabled, "featureEnabled": True}
        if variant.payload:
            document["payload"] = variant.payload
        return {"name": name, "enabled": True, "variant": document, "impressionData": False}


@pytest.fixture
def unleash(moved, monkeypatch):
    monkeypatch.setattr(source, "WAIT", 0)
    moved.load(make_recording(32))
    [features] = [
        each["answer"]
        for each in moved.recording["requests"]
        if each["path"] == "/api/client/features" and each["token"] == "p0-production"
    ]
    frontend = Frontend(features)
    moved.lie = frontend.answer
    return moved, frontend


@pytest.fixture
def prove(unleash, capsys):
    return lambda: run_step("prove", unleash[0].address, capsys, "--users", "50")


def test_users_of_frontends_get_the_same_from_both(prove, unleash):
    status, text = prove()
    assert (status, "token browser (production): /api/frontend was asked for 20 users" in text) == (
        0,
        True,
    ), text
    tokens, contexts = zip(*unleash[1].asked, strict=True)
    assert ({*tokens}, len(contexts)) == ({next(iter(tokens))}, 20)
    # Unleash ignores currentTime, so that a proof that sent one would compare two different moments.
    assert all(context["sessionId"] and "currentTime" not in context for context in contexts)
    assert {context["properties"].get("cartTotal") for context in contexts} > {None}


def test_users_who_get_something_else_are_counted_with_an_example(prove):
    Strategy.objects.filter(flag__name="p0.flag-00028", environment="production").update(
        constraints=[], parameters={"rollout": "0", "stickiness": "userId", "groupId": "g"}
    )
    status, text = prove()
    part = text[text.index("token browser") :]
    assert status == 2
    assert "1 of 15 flags differ" in part
    assert "p0.flag-00028: " in part
    assert " of 20: " in part
    assert " there, off here (" in part
    assert "rolled out to 0 %" in part or "0 %" in part


def test_what_chance_decides_is_not_compared(prove):
    Strategy.objects.filter(flag__name="p0.flag-00028", environment="production").update(
        constraints=[], parameters={"rollout": "50", "stickiness": "random", "groupId": "g"}
    )
    _, text = prove()
    assert "p0.flag-00028" not in text[text.index("token browser") :]


@pytest.mark.parametrize(
    ("status", "exit_status", "message"),
    [
        (404, 0, "the other server has no frontend API; its flags are compared with token p0-production"),
        (401, 2, "does not accept the token (status 401)."),
    ],
)
def test_a_server_that_does_not_answer_is_named(status, exit_status, message, prove, unleash):
    unleash[0].lie = lambda handler: path_of(handler) == PATH and send(handler, status, b"{}")
    found, text = prove()
    assert (found, message in text) == (exit_status, True), text


def test_answers_of_another_shape_end_the_proof(prove, unleash):
    unleash[0].lie = lambda handler: path_of(handler) == PATH and send(handler, 200, b'{"toggles": 1}')
    status, text = prove()
    assert (status, "/api/frontend: toggles: " in text) == (1, True), text
