"""What somebody may not see is answered as if it did not exist, and no answer is kept by a cache."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from groups.models import Grant, Group, GroupMembership, Role, RolePermission
from groups.permissions import BuiltIn
from projects.deletion.execute import delete_project
from projects.models import Relay
from projects.relays import reports
from tests.support.cast import client, make_token, make_user
from tests.support.records import refused
from tests.support.signals import make_rule, make_source

pytestmark = pytest.mark.django_db
SIGNALS = "/api/admin/signals"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", ""),
        ("delete", ""),
        ("post", "/token"),
        ("get", "/received"),
        ("post", "/rules"),
        ("get", "/rules/{rule}"),
        ("put", "/rules/{rule}"),
        ("delete", "/rules/{rule}"),
        ("post", "/rules/{rule}/try"),
    ],
)
def test_sources_of_signals_are_as_if_they_did_not_exist(api, shop, method, path):
    source = make_source()
    rule = make_rule(source).pk
    answers = []
    for key in (source.pk, source.pk + 1_000):
        call = getattr(api["viewer"], method)
        record = refused(call(f"{SIGNALS}/{key}{path.format(rule=rule)}", {}), 404, "NotFoundError")
        answers.append((record["name"], record["message"]))
    assert answers[0] == answers[1]


def test_pages_of_sources_too(browse, shop):
    source = make_source()
    for key in (source.pk, source.pk + 1_000):
        assert browse("viewer").get(f"/signals/{key}/").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere/",
        "/projects/nowhere/",
        "/signals/999/",
        "/import/nowhere/",
        "/static-nowhere",
        "/users/999/",
    ],
)
@pytest.mark.parametrize("who", ["admin", None])
def test_no_error_page_is_kept_by_a_cache(browse, client, shop, path, who):
    answer = (browse(who) if who else client).get(path)
    assert answer.status_code in (301, 302, 404)
    assert "no-store" in answer["Cache-Control"]


def test_a_project_made_anew_shows_no_event_of_the_former(api, browse, callers, people):
    admin, member = api["admin"], api["member"]
    for name in ("Former name", "Present name"):
        made = admin.post("/api/admin/projects", {"id": "anew", "name": name})
        assert made.status_code == 201
        if name == "Former name":
            delete_project("anew", caller=callers("admin"))
    Grant.objects.create(role_id=BuiltIn.MEMBER, project_id="anew", user=people["member"])
    for who in ("admin", "member"):
        shown = browse(who).get("/projects/anew/activity/", follow=True).text
        assert "Deleted project" not in shown
        assert shown.count("created project") <= 1
    events = "/api/admin/events?project=IS:anew"
    types = [event["type"] for event in admin.get(events).json()["events"]]
    assert sorted(types) == ["project-created", "project-created", "project-deleted"]
    [event] = member.get(events).json()["events"]
    assert event["data"]["name"] == "Present name"


def test_a_token_pushes_no_relay_of_another_out(shop, monkeypatch):
    monkeypatch.setattr(reports, "MAX_RELAYS", 5)
    real, other = (client(make_token("backend", environment="production", name=name)) for name in "ab")

    def say(api: Any, *names: str) -> None:
        relay = {
            "region": "eu",
            "version": "1",
            "uptimeSeconds": 1,
            "intervalSeconds": 60,
            "flagsAgeSeconds": 1,
        }
        relay |= {"tokens": 1, "clients": 1, "streams": 1}
        sent = [relay | {"id": name} for name in names]
        assert api.post("/api/client/relays", {"relays": sent}).status_code == 202

    say(real, "real-relay-1", "real-relay-2")
    say(other, *(f"made-up-relay-{number}" for number in range(20)))
    kept = set(Relay.objects.values_list("identifier", flat=True))
    assert len(kept) == 5
    assert {"real-relay-1", "real-relay-2"} <= kept


def test_owners_learn_the_names_of_their_groups_only(api, browse, people, shop):
    for name in ("Secret merger", "Own team"):
        Group.objects.create(name=name)
    GroupMembership.objects.create(group=Group.objects.get(name="Own team"), user=people["owner"])
    page = browse("owner").get("/projects/shop/access/invite/").text
    assert "Own team" in page
    assert "Secret merger" not in page
    listed = api["owner"].get("/api/admin/user-admin/access").json()["groups"]
    assert [group["name"] for group in listed] == ["Own team"]
    assert "Secret merger" in browse("admin").get("/projects/shop/access/invite/").text


@pytest.mark.parametrize(("guarded", "status"), [(False, 200), (True, 403)])
def test_a_setting_leaves_tokens_of_production_to_owners(api, shop, settings, guarded, status):
    settings.GUARD_PRODUCTION_TOKENS = guarded
    body = {"tokenName": "web", "type": "client", "environment": "production", "projects": ["shop"]}
    for who, expected in (("member", status), ("owner", 200)):
        made = api["owner"].post("/api/admin/projects/shop/api-tokens", body).json()
        path = f"/api/admin/projects/shop/api-tokens/{made['secret']}"
        assert api[who].delete(path).status_code == expected


@pytest.mark.parametrize("projects", [["shop"], ["*"]])
def test_the_setting_holds_for_permissions_about_all_tokens_too(api, people, shop, settings, projects):
    settings.GUARD_PRODUCTION_TOKENS = True
    verbs = "UPDATE_CLIENT_API_TOKEN", "DELETE_CLIENT_API_TOKEN"
    role = Role.objects.create(name="Tokens", type="root-custom")
    RolePermission.objects.bulk_create(RolePermission(role=role, permission=verb) for verb in verbs)
    robert = client(make_token("personal", user=make_user("robert", root_role=role.pk)))
    body = {"tokenName": "web", "type": "client", "environment": "production", "projects": projects}
    made = api["admin"].post("/api/admin/api-tokens", body, format="json").json()
    path = f"/api/admin/api-tokens/{made['secret']}"
    soon = {"expiresAt": (timezone.now() + timedelta(seconds=1)).isoformat()}
    assert robert.put(path, soon, format="json").status_code == 403
    assert robert.delete(path).status_code == 403
    assert api["admin"].put(path, soon, format="json").status_code == 200
