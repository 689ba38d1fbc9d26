"""/calendar/: an address of one's own, with scheduled change requests and flags that may be stale."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from icalendar import Calendar

from flagadmin.core.audit.models import AuditEvent
from groups.models import Grant, User
from integrations.calendar.pages import create_feed
from integrations.models import CalendarFeed
from projects.models import Flag
from releases.models import ChangeRequest, Schedule
from tests.support.cast import make_project
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db
NOW = timezone.now().replace(microsecond=0)


@pytest.fixture
def request_at(shop, people):
    """A change request of the shop that is applied in two days."""
    request = ChangeRequest.objects.create(
        project=shop, environment_id="production", author=people["member"], author_name="member", title="Half, of them", state="Scheduled"
    )  # fmt: skip
    Schedule.objects.create(
        request=request, at=NOW + timedelta(days=2), by=people["member"], by_name="member"
    )
    return request


def make_flag(name, project, days_ago, **fields):
    return Flag.objects.create(
        name=name, project=project, created_at=NOW - timedelta(days=days_ago), **fields
    )


def read(token, query=""):
    answer = Client().get(f"/calendar/{token}.ics{query}")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/calendar; charset=utf-8"
    return {str(event["summary"]): event for event in Calendar.from_ical(answer.content).walk("VEVENT")}


def test_scheduled_requests_and_lifetimes(request_at, shop, callers):
    make_flag("cart", shop, 30)
    make_flag("marked", shop, 30, stale=True)
    make_flag("gone", shop, 30, archived_at=NOW)
    make_flag("ancient", shop, 3000)
    make_flag("forever", shop, 30, type="kill-switch")
    events = read(create_feed(caller=callers("viewer")))
    title = f"Change request #{request_at.pk}: Half, of them (shop, production)"
    assert set(events) == {title, "cart may be stale (shop)"}
    assert events[title]["dtstart"].dt == NOW + timedelta(days=2)
    assert str(events[title]["url"]).endswith(f"/projects/shop/change-requests/{request_at.pk}/")
    assert events["cart may be stale (shop)"]["dtstart"].dt == (NOW + timedelta(days=10)).date()


def test_only_what_its_owner_may_read_now(request_at, shop, people, callers):
    other = make_project("other")
    make_flag("cart", shop, 1)
    make_flag("elsewhere", other, 1)
    token = create_feed(caller=callers("reader"))
    assert len(read(token)) == 2
    assert not read(token, "?project=other")
    assert set(read(create_feed(caller=callers("admin")), "?project=other")) == {
        "elsewhere may be stale (other)"
    }
    Grant.objects.filter(user=people["reader"]).delete()
    assert not read(token)


def test_who_may_no_longer_log_in_has_no_calendar(callers, people):
    token = create_feed(caller=callers("member"))
    User.objects.filter(pk=people["member"].pk).update(is_active=False)
    assert Client().get(f"/calendar/{token}.ics").status_code == 404
    assert Client().get("/calendar/nonsense.ics").status_code == 404


def test_its_page_shows_the_address_once_and_replaces_it(browse, shop):
    member = browse("member")
    first, second = (
        re.search(
            r"http://testserver/calendar/([\w-]{43})\.ics", member.post("/calendar/", follow=True).text
        )[1]
        for _ in range(2)
    )
    assert Client().get(f"/calendar/{first}.ics").status_code == 404
    assert read(second) == {}
    assert second not in member.get("/calendar/").text
    assert "It was created and shown once" in page_text(member.get("/calendar/?created", follow=True))
    assert "Deleted the calendar" in page_text(member.post("/calendar/delete", follow=True))
    assert not CalendarFeed.objects.exists()
    kinds = (
        AuditEvent.objects.filter(type__startswith="calendar-").order_by("id").values_list("type", flat=True)
    )
    assert list(kinds) == ["calendar-feed-created", "calendar-feed-created", "calendar-feed-deleted"]
    assert member.post("/calendar/delete").status_code in (302, 404)
