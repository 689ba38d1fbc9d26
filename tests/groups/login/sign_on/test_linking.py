"""Linking an account with an identity on the account page, and unlinking."""

import re
from html import unescape

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from groups.models import GroupMembership
from groups.permissions import BuiltIn
from tests.support.cast import make_group, make_user

PASSWORD = "correct horse battery"
pytestmark = pytest.mark.processes
ANNA = {"preferred_username": "anna", "email": "anna@example.org", "email_verified": True}


@pytest.fixture
def bertha(db):
    return make_user("bertha", root_role=BuiltIn.VIEWER, password=PASSWORD)


@pytest.fixture
def visitor(bertha):
    visitor = Client()
    visitor.post("/login/", {"username": "bertha", "password": PASSWORD})
    return visitor


def link(visitor, provider, name="anna"):
    """Follows the link of the account page to the provider and back."""
    provider.know(name, **ANNA)
    (address,) = re.findall(r'href="(/account/sign-on/link/[^"]*)"', visitor.get("/account/").text)
    sent = visitor.get(unescape(address))
    return visitor.get(provider.answer(sent["Location"], name), follow=True)


def test_a_person_links_their_account(oidc, provider, visitor, bertha, log_in):
    page = link(visitor, provider).text

    assert "You can now log in as anna through the identity provider." in page
    assert "You log in as <strong>anna</strong>" in page
    event = AuditEvent.objects.get(type="user-identity-linked")
    assert (event.subject, event.after) == ("bertha", {"provider": provider.issuer, "identity": "anna"})
    assert log_in("anna").status_code == 302


def test_an_identity_linked_to_another_account_is_refused(oidc, provider, visitor):
    SocialAccount.objects.create(user=make_user("carla"), provider=provider.issuer, uid="anna")
    assert "anna already logs in to another account." in link(visitor, provider).text
    assert SocialAccount.objects.get().user.username == "carla"


def test_a_second_identity_is_refused(oidc, provider, visitor, bertha):
    address = re.search(r"/account/sign-on/link/[^\"]*", visitor.get("/account/").text)[0]
    SocialAccount.objects.create(user=bertha, provider=provider.issuer, uid="bertha")
    provider.know("anna", **ANNA)
    page = visitor.get(provider.answer(visitor.get(address)["Location"], "anna"), follow=True)
    assert "Your account is already linked." in page.text
    assert SocialAccount.objects.get().uid == "bertha"


@pytest.mark.parametrize("check", ["", "?check=x", "?check="])
def test_another_site_cannot_begin_linking(oidc, visitor, check):
    answer = visitor.get(f"/account/sign-on/link/{check}")
    assert answer.status_code == 403
    assert "Start on your account page." in answer.text


def test_linking_asks_for_a_confirmation_first(oidc, provider, bertha):
    visitor = Client()
    visitor.force_login(bertha)  # long ago, as far as anybody knows
    address = unescape(re.search(r"/account/sign-on/link/[^\"]*", visitor.get("/account/").text)[0])
    response = visitor.get(address)
    assert response["Location"].startswith("/account/confirm/?next=")
    back = visitor.post(response["Location"], {"password": PASSWORD}, follow=False)
    assert back["Location"] == address
    assert visitor.get(address)["Location"].startswith(provider.issuer)


def test_another_session_in_between_is_not_linked(oidc, provider, visitor):
    provider.know("anna", **ANNA)
    address = re.search(r"/account/sign-on/link/[^\"]*", visitor.get("/account/").text)[0]
    back = provider.answer(visitor.get(address)["Location"], "anna")
    state = dict(visitor.session)["socialaccount_states"]
    visitor.force_login(make_user("carla"))
    session = visitor.session
    session["socialaccount_states"] = state
    session.save()

    visitor.get(back)

    assert not SocialAccount.objects.exists()


