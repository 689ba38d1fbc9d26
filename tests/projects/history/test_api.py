"""GET /api/admin/events: callers see the events of the projects they may read, and no others."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.record import Event, record
from groups.access import Caller
from groups.models import Role
from tests.support.cast import make_project
from tests.support.for_each import for_each

URL = "/api/admin/events"


def happened(type_, actor=None, **fields):
    with transaction.atomic():
        record(Event(type=type_, **fields), actor=actor or Caller.system())


@pytest.fixture
def events(people):
    make_project("secret")
    happened(EventType.FEATURE_CREATED, project="shop", feature="cart", after={"name": "cart"})
    happened(EventType.FEATURE_ENVIRONMENT_ENABLED, project="shop", environment="production", feature="cart")
    happened(EventType.FEATURE_CREATED, project="secret", feature="stealth")
    happened(EventType.SEGMENT_CREATED, subject="vip")
    happened(EventType.USER_CREATED, Caller(user=people["admin"]), subject="anna")
    happened(EventType.PROJECT_DELETED, project="gone", subject="gone")


def types(response):
    assert response.status_code == 200, response.json()
    return [event["type"] for event in response.json()["events"]]


def test_events_are_listed_newest_first_with_their_states_in_pages(api, events, people):
    body = api["admin"].get(URL).json()
    assert (body["total"], body["totalEvents"], body["version"]) == (6, 6, 1)
    ids = [event["id"] for event in body["events"]]
    assert ids == sorted(ids, reverse=True)

    page = api["admin"].get(f"{URL}?limit=2&offset=3").json()
    assert ([event["id"] for event in page["events"]], page["total"]) == (ids[3:5], 6)
    beyond = api["admin"].get(f"{URL}?offset=100").json()
    assert (beyond["events"], beyond["total"]) == ([], 6)

    event = api["admin"].get(f"{URL}?type=IS:feature-environment-enabled").json()["events"][0]
    expected = {
        "type": "feature-environment-enabled",
        "createdBy": "flagadmin",
        "createdByUserId": None,
        "project": "shop",
        "environment": "production",
        "featureName": "cart",
        "data": None,
        "preData": None,
        "label": "Feature environment enabled",
        "summary": "flagadmin turned on cart in production",
    }
    assert event | expected == event
    created = api["admin"].get(f"{URL}?type=feature-created&project=shop").json()["events"][0]
    assert created["data"] == {"name": "cart"}

    assert types(api["admin"].get(f"{URL}?createdBy=IS:{people['admin'].pk}")) == ["user-created"]

    for method in ("post", "put", "patch", "delete"):
        assert getattr(api["admin"], method)(URL).status_code == 405
    assert AuditEvent.objects.count() == 6


def test_events_are_in_the_order_of_their_times_not_of_their_ids(api, people):
    now = datetime.now(UTC)
    for number in (2, 4, 1, 3):
        fields = {"type": EventType.FEATURE_CREATED.value, "project": "shop", "feature": str(number)}
        AuditEvent.objects.create(**fields, actor_name="ada", created_at=now - timedelta(hours=number))
    listed = api["admin"].get(URL).json()["events"]
    assert [event["featureName"] for event in listed] == ["1", "2", "3", "4"]


def test_callers_see_events_of_their_projects_whatever_they_ask(api, events, people):
    assert len(types(api["admin"].get(URL))) == len(types(api["admin_token"].get(URL))) == 6
    assert "user-created" not in types(api["viewer"].get(URL))
    assert len(types(api["viewer"].get(URL))) == 5
    assert types(api["reader"].get(URL)) == ["feature-environment-enabled", "feature-created"]
    assert types(api["outsider"].get(URL)) == []

    for url in (
        f"{URL}?project=secret",
        f"{URL}?project=IS:secret",
        "/api/admin/search/events?project=IS:nope",
    ):
        response = api["reader"].get(url)
        assert (response.status_code, response.json()["name"]) == (400, "ValidationError")
        assert "Available: shop." in response.json()["message"]
    assert types(api["reader"].get(f"{URL}/stealth")) == []
    assert "stealth" not in api["reader"].get(f"{URL}?query=stealth").content.decode()

    assert types(api["viewer"].get(f"{URL}?project=IS:gone")) == ["project-deleted"]

    body = api["reader"].get(f"{URL}/cart").json()
    assert (body["toggleName"], body["total"]) == ("cart", 2)

    response = api["viewer"].post(f"{URL}/search", {"project": "shop", "limit": 1})
    assert (response.json()["total"], len(response.json()["events"])) == (2, 1)
    assert api["viewer"].post(f"{URL}/search", []).status_code == 400

    role = Role.objects.create(name="Auditor", type="root-custom")
    role.permissions.create(permission="READ_LOGS")
    people["viewer"].root_role = role
    people["viewer"].save()
    assert "user-created" in types(api["viewer"].get(URL))


@for_each(
    ("query", "count"),
    [
        ("project=IS:shop", 2),
        ("project=IS_ANY_OF:shop,secret", 3),
        ("type=IS:feature-created", 2),
        ("type=IS_ANY_OF:feature-created,segment-created", 3),
        ("type=IS_ANY_OF:feature-created,release-plan-added", 2),
        ("type=IS:no-such-type", 0),
        ("feature=IS:cart", 2),
        ("environment=IS:production", 1),
        ("query=STEAL", 1),
        ("query=vip", 1),
        ("query=%25", 0),
        ("feature=IS:cart&type=IS:feature-created", 1),
        ("from=IS:2020-01-01", 6),
        ("to=IS:2020-01-01", 0),
        ("from=2020-01-01T00:00:00Z&to=IS:2099-12-31", 6),
    ],
)
def test_filters_narrow_the_events(api, events, query, count):
    for path in (URL, "/api/admin/search/events"):
        assert api["admin"].get(f"{path}?{query}").json()["total"] == count


def test_today_counts_as_an_end(standing_clock, api, events):
    today = standing_clock.date()
    assert api["admin"].get(f"{URL}?from=IS:{today}&to=IS:{today}").json()["total"] == 6
    assert api["admin"].get(f"{URL}?from=IS:{today + timedelta(days=1)}").json()["total"] == 0


def test_times_are_included_at_the_start_and_not_at_the_end(api):
    for minute in (29, 30, 31):
        moment = datetime(2026, 11, 21, 14, minute, tzinfo=UTC)
        AuditEvent.objects.create(type="feature-created", feature=f"at-{minute}", created_at=moment)

    def named(query):
        found = api["admin"].get(f"/api/admin/search/events?{query}").json()["events"]
        return [event["featureName"] for event in found]

    assert named("from=IS:2026-11-21T14:30:00Z&to=IS:2026-11-21T14:31:00Z") == ["at-30"]
    assert named("from=2026-11-21T15:31:00%2B01:00&to=2026-11-21") == ["at-31"]
    refused = api["admin"].get(f"{URL}?from=2026-11-21T25:00").json()
    assert "or a time like 2026-11-21T14:30:00Z" in refused["details"][0]["message"]


@for_each(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=x",
        "offset=-1",
        "project=LIKE:shop",
        "from=IS:yesterday",
        "to=2026-13-40",
        "createdBy=IS:anna",
        "bogus=1",
    ],
)
def test_invalid_parameters_are_refused(api, events, query):
    response = api["admin"].get(f"{URL}?{query}")
    assert (response.status_code, response.json()["name"]) == (400, "ValidationError")
    assert query.split("=")[0] in [problem["path"] for problem in response.json()["details"]]


def test_creators_of_events_are_listed(api, people):
    api["owner"].post("/api/admin/projects/shop/features", {"name": "one"})
    api["owner"].post("/api/admin/projects/shop/features", {"name": "two"})
    api["admin_token"].post("/api/admin/projects/shop/features", {"name": "by-token"})
    api["editor"].post("/api/admin/projects/default/features", {"name": "elsewhere"})
    api["admin"].post("/api/admin/user-admin", {"username": "ann", "rootRole": 3}, format="json")
    creators = "/api/admin/event-creators"
    assert api["reader"].get(creators).json() == [{"id": people["owner"].pk, "name": "owner"}]
    for caller, names in (
        ("admin", ["admin", "editor", "owner"]),
        ("viewer", ["editor", "owner"]),
        ("outsider", []),
    ):
        assert [creator["name"] for creator in api[caller].get(creators).json()] == names, caller
