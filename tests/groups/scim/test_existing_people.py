"""How a provider gets accounts whose user name is another one, and what removing a name leaves."""

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from groups.models import User
from groups.scim.actions import set_finds_by_email
from tests.support.cast import make_user
from tests.support.scim import USER, USERS, Provider

pytestmark = pytest.mark.django_db
KIM = {"schemas": [USER], "userName": "kim@x.org", "externalId": "7", "active": True}


@pytest.fixture
def provider(db):
    return Provider()


@pytest.fixture
def kim(db):
    user = make_user("Kim")
    user.email = "Kim@x.org"
    user.save()
    return user


def find(provider):
    return [found["id"] for found in provider.find(USERS, 'userName eq "kim@x.org"')]


def test_the_conflict_names_the_account_and_the_way(provider, kim):
    assert find(provider) == []
    detail = provider.send("post", USERS, KIM, status=409)["detail"]
    assert f"the account Kim (id {kim.pk})" in detail
    assert "Access, Provisioning" in detail


def test_an_admin_lets_the_provider_find_accounts_by_email(provider, kim, browse):
    page = browse("admin").post("/access/scim/enabled", {"by_email": "yes"}, follow=True).content.decode()
    assert "Accounts are found by their email address." in page
    assert find(provider) == [str(kim.pk)]
    provider.patch(f"{USERS}/{kim.pk}", {"op": "Replace", "path": "userName", "value": "kim@x.org"})
    provider.patch(f"{USERS}/{kim.pk}", {"op": "Replace", "path": "active", "value": False})
    kim.refresh_from_db()
    assert (kim.username, kim.is_active) == ("kim@x.org", False)
    event = AuditEvent.objects.get(type="setting-updated", after__assumeControlOfExisting=True)
    assert (event.before["assumeControlOfExisting"], event.actor_name) == (False, "admin")


def test_creating_an_account_takes_the_one_with_its_email_address(provider, kim):
    set_finds_by_email(True, caller=Caller.system())
    created = provider.send("post", USERS, KIM, status=201)
    assert created["id"] == str(kim.pk)
    event = AuditEvent.objects.get(type="user-updated")
    assert (event.before["username"], event.after["username"], event.actor_name) == (
        "Kim",
        "kim@x.org",
        "SCIM",
    )


def test_an_account_of_another_identity_is_not_taken(provider, kim):
    set_finds_by_email(True, caller=Caller.system())
    User.objects.filter(pk=kim.pk).update(external_id="other")
    assert "externalId other" in provider.send("post", USERS, KIM, status=409)["detail"]


def test_a_switch_without_a_value_changes_nothing(provider, browse):
    assert "must be yes or no" in browse("admin").post("/access/scim/enabled", follow=True).content.decode()
    provider.send("get", USERS)


@pytest.fixture
def aisha(provider):
    body = KIM | {
        "displayName": "Aisha K.",
        "name": {"givenName": "Aisha", "familyName": "Khan", "formatted": "Aisha K."},
    }
    return provider.send("post", USERS, body, status=201)["id"]


def test_a_removed_display_name_is_gone(provider, aisha):
    left = provider.patch(f"{USERS}/{aisha}", {"op": "remove", "path": "displayName"})
    assert "displayName" not in left
    assert left["name"] == {"givenName": "Aisha", "familyName": "Khan"}
    assert provider.send("get", f"{USERS}/{aisha}") == left


def test_a_removed_name_is_gone(provider, aisha):
    left = provider.patch(f"{USERS}/{aisha}", {"op": "remove", "path": "name"})
    assert "name" not in left
    assert left["displayName"] == "Aisha K."
    left = provider.patch(f"{USERS}/{aisha}", {"op": "replace", "path": "active", "value": True})
    assert "name" not in left
    left = provider.patch(f"{USERS}/{aisha}", {"op": "add", "path": "name.formatted", "value": "A. Khan"})
    assert left["displayName"] == left["name"]["formatted"] == "A. Khan"