def test_unlinking_takes_back_what_the_claim_gave(oidc, provider, visitor, bertha, log_in):
    oidc(groups_claim="groups", root_roles=(("devs", "Editor"),))
    make_group("devs")
    by_hand = make_group("readers", bertha)
    link(visitor, provider)
    provider.know("anna", **ANNA, groups=["devs"])
    log_in("anna")
    bertha.refresh_from_db()
    assert bertha.root_role_id == BuiltIn.EDITOR
    assert bertha.groups.count() == 2

    assert "Unlinked." in visitor.post("/account/sign-on/unlink/", follow=True).text

    bertha.refresh_from_db()
    assert bertha.root_role_id is None
    assert [membership.group for membership in GroupMembership.objects.all()] == [by_hand]
    assert AuditEvent.objects.filter(type="user-identity-unlinked", subject="bertha").count() == 1
    assert log_in("anna").status_code == 403


def test_the_only_way_to_log_in_is_not_unlinked(oidc, provider, visitor, bertha, settings):
    link(visitor, provider)
    bertha.set_unusable_password()
    bertha.save()
    visitor.force_login(bertha)
    assert "/sign-on/unlink/" not in visitor.get("/account/").text
    assert "without a password" in visitor.post("/account/sign-on/unlink/", follow=True).text
    settings.PASSWORD_LOGIN = False
    assert "no other way to log in" in visitor.post("/account/sign-on/unlink/", follow=True).text
    assert SocialAccount.objects.exists()


def test_without_a_provider_the_account_page_says_nothing(visitor):
    assert "Single sign-on" not in visitor.get("/account/").text
    assert visitor.post("/account/sign-on/unlink/").status_code == 404


@pytest.fixture
def linked(oidc, provider, visitor, bertha, log_in):
    """Bertha's account, linked with anna, who is an editor and in a group by her claims."""
    oidc(groups_claim="groups", root_roles=(("devs", "Editor"),))
    make_group("devs")
    make_group("readers", bertha)
    link(visitor, provider)
    provider.know("anna", **ANNA, groups=["devs"])
    log_in("anna")
    return bertha


@pytest.fixture
def admin(db):
    admin = Client()
    admin.force_login(make_user("alma", root_role=BuiltIn.ADMIN))
    return admin


def test_an_admin_unlinks_another_account(linked, admin, log_in):
    person = f"/access/people/{linked.pk}/"
    page = admin.get(person).text
    assert "<strong>anna</strong> of " in page
    assert f"{person}identity/unlink/" in page
    assert "their only way to log in" not in admin.get(f"{person}identity/unlink/").text

    answer = admin.post(f"{person}identity/unlink/", follow=True).text

    assert "bertha is unlinked." in answer
    assert "identity/unlink/" not in answer
    linked.refresh_from_db()
    assert linked.root_role_id is None
    assert [membership.group.name for membership in GroupMembership.objects.all()] == ["readers"]
    event = AuditEvent.objects.get(type="user-identity-unlinked")
    assert (event.subject, event.actor_name, event.before["identity"]) == ("bertha", "alma", "anna")
    assert log_in("anna").status_code == 403
    assert "bertha is not linked." in admin.get(f"{person}identity/unlink/").text
    assert admin.post(f"{person}identity/unlink/").status_code == 403


def test_the_page_warns_an_admin_if_it_is_the_only_login(linked, admin, oidc):
    oidc(link_by_email=True)
    linked.set_unusable_password()
    linked.email = "bertha@example.org"
    linked.save()
    response = admin.get(f"/access/people/{linked.pk}/identity/unlink/").text
    assert "their only way to log in" in response
    assert "as bertha@example.org links the account again." in response


def test_only_admins_unlink_others_and_not_themselves_there(linked, visitor, admin):
    assert visitor.post(f"/access/people/{linked.pk}/identity/unlink/").status_code == 403
    alma = make_user("ada", root_role=BuiltIn.ADMIN)
    person = Client()
    person.force_login(alma)
    assert person.post(f"/access/people/{alma.pk}/identity/unlink/").status_code == 403
    assert admin.get("/access/people/999999/identity/unlink/").status_code == 404
    assert SocialAccount.objects.filter(user=linked).exists()


def test_memberships_from_the_provider_are_marked(linked, admin):
    page = admin.get(f"/access/people/{linked.pk}/").text
    assert page.count("identity provider</span>") == 1
    by_group = {membership.group.name: membership.group_id for membership in GroupMembership.objects.all()}
    assert "from the identity provider" in admin.get(f"/access/groups/{by_group['devs']}/").text
    assert "from the identity provider" not in admin.get(f"/access/groups/{by_group['readers']}/").text
