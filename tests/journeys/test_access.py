"""Giving and taking access: groups, tokens, people and roles."""

import re
import shlex

import pytest

from groups.models import Grant, Group
from projects.models import FlagEnvironment
from tests.support.cast import client, make_user
from tests.support.scenery import make_contractors

pytestmark = pytest.mark.usefixtures("scenery")


def test_a_group_is_deleted_knowing_who_loses_access(walk):
    make_contractors()
    page = walk("admin", "/access/groups/")
    page.press("Former contractors")
    page.press("Delete group")
    assert (
        "Former contractors has 3 members. They lose Member in legacy-portal. "
        "One of them has no other access and will see no project."
    ) in page.text
    [alone] = [each.get_text() for each in page.page.select("main li") if "will see no project" in each.text]
    assert "Noor" in alone
    page.press("Delete group Former contractors")
    assert "Deleted group Former contractors." in page.status_message
    assert "Former contractors" not in page.names()


def test_a_token_is_made_used_and_revoked(walk):
    page = walk("admin", "/access/tokens/")
    page.press("New token")
    page.fill("Name", "checkout-service")
    page.tick("Backend: SDKs on servers read flags with it")
    page.tick("Checkout (checkout)")
    page.choose("Environment", "production")
    page.press("Create token")
    assert "This is the only time the token is shown." in page.text
    secret = page.page.select_one("#secret").get_text(strip=True)
    _, _, header, address = shlex.split(page.page.select_one("#command").get_text())
    path = re.sub(r"^https?://[^/]+", "", address)
    assert header == f"Authorization: {secret}"
    assert secret not in page.address
    assert secret not in page.page.title.get_text()
    assert client(secret).get(path).status_code == 200

    page.press("Done")
    assert secret not in page.text
    page.press("Revoke… checkout-service")
    assert "Clients still using it get 401 immediately" in page.text
    page.press("Revoke token checkout-service")
    assert "Revoked token checkout-service." in page.status_message
    assert client(secret).get(path).status_code == 401


def test_a_person_is_invited_by_a_link_that_works_once(walk):
    page = walk("admin", "/access/people/new/")
    page.fill("User name", "grace")
    page.choose("Root role", "Viewer")
    page.press("Add user")
    link = re.sub(r"^https?://[^/]+", "", page.page.select_one("#secret").get_text(strip=True))

    guest = walk(None, link)
    if "Log in as grace" in guest.names():
        guest.press("Log in as grace")
    assert guest.address == "/account/password/?next=%2F"
    assert "Current password" not in guest.text
    assert "This link has already been used" in walk(None, link).text


def test_a_colleague_is_invited_for_development_of_one_project_in_three_clicks(walk):
    page = walk("admin", "/projects/checkout/")
    page.press("Invite")
    page.fill("Email address, user name or group", "grace@example.com")
    page.tick("development")
    page.press("Invite")
    assert "Member · development" in page.text
    assert "/login/" in page.page.select_one("#secret").get_text()
    assert page.presses == 3


def test_a_role_is_given_in_a_project_and_taken_away(walk):
    make_user("grace")
    page = walk("admin", "/projects/checkout/access/invite/")
    page.fill("Email address, user name or group", "grace")
    page.tick("development")
    page.press("Invite")
    assert "Granted Member · development to grace in checkout." in page.status_message
    page.press("Revoke Member · development from grace")
    assert "Revoked Member · development from grace in checkout." in page.status_message


def test_an_account_is_granted_a_role_and_a_group_in_five_clicks(walk):
    grace = make_user("grace", name="Grace Hopper")
    Group.objects.create(name="Navy")
    page = walk("admin", f"/access/people/{grace.pk}/")
    page.press("Grant access")
    page.choose("Project", "checkout")
    page.choose("Role in the project", "Member")
    page.choose("Group", "Navy")
    page.press("Grant access")
    assert page.presses == 5
    assert "Member in checkout, membership of Navy." in page.status_message
    page.press("Revoke Member in checkout")
    assert "Revoked Member from grace in checkout." in page.status_message
    assert not Grant.objects.filter(user=grace).exists()
    assert page.address == f"/access/people/{grace.pk}/"


def test_a_ci_token_for_production_only_takes_six_clicks(walk):
    page = walk("admin", "/")
    page.press("Access")
    page.press("API tokens")
    page.press("New automation token")
    assert page.is_ticked("Automation")
    page.fill("Name", "ci-checkout")
    page.tick("Checkout (checkout)")
    page.choose("Environment", "production")
    page.press("Create token")
    assert page.presses <= 6
    assert "This is the only time the token is shown." in page.text
    assert "in production of checkout. It changes nothing else." in page.text
    assert "curl -H 'Authorization: user:" in page.page.select_one("#command").get_text()

    secret = page.page.select_one("#secret").get_text(strip=True)
    path = "/api/admin/projects/checkout/features/gift-cards/environments/{}/off"
    statuses = {
        name: client(secret).post(path.format(name)).status_code for name in ("production", "development")
    }
    assert statuses == {"production": 200, "development": 403}
    assert not FlagEnvironment.objects.get(flag__name="gift-cards", environment="production").enabled
    assert Grant.objects.get(user__username="ci-checkout").project_id == "checkout"
    page.open("/access/tokens/?kind=automation")
    row = page.part("ci-checkout").get_text()
    assert "Automation" in row
    assert "checkout · production" in row
