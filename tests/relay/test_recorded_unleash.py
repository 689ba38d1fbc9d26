"""A relay before Unleash gives the answers that Unleash gave, in the recording."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from UnleashClient import UnleashClient

from tests.support.cases import Case, Result, our_result
from tests.support.engine import compiled
from tests.support.live_server import Client
from tests.support.recorded_sdk import FEATURES, recorded_cases
from tests.support.relay import Relay, relaying
from tests.support.upstream import Upstream, make_token, running

pytestmark = pytest.mark.processes

OTHERWISE = {
    "register appName 256": "as by flagadmin, refused at once",
    "delta": "the relay has it, whatever its upstream has",
    "streaming": "the relay has it, whatever its upstream has",
    "api/proxy": "the relay has it, as Unleash Edge",
    "frontend one flag": "the relay has it, as Unleash Edge",
    "tag": "ignored, as by Unleash Edge",
    "tag malformed": "ignored, as by Unleash Edge",
    "edge validate": "of other tokens",
    "health": "the relay says more",
    "ready": "the relay says more",
}
CASES = {name: case for name, case in recorded_cases("/").items() if name not in OTHERWISE}
ETAG = '"76d8bb0e:80:v1"'
TOKENS = {
    "TB (backend)": "default:development.backend-secret",
    "TF (frontend)": "default:development.frontend-secret",
}


class Unleash(Upstream):
    def __init__(self) -> None:
        super().__init__()
        self.has_streams = self.knows_relays = False
        self.add(
            make_token(TOKENS["TB (backend)"], "client", "default"),
            make_token(TOKENS["TF (frontend)"], "frontend", "default"),
        )

    def answer_to(self, secret: str) -> tuple[str, bytes]:
        return ETAG, json.dumps(CASES[FEATURES]["answer"]).encode()


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    with (
        running(Unleash()) as upstream,
        relaying(upstream.port, tmp_path_factory.mktemp("relay"), "--token", TOKENS["TB (backend)"]) as relay,
    ):
        assert relay.flags(TOKENS["TB (backend)"]) != 503
        yield relay


@pytest.mark.parametrize("name", CASES)
def test_answers_equal_the_recorded_ones(name: str, relay: Relay) -> None:
    case = CASES[name]
    headers = {header: value.replace("{etag}", ETAG) for header, value in case["headers"].items()}
    with closing(Client(relay.port, TOKENS.get(case["token"], case["token"] or ""))) as client:
        status, content = client.call(case["method"], case["path"], case.get("body"), **headers)
    assert status == case["status"], content
    if "answer" in case:
        assert comparable(json.loads(content)) == comparable(case["answer"])


CONTEXTS: list[dict[str, Any]] = [
    {"userId": "1", "sessionId": "s"},
    {"userId": "7", "properties": {"country": "NO", "age": "30", "version": "1.2.3"}},
]


@pytest.fixture(scope="module")
def expected() -> list[dict[str, Result]]:
    """By context what the engine finds for each flag."""
    snapshot = compiled(CASES[FEATURES]["answer"])
    return [
        {flag.name: our_result(snapshot, Case(flag.name, context, None, None)) for flag in snapshot.flags}
        for context in CONTEXTS
    ]


def test_an_sdk_evaluates_as_the_engine(
    relay: Relay, tmp_path: Path, expected: list[dict[str, Result]]
) -> None:
    client = UnleashClient(
        f"http://127.0.0.1:{relay.port}/api",
        "check",
        custom_headers={"Authorization": TOKENS["TB (backend)"]},
        cache_directory=str(tmp_path),
    )
    with client:
        results = [
            {
                name: (
                    client.is_enabled(name, dict(context)),
                    client.get_variant(name, dict(context))["name"],
                )
                for name in expected[0]
            }
            for context in CONTEXTS
        ]
    assert results == expected


def test_a_provider_of_openfeature_is_told_what_the_engine_finds(
    relay: Relay, expected: list[dict[str, Result]]
) -> None:
    headers = {"Authorization": f"Bearer {TOKENS['TF (frontend)']}"}
    api.set_provider(OFREPProvider(f"http://127.0.0.1:{relay.port}", headers_factory=lambda: headers))
    try:
        for context, flags in zip(CONTEXTS, expected, strict=True):
            asked = EvaluationContext(context["userId"], context.get("properties") or {})
            for name, (enabled, variant) in flags.items():
                wanted = variant if variant != "disabled" else "enabled" if enabled else "disabled"
                assert variant_of(name, asked) == wanted, name
    finally:
        api.clear_providers()


def variant_of(name: str, context: EvaluationContext) -> str | None:
    """Whatever the type of its value is."""
    client = api.get_client()
    details = client.get_boolean_details(name, False, context)
    if details.error_code is not None:
        return client.get_object_details(name, {}, context).variant
    return details.variant


def comparable(body: Any) -> Any:
    """Without the order of flags, which is ours to choose in the frontend API, and the revision."""
    lists = {
        member: sorted(body[member], key=lambda flag: flag["name"])
        for member in ("features", "toggles")
        if member in body
    }
    return {member: value for member, value in (body | lists).items() if member != "meta"}
