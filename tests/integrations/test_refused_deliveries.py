"""Receivers that refuse, claims that expire, and templates whose values would break their JSON."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from flagadmin.console.attention import list_attention
from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.change_options import changing
from groups.access import Caller
from integrations.deliveries import sender
from integrations.deliveries.attempts import REFUSED_FOR
from integrations.models import Delivery, Integration
from tests.support.cast import make_user
from tests.support.page_text import page_text
from tests.support.receiver import deliver, happen, later, make_integration, names_at, receiver, states

__all__ = ["receiver"]
pytestmark = pytest.mark.django_db(transaction=True)
State = Delivery.State


def failing(receiver: Any, status: int = 400) -> Integration:
    receiver.answer = lambda path, count: (status, {}, b"")
    integration = make_integration(f"{receiver.url}/hook")
    happen("a", "b")
    deliver()
    return integration


def test_a_receiver_that_is_being_deployed_is_tried_again_for_some_minutes(receiver: Any) -> None:
    for status in (401, 403, 404):
        integration = failing(receiver, status)
        first = integration.deliveries.earliest("id")
        assert (first.state, first.attempts) == (State.PENDING, 1), status
        integration.deliveries.update(first_sent_at=timezone.now() - REFUSED_FOR - timedelta(seconds=1))
        later(integration)
        deliver()
        first.refresh_from_db()
        assert (first.state, first.attempts) == (State.FAILED, 2), status
        integration.delete()


def test_all_that_failed_is_sent_again_in_its_order(
    receiver: Any, people: Any, api: Any, browse: Any
) -> None:
    integration = failing(receiver)
    assert states(integration) == [State.FAILED, State.FAILED]
    [item] = [each for each in list_attention(Caller(user=people["admin"])) if each.kind == "delivery"]
    assert item.title == f"2 deliveries of Webhook {integration.pk} failed"
    assert not [each for each in list_attention(Caller(user=people["viewer"])) if each.kind == "delivery"]
    page = browse("admin").get(f"/integrations/{integration.pk}/deliveries/")
    assert "Send 2 failed events again" in page_text(page)

    receiver.answer = lambda path, count: (200, {}, b"")
    path = f"/api/admin/addons/{integration.pk}/events/resend-failed"
    assert api["viewer"].post(path).status_code == 403
    assert api["admin"].post(path).json() == {"resent": 2}
    deliver()
    assert states(integration) == [State.SUCCESS, State.SUCCESS]
    assert names_at(receiver)[-2:] == ["a", "b"]
    assert api["admin"].post(path).json() == {"resent": 0}


def test_a_turn_sends_nothing_after_another_server_has_begun_one(receiver: Any) -> None:
    integration = failing(receiver, 200)
    happen("c")
    sender.relay()
    [claimed] = sender.claim()
    Integration.objects.update(send_after=timezone.now(), claimed_until=timezone.now())  # its time has passed
    [another] = sender.claim()
    sender.send_turn(*claimed)
    assert names_at(receiver) == ["a", "b"]
    sender.send_turn(*another)
    assert names_at(receiver) == ["a", "b", "c"]
    integration.refresh_from_db()
    assert integration.claimed_until is None


def test_a_claim_is_renewed_while_it_is_held(receiver: Any) -> None:
    failing(receiver, 200)
    happen("c")
    sender.relay()
    [(pk, until)] = sender.claim()
    claim = sender.Claim(pk, until)
    assert claim.holds()
    integration = Integration.objects.get()
    assert integration.claimed_until == integration.send_after == claim.until > until
    assert sender.claim() == []


TEMPLATE = '{"text": "{{event.createdBy}}: {{event.featureName}}", "all": {{{eventJson}}}}'


@pytest.mark.parametrize("name", ["CORP\\anna", 'O\'Neil "Bo"', "two\nlines", 'x", "forged": "1', "<b>&"])
def test_values_do_not_break_the_json_of_a_template(receiver: Any, name: str) -> None:
    make_integration(f"{receiver.url}/hook", parameters={"bodyTemplate": TEMPLATE})
    with transaction.atomic():
        event = Event(type=EventType.FEATURE_CREATED, project="shop", feature="cart")
        record(event, actor=Caller(user=make_user(name)))
    deliver()
    sent = receiver.at("/hook")[-1].json()
    assert sent["text"] == f"{name}: cart"
    assert sent.keys() == {"text", "all"}
    assert json.loads(sent["all"])["createdBy"] == name


def test_a_template_that_makes_no_json_says_so_and_other_bodies_stay_html(receiver: Any) -> None:
    broken = make_integration(f"{receiver.url}/hook", parameters={"bodyTemplate": "{{event.type}}"})
    text = {"bodyTemplate": "{{event.comment}}", "contentType": "text/html"}
    make_integration(f"{receiver.url}/text", parameters=text)
    with changing(comment="a & b"):
        happen("cart")
    deliver()
    delivery = broken.deliveries.get()
    assert delivery.state == State.WITH_ERRORS
    assert "makes no valid JSON" in delivery.state_details
    assert receiver.at("/text")[0].body == b"a &amp; b"
