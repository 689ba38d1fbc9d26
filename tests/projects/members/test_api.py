"""Project roles of users and groups: listing, giving and removing them."""

import pytest

from groups.models import Grant, Group, GroupMembership, Role
from groups.permissions import BuiltIn
from projects.models import Project
from tests.support.cast import make_user
from tests.support.for_each import for_each
from tests.support.records import events, refused

SHOP = "/api/admin/projects/shop"


def held(**by):
    return sorted(Grant.objects.filter(project="shop", **by).values_list("role_id", flat=True))


@pytest.fixture
def crew(people):
    group = Group.objects.create(name="crew")
    GroupMembership.objects.create(group=group, user=people["outsider"])
    return group


def test_access_shows_users_and_groups_with_their_roles(api, people, crew):
    Grant.objects.create(role_id=BuiltIn.READER, project_id="shop", user=people["member"])
    Grant.objects.create(role_id=BuiltIn.MEMBER, project_id="shop", group=crew)
    access = api["reader"].get(f"{SHOP}/access").json()
    assert [(u["username"], u["roleId"], u["roles"]) for u in access["users"]] == [
        ("owner", 4, [4]),
        ("member", 5, [5, 6]),
        ("reader", 6, [6]),
    ]
    (group,) = access["groups"]
    assert (group["name"], group["roles"]) == ("crew", [5])
    assert [member["user"]["username"] for member in group["users"]] == ["outsider"]
    assert [role["name"] for role in access["roles"]] == ["Owner", "Member", "Reader"]


def test_given_to_many_at_once(api, people, crew):
    body = {"roles": [5, 6], "users": [people["outsider"].pk, people["service"].pk], "groups": [crew.pk]}
    assert api["owner"].post(f"{SHOP}/access", body).status_code == 204
    assert api["owner"].post(f"{SHOP}/access", body).status_code == 204
    assert held(user=people["outsider"]) == held(user=people["service"]) == held(group=crew) == [5, 6]
    recorded = events("project-access-added", "project-access-updated")
    assert [event.subject for event in recorded] == ["outsider", "service", "crew"]
    assert recorded[0].after["roles"] == [{"id": 5, "name": "Member"}, {"id": 6, "name": "Reader"}]


def test_one_role_given_to_many(api, people, crew):
    body = {"users": [{"id": people["outsider"].pk}], "groups": [{"id": crew.pk}]}
    assert api["owner"].post(f"{SHOP}/role/5/access", body).status_code == 200
    assert held(user=people["outsider"]) == held(group=crew) == [5]


@for_each("kind", ["user", "group"])
def test_replaced_and_taken_away(api, people, crew, kind):
    row = people["outsider"] if kind == "user" else crew
    url = f"{SHOP}/{kind}s/{row.pk}/roles"
    assert api["owner"].put(url, {"roles": [5]}).status_code == 204
    assert api["owner"].put(url, {"roles": [6]}).status_code == 204
    assert held(**{kind: row}) == [6]
    assert api["owner"].delete(url).status_code == 204
    assert held(**{kind: row}) == []
    told = events("project-access-added", "project-access-updated", "project-access-removed")
    assert [event.type.rsplit("-", 1)[1] for event in told] == ["added", "updated", "removed"]
    assert told[1].before["roles"] == [{"id": 5, "name": "Member"}]
    assert told[2].after is None


@for_each("kind", ["user", "group"])
def test_single_roles_are_added_and_removed(api, people, crew, kind):
    row = people["outsider"] if kind == "user" else crew
    url = f"{SHOP}/{kind}s/{row.pk}/roles"
    assert api["owner"].post(f"{url}/5").status_code == 200
    assert api["owner"].post(f"{url}/6").status_code == 200
    assert held(**{kind: row}) == [5, 6]
    assert api["owner"].delete(f"{url}/5").status_code == 200
    assert api["owner"].delete(f"{url}/5").status_code == 200
    assert held(**{kind: row}) == [6]
    assert api["owner"].put(f"{url}/4").status_code == 200
    assert held(**{kind: row}) == [4]


def test_the_access_works_at_once_and_the_last_owner_may_go(api, people):
    refused(api["outsider"].get(SHOP), 404, "NotFoundError")
    api["owner"].put(f"{SHOP}/users/{people['outsider'].pk}/roles", {"roles": [6]})
    assert api["outsider"].get(SHOP).status_code == 200
    api["owner"].delete(f"{SHOP}/users/{people['outsider'].pk}/roles")
    refused(api["outsider"].get(SHOP), 404, "NotFoundError")

    assert api["owner"].delete(f"{SHOP}/users/{people['owner'].pk}/roles").status_code == 204
    refused(api["owner"].get(SHOP), 404, "NotFoundError")
    assert api["admin"].put(f"{SHOP}/users/{people['owner'].pk}/roles", {"roles": [4]}).status_code == 204


# Nobody gives what they do not hold -----------------------------------------------------------------------


@pytest.fixture
def keeper(people):
    """May write access and switch flags in development, and no more."""
    role = Role.objects.create(name="Keeper", type=Role.Type.CUSTOM)
    role.permissions.create(permission="PROJECT_USER_ACCESS_WRITE")
    role.permissions.create(permission="UPDATE_FEATURE_ENVIRONMENT", environment_id="development")
    people["keeper"] = make_user("keeper")
    Grant.objects.create(role=role, project_id="shop", user=people["keeper"])
    return role


