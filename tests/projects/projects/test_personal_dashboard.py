"""GET /api/admin/personal-dashboard: what concerns the caller, in all projects and in one."""

from datetime import timedelta

from django.utils import timezone

from groups.models import Grant
from groups.permissions import BuiltIn
from projects.models import FavoriteFlag
from projects.projects import personal_dashboard_api
from tests.support.cast import make_group, make_project, make_user
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.records import refused

ALL = "/api/admin/personal-dashboard"
SHOP = "/api/admin/personal-dashboard/shop"


def names(documents):
    return [document["name"] for document in documents]


def test_whom_to_ask(api, people):
    lead = make_user("lead", email="lead@example.com", name="Lea")
    make_group("leads", lead, root_role=BuiltIn.ADMIN)
    make_user("robot", root_role=BuiltIn.ADMIN, is_service=True)
    make_user("former", root_role=BuiltIn.ADMIN, is_active=False)
    body = api["viewer"].get(ALL).json()
    admin, group_admin = body["admins"]
    assert (admin["username"], group_admin) == (
        "admin",
        {"id": lead.pk, "username": "lead", "name": "Lea", "email": "lead@example.com"},
    )
    assert body["projectOwners"] == [{"ownerType": "user", "name": "owner", "email": None}]
    assert api["outsider"].get(ALL).json()["projectOwners"] == []


def test_projects_in_which_the_caller_has_a_role(api, people):
    make_project("lab")
    old = make_project("old", archived_at=timezone.now())
    group = make_group("testers", people["reader"])
    for project in ("lab", old.pk):
        Grant.objects.create(role_id=BuiltIn.MEMBER, project_id=project, group=group)
    make_flag("one", stale=True)
    make_flag("two")
    make_flag("gone", archived=True)
    body = api["reader"].get(ALL).json()
    assert body["projects"] == [
        {"id": "lab", "name": "Lab", "memberCount": 1, "featureCount": 0, "health": 100, "technicalDebt": 0},
        {
            "id": "shop",
            "name": "Shop",
            "memberCount": 3,
            "featureCount": 2,
            "health": 50,
            "technicalDebt": 50,
        },
    ]
    assert api["viewer"].get(ALL).json()["projects"] == []


def test_flags_that_the_caller_marked_or_created(api, people, monkeypatch):
    reader, now = people["reader"], timezone.now()
    for age, name in enumerate(("newest", "newer", "gone")):
        make_flag(name, created_by=reader, created_at=now - timedelta(days=age), archived=name == "gone")
    favorite = make_flag("favorite", created_at=now - timedelta(days=9))
    hidden = make_flag("hidden", "default", created_by=reader)
    for flag in (favorite, hidden):
        FavoriteFlag.objects.create(user=reader, flag=flag)
    make_flag("not-mine")
    flags = api["reader"].get(ALL).json()["flags"]
    assert names(flags) == ["favorite", "newest", "newer"]
    assert (flags[0]["project"], flags[0]["type"]) == ("shop", "release")
    monkeypatch.setattr(personal_dashboard_api, "MAX_FLAGS", 2)
    assert names(api["reader"].get(ALL).json()["flags"]) == ["favorite", "newest"]


def test_an_api_token_has_no_projects_and_flags(api, people):
    make_flag("by-token")
    body = api["admin_token"].get(ALL).json()
    assert (body["projects"], body["flags"], names(body["admins"])) == ([], [], ["admin"])


def test_the_dashboard_of_a_project_has_health_events_owners_and_roles(api, people):
    group = make_group("testers", people["member"])
    Grant.objects.create(role_id=BuiltIn.READER, project_id="shop", group=group)
    for name in ("fresh", "tired"):
        api["member"].post("/api/admin/projects/shop/features", {"name": name})
    api["owner"].post("/api/admin/projects/shop/stale", {"features": ["tired"], "stale": True}, format="json")
    make_flag("old", created_at=timezone.now() - timedelta(days=100))
    body = api["member"].get(SHOP).json()
    assert body["insights"] == {
        "avgHealthCurrentWindow": None,
        "avgHealthPastWindow": None,
        "totalFlags": 3,
        "activeFlags": 1,
        "staleFlags": 1,
        "potentiallyStaleFlags": 1,
        "health": 33,
        "technicalDebt": 67,
    }
    assert body["onboardingStatus"]["status"] == "first-flag-created"
    assert [event["createdBy"] for event in body["latestEvents"]] == ["owner", "member", "member"]
    assert "tired" in body["latestEvents"][0]["summary"]
    assert body["owners"] == [{"ownerType": "user", "name": "owner", "email": None}]
    assert names(body["roles"]) == ["Member", "Reader"]
    assert api["viewer"].get(SHOP).json()["roles"] == []


@for_each("path", [SHOP, f"{ALL}/nope"])
def test_a_project_that_cannot_be_read_is_not_found(api, people, path):
    refused(api["outsider"].get(path), 404, "NotFoundError")
