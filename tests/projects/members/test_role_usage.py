"""The list of projects that use a role."""

from groups.models import Grant, Group, GroupMembership, Role, User
from groups.permissions import BuiltIn
from projects.models import Project
from tests.support.cast import make_project
from tests.support.for_each import for_each
from tests.support.records import refused


def url(role):
    return f"/api/admin/projects/roles/{role}/access"


def grant(project, role, **to):
    Grant.objects.create(project_id=project, role_id=role, **to)


def usage(project, role, users=0, services=0, groups=0, disabled=0):
    return {
        "project": project,
        "role": role,
        "userCount": users,
        "serviceAccountCount": services,
        "groupCount": groups,
        **({"disabledCount": disabled} if disabled else {}),
    }


def test_direct_grants_are_counted_by_project(api, people):
    make_project("Zoo")
    group = Group.objects.create(name="crew")
    for name in ("viewer", "editor", "service"):
        GroupMembership.objects.create(group=group, user=people[name])
    grant("shop", BuiltIn.MEMBER, group=group)
    grant("shop", BuiltIn.MEMBER, group=Group.objects.create(name="empty"))
    grant("shop", BuiltIn.MEMBER, user=people["service"])
    grant("shop", BuiltIn.MEMBER, user=people["viewer"])  # counts once more although the group has it too
    grant("default", BuiltIn.MEMBER, user=people["service"])
    grant("Zoo", BuiltIn.MEMBER, group=group)
    response = api["admin"].get(url(5))
    assert response.status_code == 200
    # By project in code-point order; the cast's member holds Member in shop.
    assert response.json() == {
        "projects": [
            usage("Zoo", 5, groups=1),
            usage("default", 5, services=1),
            usage("shop", 5, users=2, services=1, groups=2),
        ]
    }


def test_a_custom_role(api, people):
    role = Role.objects.create(name="Tester", type=Role.Type.CUSTOM)
    grant("shop", role.pk, user=people["outsider"])
    assert api["admin"].get(url(role.pk)).json() == {"projects": [usage("shop", role.pk, users=1)]}


def test_a_disabled_account_still_holds_its_role_in_an_archived_project(api, people):
    User.objects.filter(pk=people["member"].pk).update(is_active=False)
    assert api["admin"].get(url(5)).json() == {"projects": [usage("shop", 5, users=1, disabled=1)]}

    Project.objects.filter(pk="shop").update(archived_at="2026-01-01T00:00:00Z")
    assert api["admin"].get(url(5)).json()["projects"][0]["project"] == "shop"


@for_each("role", [1, 2, 3])
def test_root_roles_belong_to_no_project(api, role):
    Group.objects.create(name="crew", root_role_id=role)
    assert api["admin"].get(url(role)).json() == {"projects": []}


@for_each("role", ["9999", "0", "-1", "99999999999", "9" * 30])
def test_an_unknown_role_is_held_nowhere(api, role):
    response = api["admin"].get(url(role))
    assert (response.status_code, response.json()) == (200, {"projects": []})


@for_each("role", ["abc", "NaN", "5.5", "5a", "٥", "1e1", " 5"])
def test_an_id_that_is_no_number(api, role):
    record = refused(api["admin"].get(url(role)), 400, "ValidationError")
    assert record["details"][0]["path"] == "roleId"


def test_the_number_of_statements_does_not_grow(api, django_assert_max_num_queries, people):
    for number in range(20):
        make_project(f"p{number}")
        grant(f"p{number}", BuiltIn.MEMBER, user=people["outsider"])
    api["admin"].get(url(5))
    with django_assert_max_num_queries(3):  # the key, its owner's rights, the counts
        assert len(api["admin"].get(url(5)).json()["projects"]) == 21
