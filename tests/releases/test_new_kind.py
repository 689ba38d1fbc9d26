"""A kind of change is one class: the API, its document, pages, tools and forecasts know a new one at once."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework import serializers

from flagadmin.console.api_docs.operations import _make_openapi_document
from flagadmin.core.http.fields import Body
from flagadmin.core.http.responses import iso
from projects.flags.actions import update_flag
from projects.models import Flag
from releases.changes import KINDS, Kind
from tests.support.change_requests import REQUESTS, enter, propose, reviewer, sent, turn
from tests.support.mcp_client import call
from tests.support.page_text import page_text

APPLY = "APPLY_CHANGE_REQUEST"


class PaintPayload(Body):
    color = serializers.CharField(max_length=10)


class Paint(Kind):
    action, payload, subject = "paintFlag", PaintPayload, "color"

    def apply(self, target: Any, payload: Any, caller: Any) -> None:
        update_flag(target.project, target.feature, {"description": payload["color"]}, caller=caller)

    def draft(self, state: Any, name: str, payload: Any) -> None:
        state.edit(name, impression_data=payload["color"].startswith("loud"))

    def read(self, target: Any, payload: Any) -> Any:
        return Flag.objects.get(name=target.feature).description or "grey"

    def say(self, target: Any, payload: Any, then: Any) -> str:
        return f"Paint {target.feature} {payload['color']}"

    def show(self, payload: Any, then: Any, now: Any, segments: Any) -> tuple[Any, Any]:
        return f"a {now} one", f"a {payload['color']} one"

    def describe_conflict(self, payload: Any, then: Any, now: Any) -> list[str]:
        return [f"It was {then} and is {now}."]

    def turns_off(self, payload: Any) -> bool:
        return bool(payload["color"] == "black")


@pytest.fixture(autouse=True)
def _paint(monkeypatch: pytest.MonkeyPatch, cart: Any) -> None:
    monkeypatch.setitem(KINDS, "paintFlag", Paint())


def paint(color: str) -> dict[str, Any]:
    return {"feature": "cart", "action": "paintFlag", "payload": {"color": color}}


def test_a_new_kind_is_known_everywhere(api: Any, browse: Any) -> None:
    assert "paintFlag" in _make_openapi_document.__wrapped__().body.decode()
    refused = api["owner"].post(REQUESTS.replace("change-requests", "environments/production/change-requests"), [
        {"feature": "cart", "action": "paintFlag", "payload": {"color": "much too long for it"}}
    ])  # fmt: skip
    assert "[0].payload.color" in refused.content.decode()
    request = sent(api["owner"], paint("loud"))
    page = f"/projects/shop/change-requests/{request['id']}/"
    seen = page_text(browse("viewer").get(page))
    assert "Paint cart loud" in seen
    assert "a grey one" in seen
    assert "a loud one" in seen
    assert "Paint cart loud" in page_text(browse("viewer").get("/projects/shop/change-requests/"))
    [listed] = call(api["viewer"], "list_change_requests", flag="cart")["changeRequests"]
    assert listed["changes"] == ["Paint cart loud"]


def test_it_is_scheduled_and_applied_like_any_other(api: Any, browse: Any) -> None:
    request = sent(api["owner"], paint("loud"))
    kim = reviewer("kim", "APPROVE_CHANGE_REQUEST", APPLY)
    assert enter(kim, request, "Approved").status_code == 200
    at = iso(timezone.now() + timedelta(days=1))
    assert enter(kim, request, "Scheduled", scheduledAt=at).status_code == 200
    assert "Paint cart loud" in page_text(browse("viewer").get("/projects/shop/features/cart/"))
    assert enter(kim, request, "Approved").status_code == 200
    assert enter(kim, request, "Applied").status_code == 200
    assert Flag.objects.get(name="cart").description == "loud"


def test_a_conflict_and_a_second_change_of_the_same_are_its_own(api: Any, browse: Any) -> None:
    propose(api["owner"], paint("loud"), turn(False))
    request = propose(api["owner"], paint("louder"))
    [change] = [each for each in request["features"][0]["changes"] if each["action"] == "paintFlag"]
    assert change["payload"] == {"color": "louder"}
    Flag.objects.update(description="pink")
    page = page_text(browse("owner").get(f"/projects/shop/change-requests/{request['id']}/"))
    assert "It was grey and is pink." in page
