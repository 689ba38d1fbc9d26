"""OpenFeature's own SDK and OFREP provider for Python get their flags from here."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.flag_evaluation import FlagEvaluationDetails

from tests.support.cast import make_token
from tests.support.openfeature import ASKED, EXAMPLE_SAYS, Asked, example, make_flags, programs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]


@pytest.fixture
def token(transactional_db: None) -> str:
    make_flags()
    return make_token("backend", projects=["default"], environment="development")


@pytest.fixture
def sdk(live_server: Any, token: str) -> Iterator[OpenFeatureClient]:
    yield client_of(live_server.url, {"Authorization": f"Bearer {token}"})
    api.clear_providers()


def client_of(
    url: str, headers: dict[str, str], provider: type[OFREPProvider] = OFREPProvider
) -> OpenFeatureClient:
    api.set_provider(provider(url, headers_factory=lambda: headers))
    return api.get_client()


def documented_provider() -> type[OFREPProvider]:
    """The class in docs/openfeature.md."""
    names: dict[str, Any] = {}
    exec(programs("python")[1], names)
    return names["StrictProvider"]


def context_of(given: dict[str, Any]) -> EvaluationContext:
    attributes = {name: value for name, value in given.items() if name != "targetingKey"}
    return EvaluationContext(given.get("targetingKey"), attributes)


def details(sdk: OpenFeatureClient, asked: Asked) -> FlagEvaluationDetails[Any]:
    evaluate = getattr(sdk, f"get_{asked.type}_details")
    return evaluate(asked.key, asked.default, context_of(asked.context))


def test_what_applications_get(live_server: Any, token: str) -> None:
    sdk = client_of(live_server.url, {"X-API-Key": token}, documented_provider())
    for asked in ASKED:
        found = details(sdk, asked)
        assert (found.value, found.reason, found.variant, found.error_code) == asked[4:], found
        assert type(found.value) is type(asked.value)
        if not asked.error:
            assert found.flag_metadata["why"]
            assert found.flag_metadata["project"] == "default"


def test_only_integers_need_the_documented_provider(sdk: OpenFeatureClient) -> None:
    """In Python, True and False are integers, also to OpenFeature's provider."""
    differ = set()
    for asked in ASKED:
        found = details(sdk, asked)
        if (found.value, found.reason, found.variant, found.error_code) != asked[4:]:
            differ.add((asked.type, type(found.value)))
    assert differ == {("integer", bool)}


def test_a_wrong_token_gets_the_default(live_server: Any, sdk: OpenFeatureClient) -> None:
    wrong = client_of(live_server.url, {"X-API-Key": "*:development.wrong"})
    found = wrong.get_boolean_details("on", False)
    assert (found.value, found.error_code, found.error_message) == (False, "GENERAL", "unauthorized")


def test_an_api_key_header_is_accepted(live_server: Any, token: str, sdk: OpenFeatureClient) -> None:
    assert client_of(live_server.url, {"X-API-Key": token}).get_boolean_value("on", False)


def test_the_documented_example_runs(live_server: Any, token: str) -> None:
    program = example("python", live_server.url, token)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == f"True SPLIT {EXAMPLE_SAYS}\n", done.stderr
