"""Permissions by root role, project role and environment, as decided by groups.access."""

import pytest

from flagadmin.core.errors import NoAccess
from groups.access import NOTHING, Caller, read_rights_of_user
from groups.authentication import authenticate_secret
from groups.models import Grant, Group, GroupMembership, Role, RolePermission
from groups.permissions import BuiltIn, Permission
from tests.support.cast import PROJECT_ROLES, ROOT_ROLES, make_group, make_project, make_token, make_user

P = Permission


def test_admin_may_do_everything(callers):
    admin = callers("admin")
    assert admin.can(P.DELETE_PROJECT, project="shop")
    assert admin.can(P.READ_ROLE)
    assert admin.can(P.UPDATE_FEATURE_ENVIRONMENT, project="shop", environment="production")


def test_editors_project_rights_end_at_the_default_project(callers):
    editor = callers("editor")
    assert editor.can(P.CREATE_FEATURE, project="default")
    assert not editor.can(P.CREATE_FEATURE, project="shop")
    assert editor.can(P.CREATE_SEGMENT)
    assert not editor.can(P.READ_ROLE)


def test_viewer_reads_all_and_changes_nothing(callers):
    viewer = callers("viewer")
    assert viewer.readable_projects is None
    assert not any(viewer.can(p, project="default", environment="development") for p in P)


def test_project_roles_end_at_their_project(callers):
    member = callers("member")
    assert member.can(P.UPDATE_FEATURE, project="shop")
    assert member.can(P.UPDATE_FEATURE_ENVIRONMENT, project="shop", environment="production")
    assert not member.can(P.UPDATE_FEATURE, project="default")
    assert not member.can(P.DELETE_PROJECT, project="shop")
    assert callers("owner").can(P.DELETE_PROJECT, project="shop")
    assert member.readable_projects == {"shop"}


def test_outsider_sees_nothing(callers):
    assert callers("outsider").readable_projects == frozenset()
    assert not callers("outsider").can_read("default")


def test_a_refusal_names_a_project_only_to_those_who_read_it(callers):
    for name, named in {"reader": True, "outsider": False}.items():
        with pytest.raises(NoAccess) as refused:
            callers(name).check(P.UPDATE_FEATURE, project="shop")
        assert ("in Shop" in refused.value.message) is named


@pytest.mark.parametrize("kind", ["backend", "frontend"])
def test_the_token_of_an_sdk_has_no_rights(shop, kind):
    caller, _ = authenticate_secret(make_token(kind, projects=["shop"], environment="production"))
    assert caller.rights is NOTHING


def test_a_group_gives_what_its_members_lack(callers, people, shop):
    make_project("docs")
    group = Group.objects.create(name="writers", root_role_id=BuiltIn.VIEWER)
    GroupMembership.objects.create(group=group, user=people["outsider"])
    Grant.objects.create(role_id=BuiltIn.MEMBER, project_id="docs", group=group)
    caller = callers("outsider")
    assert caller.can(P.UPDATE_FEATURE, project="docs")
    assert not caller.can(P.UPDATE_FEATURE, project="shop")
    assert caller.readable_projects is None


def test_permission_in_one_environment_only(people, shop):
    role = Role.objects.create(name="Dev switcher", type="custom")
    RolePermission.objects.create(
        role=role, permission=P.UPDATE_FEATURE_ENVIRONMENT, environment_id="development"
    )
    Grant.objects.create(role=role, project=shop, user=people["outsider"])
    caller = Caller(user=people["outsider"])
    assert caller.can(P.UPDATE_FEATURE_ENVIRONMENT, project="shop", environment="development")
    assert not caller.can(P.UPDATE_FEATURE_ENVIRONMENT, project="shop", environment="production")
    assert not caller.can(P.UPDATE_FEATURE_ENVIRONMENT, project="shop")


def test_a_project_role_gives_no_root_permission(people, shop):
    role = Role.objects.create(name="Sly", type="custom")
    RolePermission.objects.create(role=role, permission=P.ADMIN)
    RolePermission.objects.create(role=role, permission=P.CREATE_SEGMENT)
    Grant.objects.create(role=role, project=shop, user=people["outsider"])
    caller = Caller(user=people["outsider"])
    assert not caller.is_admin
    assert not caller.can(P.CREATE_SEGMENT)


def test_a_disabled_person_has_no_rights(people):
    people["admin"].is_active = False
    assert not Caller(user=people["admin"]).is_admin
    assert not Caller(user=people["admin"]).can_read("default")


def test_one_query_for_all_checks_of_a_request(callers, django_assert_num_queries):
    caller = callers("owner")
    with django_assert_num_queries(1):
        for permission in P:
            caller.can(permission, project="shop", environment="production")
        assert caller.readable_projects == {"shop"}


@pytest.mark.parametrize("name", [*ROOT_ROLES, *PROJECT_ROLES, "service", "outsider"])
def test_a_personal_token_is_found_with_the_rights_of_its_user_and_of_nobody_else(
    people, shop, name, django_assert_num_queries
):
    group = make_group("testers", people["outsider"], people["owner"], root_role=BuiltIn.VIEWER)
    Grant.objects.create(role_id=BuiltIn.MEMBER, project_id="default", group=group)
    secret = make_token("personal", user=people[name])
    authenticate_secret(secret)  # notes the token's use, once a minute
    with django_assert_num_queries(1):
        caller, _ = authenticate_secret(secret)
        rights = caller.rights
    assert rights == read_rights_of_user(people[name].pk)
    assert rights.is_admin == (name == "admin")


def test_rights_that_have_been_taken_away_are_gone_with_the_next_authentication(people, shop):
    secret = make_token("personal", user=people["owner"])
    assert authenticate_secret(secret)[0].can(P.DELETE_PROJECT, project="shop")
    Grant.objects.filter(user=people["owner"]).delete()
    assert not authenticate_secret(secret)[0].can_read("shop")


def test_the_refusal_names_permission_and_place(callers):
    with pytest.raises(NoAccess) as refusal:
        callers("member").check(P.DELETE_PROJECT, project="shop")
    assert refusal.value.message == 'You need the "Archive and delete the project" permission in Shop.'
    assert refusal.value.extra == {"permissions": ["DELETE_PROJECT"]}


def test_the_refusal_names_the_environment(callers):
    with pytest.raises(NoAccess, match=r'You need the "Add strategies" permission in Shop \(production\)\.'):
        callers("reader").check(P.CREATE_FEATURE_STRATEGY, project="shop", environment="production")


def test_the_refusal_names_all_that_would_do(callers):
    with pytest.raises(
        NoAccess, match='You need the "View backend tokens" or "View frontend tokens" permission'
    ):
        callers("viewer").check_any([P.ADMIN, P.READ_CLIENT_API_TOKEN, P.READ_FRONTEND_API_TOKEN])
    with pytest.raises(NoAccess, match='"Manage the project" or "Edit settings" permission in Shop'):
        callers("reader").check_any([P.UPDATE_PROJECT, P.PROJECT_SETTINGS_WRITE], project="shop")


def test_service_accounts_have_rights_as_people_do(people):
    assert Caller(user=people["service"]).can(P.CREATE_FEATURE, project="default")
    assert not make_user("nobody-service", is_service=True).is_staff