def custom(name, permission, environment=None):
    role = Role.objects.create(name=name, type=Role.Type.CUSTOM)
    role.permissions.create(permission=permission, environment_id=environment)
    return role.pk


def test_nobody_gives_what_they_do_not_hold_but_what_is_held_may_stay(api, people, keeper):
    url = f"{SHOP}/users/{people['outsider'].pk}/roles"
    record = refused(api["keeper"].put(url, {"roles": [4]}), 403, "NoAccessError")
    assert "DELETE_PROJECT" in record["permissions"]
    assert "Owner" in record["message"]
    # Holding it in one environment is not holding it in every one, nor in another.
    for environment in (None, "production"):
        role = custom(f"in {environment}", "UPDATE_FEATURE_ENVIRONMENT", environment)
        refused(api["keeper"].put(url, {"roles": [role]}), 403, "NoAccessError")
    allowed = custom("switcher", "UPDATE_FEATURE_ENVIRONMENT", "development")
    assert api["keeper"].put(url, {"roles": [allowed, 6]}).status_code == 204
    assert held(user=people["outsider"]) == [6, allowed]
    refused(api["keeper"].post(f"{url}/5"), 403, "NoAccessError")
    refused(
        api["keeper"].post(f"{SHOP}/access", {"roles": [5], "users": [people["outsider"].pk]}),
        403,
        "NoAccessError",
    )

    url = f"{SHOP}/users/{people['owner'].pk}/roles"
    assert api["keeper"].put(url, {"roles": [4, 6]}).status_code == 204
    assert held(user=people["owner"]) == [4, 6]


def test_an_editor_gives_nothing_outside_the_default_project(api, people):
    refused(api["editor"].post(f"{SHOP}/access", {}), 403, "NoAccessError")
    default = "/api/admin/projects/default"
    body = {"roles": [5], "users": [people["outsider"].pk]}
    assert api["editor"].post(f"{default}/access", body).status_code == 204


# Refusals -------------------------------------------------------------------------------------------------


@for_each("role", [1, 2, 3, 9999])
def test_only_project_roles(api, people, role):
    url = f"{SHOP}/users/{people['outsider'].pk}/roles"
    record = refused(api["admin"].put(url, {"roles": [role]}), 400, "ValidationError")
    assert "Owner" in record["message"]
    refused(api["admin"].post(f"{url}/{role}"), 400, "ValidationError")


def test_unknown_holders_and_archived_projects(api, people):
    refused(api["owner"].put(f"{SHOP}/users/9999/roles", {"roles": [5]}), 404, "NotFoundError")
    refused(api["owner"].delete(f"{SHOP}/groups/9999/roles"), 404, "NotFoundError")
    refused(api["owner"].put(f"{SHOP}/users/abc/roles", {"roles": [5]}), 400, "ValidationError")
    record = refused(
        api["owner"].post(f"{SHOP}/access", {"roles": [5, 77], "users": [9999], "groups": [9998]}),
        400,
        "ValidationError",
    )
    assert [problem["path"] for problem in record["details"]] == ["roles", "users", "groups"]

    Project.objects.filter(pk="shop").update(archived_at="2026-01-01T00:00:00Z")
    url = f"{SHOP}/users/{people['outsider'].pk}/roles"
    refused(api["owner"].put(url, {"roles": [5]}), 404, "NotFoundError")


@for_each("body", [{}, {"roles": []}, {"roles": "5"}, {"roles": ["x"]}, {"roles": [5], "users": 7}])
def test_bodies_that_are_refused(api, body):
    refused(api["owner"].post(f"{SHOP}/access", body), 400, "ValidationError")


def test_all_access_replaced(api, people, crew):
    outsider = people["outsider"]
    body = {
        "roles": [
            {"id": 4, "users": [people["owner"].pk, outsider.pk], "groups": []},
            {"id": 5, "users": [outsider.pk], "groups": [crew.pk]},
        ]
    }
    response = api["owner"].put(f"{SHOP}/access", body, format="json")
    assert (response.status_code, response.content) == (200, b"")
    assert held(user=people["owner"]) == [4]
    assert held(user=outsider) == [4, 5]
    assert held(group=crew) == [5]
    assert held(user=people["member"]) == held(user=people["reader"]) == []
    added, removed = events("project-access-added"), events("project-access-removed")
    assert {event.subject for event in added} == {"outsider", "crew"}
    assert {event.subject for event in removed} == {"member", "reader"}


def test_nothing_is_replaced_by_what_is_unknown_or_more_than_one_holds(api, people):
    body = {"roles": [{"id": 5, "users": [people["outsider"].pk]}, {"id": 77, "groups": [999]}]}
    record = refused(api["owner"].put(f"{SHOP}/access", body, format="json"), 400, "ValidationError")
    assert [problem["path"] for problem in record["details"]] == ["roles", "roles[1].groups"]
    assert held(user=people["member"]) == [5]

    role = Role.objects.create(name="Boss", type="custom")
    role.permissions.create(permission="PROJECT_USER_ACCESS_WRITE")
    body = {"roles": [{"id": role.pk, "users": [people["owner"].pk]}]}
    record = refused(api["owner"].put(f"{SHOP}/access", body, format="json"), 403, "NoAccessError")
    assert record["permissions"] == ["PROJECT_USER_ACCESS_WRITE"]
    assert held(user=people["owner"]) == [4]
