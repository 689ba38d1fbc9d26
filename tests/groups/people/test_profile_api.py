"""/api/admin/user/profile and /user/roles: what the caller holds. And what the reference's console reports."""

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.models import Grant
from groups.permissions import BuiltIn
from tests.support.cast import make_group, make_project

PROFILE, ROLES = "/api/admin/user/profile", "/api/admin/user/roles"


def held(api, name, query=""):
    body = api[name].get(ROLES + query).json()
    assert body["version"] == 1
    return {(role["name"], role["project"]) for role in body["roles"]}


def test_profile_of_a_root_role(api):
    profile = api["editor"].get(PROFILE).json()
    assert (profile["rootRole"]["name"], profile["rootRole"]["type"]) == ("Editor", "root")
    assert (profile["projects"], profile["subscriptions"], profile["features"]) == ([], [], [])


def test_profile_of_a_project_s_member(api):
    profile = api["member"].get(PROFILE).json()
    assert (profile["rootRole"], profile["projects"]) == (None, ["shop"])


@pytest.mark.parametrize("path", [PROFILE, ROLES])
def test_an_admin_token_has_no_profile(api, path):
    assert api["admin_token"].get(path).status_code == 404


def test_roles_directly_and_through_groups(api, people):
    make_project("other")
    group = make_group("Team", people["member"], root_role=BuiltIn.VIEWER)
    Grant.objects.create(group=group, role_id=BuiltIn.OWNER, project_id="other")
    Grant.objects.create(group=group, role_id=BuiltIn.MEMBER, project_id="shop")
    assert held(api, "member") == {("Viewer", None), ("Member", "shop"), ("Owner", "other")}
    assert held(api, "member", "?projectId=shop") == {("Member", "shop")}
    assert held(api, "member", "?projectId=nosuch") == set()


def test_only_own_roles_are_listed(api, people):
    assert held(api, "outsider") == set()
    assert held(api, "outsider", "?projectId=shop") == set()


def test_feedback_is_answered_and_stored_nowhere(api, people):
    body = {"feedbackId": "pnps", "neverShow": True}
    answer = api["viewer"].post("/api/admin/feedback", body).json()
    assert answer == body | {"userId": people["viewer"].pk, "given": answer["given"]}
    changed = api["viewer"].put("/api/admin/feedback/pnps", {"neverShow": False}).json()
    assert (changed["feedbackId"], changed["neverShow"]) == ("pnps", False)
    assert api["viewer"].post("/api/admin/splash/new-page").json() == {"splashId": "new-page", "seen": True}
    assert api["viewer"].get("/api/admin/user").json()["feedback"] == []
    assert not AuditEvent.objects.exists()


def test_an_error_of_the_browser_is_accepted_and_not_stored(api):
    answer = api["viewer"].post("/api/admin/record-ui-error", {"errorMessage": "x", "errorStack": ""})
    assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "feedback", {}),
        ("post", "feedback", {"feedbackId": "x", "neverShow": "maybe"}),
        ("put", "feedback/x", {"neverShow": []}),
        ("post", "record-ui-error", {"errorStack": "x"}),
    ],
)
def test_malformed_bodies_are_refused(api, method, path, body):
    assert getattr(api["viewer"], method)(f"/api/admin/{path}", body).status_code == 400
