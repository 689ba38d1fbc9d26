"""A type of event is one entry of the table: the log, its exports, pages, forms and documentation know a new one at once."""

from dataclasses import replace

import pytest
from django.db import transaction

from docs.site.reference import list_events
from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.record import Event, record
from groups.access import Caller
from integrations.messages.message import markdown
from integrations.providers import PROVIDERS
from tests.support.flags import make_flag
from tests.support.page_text import page_text


@pytest.fixture
def polished(monkeypatch):
    kind = EventType._new_member_(  # type: ignore[attr-defined]
        EventType, "feature-polished", "polished {flag}", added="polished {flag} for the first time"
    )
    kind._name_ = "FEATURE_POLISHED"
    monkeypatch.setitem(EventType._value2member_map_, kind.value, kind)
    monkeypatch.setitem(EventType._member_map_, kind.name, kind)
    monkeypatch.setattr(EventType, "_member_names_", [*EventType._member_names_, kind.name])
    webhook = PROVIDERS["webhook"]
    monkeypatch.setitem(PROVIDERS, "webhook", replace(webhook, events=(*webhook.events, kind.value)))
    return kind


def test_a_new_event_is_known_everywhere(api, browse, shop, polished):
    flag = make_flag("cart")
    with transaction.atomic():
        record(Event.of_flag(polished, flag, before={"shine": 1}, after={"shine": 2}), actor=Caller.system())
    admin, page = api["admin"], browse("admin")

    [event] = admin.get("/api/admin/events?type=IS:feature-polished").json()["events"]
    assert event["summary"].endswith("polished flag cart")
    assert "polished cart" in page_text(page.get("/activity/?kind=flags"))
    assert b"polished flag cart" in b"".join(page.get("/activity/?format=csv").streaming_content)
    assert "polished" in page_text(page.get("/projects/shop/features/cart/"))
    assert "polished flag cart" in markdown(AuditEvent.objects.latest("pk"))
    assert "Polished a flag" in page_text(page.get("/integrations/new/webhook"))
    assert "| `feature-polished` | … polished flag *feature* |" in list_events()


def test_a_first_event_can_have_a_sentence_of_its_own(browse, shop, polished):
    with transaction.atomic():
        record(Event.of_flag(polished, make_flag("cart"), after={"shine": 2}), actor=Caller.system())
    assert "polished cart for the first time" in page_text(browse("admin").get("/activity/"))


def test_a_type_of_a_later_version_has_a_sentence_too(api, shop):
    AuditEvent.objects.create(type="wheel-created", actor_name="Kim", project="shop", subject="round")
    [event] = api["admin"].get("/api/admin/events?type=IS:wheel-created").json()["events"]
    assert event["summary"] == "Kim created wheel round"
