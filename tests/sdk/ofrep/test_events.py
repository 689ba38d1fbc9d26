"""GET /ofrep/v1/events: who may listen for changes, and with what."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from groups.models import ApiToken
from tests.support.cast import client, make_token
from tests.support.flags import make_flag
from tests.support.ofrep import FLAGS

pytestmark = pytest.mark.django_db
PAGE = {"Origin": "https://app.example.com"}


def uri(who: Any) -> str:
    [stream] = who.post(FLAGS, {}).json()["eventStreams"]
    assert stream["type"] == "sse"
    return stream["endpoint"]["requestUri"]


def test_the_ticket_is_all_that_is_needed(web: Any) -> None:
    answer: Any = client().get(uri(web), headers=PAGE)
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/event-stream")
    assert (answer["Cache-Control"], answer["X-Accel-Buffering"]) == ("no-store", "no")
    assert answer["Access-Control-Allow-Origin"] == "*"
    token = ApiToken.objects.get()
    assert token.seen_at
    assert answer.stream.token == token.pk
    assert answer.stream.scope.environment == "development"
    assert answer.stream.scope.projects == ("default",)
    assert answer.stream.version is None
    again: Any = client().get(uri(web), headers={"Last-Event-ID": "7"})
    assert again.stream.version == 7


def test_a_token_keeps_its_ticket_and_shows_it_to_nobody(web: Any) -> None:
    first = uri(web)
    make_flag("new", "default")
    assert uri(web) == first
    assert ApiToken.objects.get().secret_hash not in first


def test_tokens_in_headers_will_do(web: Any) -> None:
    assert web.get("/ofrep/v1/events").status_code == 200
    backend = client(make_token("backend", environment="development"))
    answer = backend.get("/ofrep/v1/events", headers=PAGE)
    assert answer.status_code == 200
    assert not answer.has_header("Access-Control-Allow-Origin")


@pytest.mark.parametrize(
    "end",
    [
        lambda: ApiToken.objects.all().delete(),
        lambda: ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1)),
        lambda: ApiToken.objects.update(secret_hash="0" * 64),
    ],
)
def test_a_ticket_ends_with_its_token(web: Any, end: Any) -> None:
    where = uri(web)
    end()
    answer = client().get(where, headers=PAGE)
    assert (answer.status_code, answer.json()["errorCode"]) == (401, "GENERAL")
    assert answer["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize(
    "change", [lambda ticket: ticket[:-1], lambda ticket: "1" + ticket, lambda ticket: "x"]
)
def test_a_forged_ticket_is_refused(web: Any, change: Any) -> None:
    where, _, ticket = uri(web).partition("ticket=")
    assert client().get(f"{where}ticket={change(ticket)}").status_code == 401


def test_a_ticket_opens_nothing_else(web: Any) -> None:
    _, _, ticket = uri(web).partition("?")
    assert client().post(f"{FLAGS}?{ticket}", {}).status_code == 401
    assert client().get(f"/api/frontend?{ticket}").status_code == 401


def test_too_many_streams_are_refused(web: Any, settings: Any) -> None:
    settings.STREAMS_LIMIT = 0
    answer = client().get(uri(web))
    assert (answer.status_code, answer.json()["errorCode"], answer["Retry-After"]) == (429, "GENERAL", "30")
