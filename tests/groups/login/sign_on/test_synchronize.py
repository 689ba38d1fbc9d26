"""Groups and root roles that follow the claims of the identity provider."""

from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import NoAccess, ServiceUnavailable
from groups.access import Caller
from groups.groups.actions import change_members
from groups.login.sign_on.accounts import sign_on
from groups.login.sign_on.provider import MAX_GROUPS, Identity
from groups.login.sign_on.settings import OidcSettings
from groups.models import Group, GroupMembership, User
from groups.permissions import BuiltIn
from tests.support.cast import make_group, make_user

ISSUER = "https://login.example.org"


@pytest.fixture
def oidc(settings):
    def set_up(**more: Any) -> None:
        settings.SIGN_ON = OidcSettings(issuer=ISSUER, client_id="flagadmin", groups_claim="groups", **more)

    set_up()
    return set_up


@pytest.fixture
def anna(db):
    make_user("root", root_role=BuiltIn.ADMIN)
    user = make_user("anna")
    SocialAccount.objects.create(user=user, provider=ISSUER, uid="anna")
    return user


@pytest.fixture
def log_in(oidc, anna, settings):
    """Logs in with these values of the groups claim. Returns the names of anna's groups then."""

    def with_groups(*values: str) -> list[str]:
        sign_on(Identity.of({"sub": "anna", "groups": list(values)}, settings.SIGN_ON))
        anna.refresh_from_db()
        return sorted(anna.groups.values_list("name", flat=True))

    return with_groups


def test_groups_come_and_go_with_the_claim(log_in):
    for name in ("dev", "ops", "qa"):
        make_group(name)
    assert log_in("dev", "ops", "unknown") == ["dev", "ops"]
    assert log_in("ops", "qa") == ["ops", "qa"]
    assert log_in() == []
    before, after = AuditEvent.objects.filter(type="group-updated", subject="dev").order_by("id")
    assert (before.before["users"], after.after["users"]) == ([], [])
    assert (before.actor_name, after.actor_name) == ("flagadmin", "flagadmin")


def test_the_same_claim_again_changes_nothing(log_in):
    make_group("dev")
    log_in("dev")
    events = AuditEvent.objects.count()
    log_in("dev")
    assert AuditEvent.objects.count() == events


def test_memberships_by_hand_stay(log_in, anna):
    make_group("dev", anna)
    make_group("ops", anna)
    make_group("qa")
    assert log_in("dev", "qa") == ["dev", "ops", "qa"]
    assert log_in() == ["dev", "ops"]


def test_a_membership_given_again_by_hand_stays(log_in, anna):
    group = make_group("dev")
    log_in("dev")
    change_members(group.pk, remove=[anna.pk], caller=Caller.system())
    change_members(group.pk, add=[anna.pk], caller=Caller.system())
    assert log_in() == ["dev"]


def test_a_group_with_sso_names_matches_only_these(log_in):
    group = make_group("Developers")
    Group.objects.filter(pk=group.pk).update(mappings_sso=["dev", "/all/dev"])
    assert log_in("Developers") == []
    assert log_in("/all/dev") == ["Developers"]


def test_names_match_case_sensitively(log_in):
    make_group("Admins")
    assert log_in("admins", "Admins ") == []


def test_scim_groups_get_their_members_elsewhere(log_in, anna):
    group = make_group("dev")
    Group.objects.filter(pk=group.pk).update(scim_id="1")
    assert log_in("dev") == []
    GroupMembership.objects.create(group=group, user=anna, by_provider=True)
    assert log_in() == ["dev"]


def test_the_first_root_role_that_matches_is_given(log_in, oidc, anna):
    oidc(root_roles=(("ops", "Admin"), ("dev", "editor")))
    log_in("dev", "ops")
    assert anna.root_role_id == BuiltIn.ADMIN
    log_in("dev")
    assert anna.root_role_id == BuiltIn.EDITOR
    log_in()
    assert anna.root_role_id is None
    events = AuditEvent.objects.filter(type="user-updated", subject="anna").order_by("id")
    assert [event.after["rootRole"] for event in events] == [BuiltIn.ADMIN, BuiltIn.EDITOR, None]


def test_a_role_goes_back_to_the_default(log_in, oidc, anna):
    oidc(root_roles=(("ops", "Admin"),), root_role="Viewer")
    log_in("ops")
    log_in()
    assert anna.root_role_id == BuiltIn.VIEWER


@pytest.mark.parametrize("first", [(), ("ops",)])
def test_a_role_by_hand_stays(log_in, oidc, anna, first):
    oidc(root_roles=(("ops", "Admin"),))
    log_in(*first)
    anna.root_role_id = BuiltIn.EDITOR
    anna.save()
    log_in()
    assert anna.root_role_id == BuiltIn.EDITOR


@pytest.mark.parametrize("through", ["role", "group"])
def test_the_last_admin_keeps_the_role(log_in, oidc, anna, through):
    oidc(root_roles=(("ops", "Admin"),) if through == "role" else ())
    make_group("ops", root_role=BuiltIn.ADMIN) if through == "group" else make_group("dev")
    log_in("ops", "dev")
    User.objects.filter(username="root").update(root_role=None)
    log_in()
    assert anna.is_root_admin


def test_an_unknown_role_in_the_settings_is_reported(log_in, oidc):
    oidc(root_roles=(("ops", "Adnim"),))
    with pytest.raises(ServiceUnavailable, match="Root role Adnim not found"):
        log_in("ops")


@pytest.mark.parametrize("email", ["x" * 243 + "@example.org.evil.example", 5, None, "a\0@example.org"])
def test_an_address_that_cannot_be_stored_is_ignored(oidc, settings, email):
    identity = Identity.of({"sub": "x", "email": email, "email_verified": True}, settings.SIGN_ON)
    assert (identity.email, identity.email_domain, identity.username) == ("", "", "")


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"groups": ["a", "b"]}, {"a", "b"}),
        ({"groups": "a"}, {"a"}),
        ({}, set()),
        ({"groups": None}, set()),
        ({"groups": {"a": 1}}, set()),
        ({"groups": ["a", 5, None, "", "x" * 256, "nul\0"]}, {"a"}),
    ],
)
def test_the_claim_may_be_a_list_or_a_string(oidc, settings, claims, expected):
    assert Identity.of({"sub": "x", **claims}, settings.SIGN_ON).groups == expected


@pytest.mark.parametrize(
    "claims", [{"realm_access.roles": ["a"]}, {"realm_access": {"roles": ["a"]}}], ids=["as it is", "inside"]
)
def test_a_dotted_claim_is_read_from_another(claims):
    oidc = OidcSettings(issuer=ISSUER, client_id="x", groups_claim="realm_access.roles")
    assert Identity.of({"sub": "x", **claims}, oidc).groups == {"a"}


@pytest.mark.parametrize(
    "claims",
    [
        {"_claim_names": {"groups": "src1"}},
        {"hasgroups": True},
        {"groups": ["x"] * (MAX_GROUPS + 1)},
    ],
)
def test_a_claim_without_all_groups_is_refused(oidc, settings, claims):
    with pytest.raises(NoAccess, match="groups"):
        Identity.of({"sub": "x", **claims}, settings.SIGN_ON)


def test_without_the_setting_no_group_is_touched(oidc, anna, settings):
    make_group("dev")
    settings.SIGN_ON = OidcSettings(issuer=ISSUER, client_id="x")
    sign_on(Identity.of({"sub": "anna", "groups": ["dev"]}, settings.SIGN_ON))
    assert not anna.groups.exists()
