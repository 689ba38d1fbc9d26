"""Streams of OFREP events: what they tell and when, and their end."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.event_stream import listening
from tests.support.served import Served

pytestmark = pytest.mark.processes
BULK = "/ofrep/v1/evaluate/flags"
FLAG = "projects/default/features/told"


@pytest.fixture
def served(served: Served) -> Served:
    served.flag("told")
    return served


def make_token(served: Served) -> str:
    return served.token("default", tokenName="web", type="frontend")


def stream_of(served: Served, secret: str) -> str:
    [stream] = served.call(secret, "POST", BULK, {})["eventStreams"]
    uri: str = stream["endpoint"]["requestUri"]
    return uri


def test_what_is_told_and_when(served: Served) -> None:
    secret = make_token(served)
    uri = stream_of(served, secret)
    with listening(served.port, "", path=uri) as client:
        first = client.next()
        assert (first.name, first.fields["data"]) == ("message", '{"type":"refetchEvaluation"}')
        served.admin("POST", "projects/default/features", {"name": f"flag-{first.version}"})
        assert client.next().version != first.version
        known = client.blocks[-1].version
    with listening(served.port, "", known, path=uri) as client:
        served.admin("PUT", FLAG, {"description": f"after {known}"})
        assert client.next().version != known  # nothing was told before: it was known


def test_a_date_that_is_reached_is_told(served: Served) -> None:
    """The more time there is, the longer it took to open a stream before: a busy machine may be late."""
    place = f"{FLAG}/environments/development/strategies"
    uri = stream_of(served, make_token(served))
    for seconds in (2, 4, 8, 16, 32):
        moment = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=seconds)
        date = {"contextName": "currentTime", "operator": "DATE_AFTER", "value": f"{moment:%FT%TZ}"}
        strategy = served.admin("POST", place, {"name": "default", "constraints": [date]})["id"]
        with listening(served.port, "", path=uri) as client:
            first = client.next()
            if in_time := datetime.now(UTC) < moment:
                assert client.next().version != first.version
                assert datetime.now(UTC) >= moment
        served.admin("DELETE", f"{place}/{strategy}")
        if in_time:
            return
    raise AssertionError("no stream was opened in time")


def test_a_stream_ends_with_its_token(served: Served) -> None:
    secret = make_token(served)
    with listening(served.port, "", path=stream_of(served, secret)) as client:
        client.next()
        served.admin("DELETE", f"api-tokens/{secret}")
        client.rest()
    with listening(served.port, secret, path="/ofrep/v1/events") as refused:
        assert (refused.status, refused.body()["errorCode"]) == (401, "GENERAL")
