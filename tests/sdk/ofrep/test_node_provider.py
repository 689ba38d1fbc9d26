"""OpenFeature's own SDK and OFREP provider for servers in Node get their flags from here."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.cast import make_token
from tests.support.node_packages import installed
from tests.support.openfeature import ASKED, EXAMPLE_SAYS, Asked, ask, example, make_flags
from tests.support.programs import program

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]


@pytest.fixture(scope="module")
def folder() -> Path:
    return installed("openfeature")


@pytest.fixture
def token(transactional_db: None) -> str:
    make_flags()
    return make_token("backend", projects=["default"], environment="development")


def node(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [program("node"), *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def details(folder: Path, url: str, headers: dict[str, str], *asked: Asked) -> list[dict[str, Any]]:
    questions = json.dumps([one._asdict() for one in asked])
    return json.loads(node(folder, "ask.mjs", questions, url, json.dumps(headers)))


def test_what_applications_get(folder: Path, live_server: Any, token: str) -> None:
    every = details(folder, live_server.url, {"Authorization": f"Bearer {token}"}, *ASKED)
    for asked, found in zip(ASKED, every, strict=True):
        got = found["value"], found["reason"], found.get("variant"), found.get("errorCode")
        assert got == asked[4:], found
        if not asked.error:
            assert found["flagMetadata"]["why"]


def test_a_wrong_token_gets_the_default(folder: Path, live_server: Any, token: str) -> None:
    [found] = details(folder, live_server.url, {"X-API-Key": "*:development.wrong"}, ask("boolean", "on"))
    assert (found["value"], found["reason"], found["errorCode"]) == (False, "ERROR", "GENERAL")


def test_the_documented_example_runs(folder: Path, live_server: Any, token: str) -> None:
    said = node(folder, "--input-type=module", "--eval", example("js", live_server.url, token))
    assert said == f"true SPLIT {EXAMPLE_SAYS}\n"
