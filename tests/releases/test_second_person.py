"""One person is not two: accounts that somebody made do not approve beside them, until others confirm them."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from groups.models import Custody, Grant, Role, RolePermission, User
from groups.people.personal_tokens import end_custody
from groups.permissions import BuiltIn
from groups.sign_up.actions import NewInviteLink, create_invite_link, sign_up
from projects.models import Flag
from tests.support.cast import client, make_token, make_user
from tests.support.change_requests import enter, guarded, reviewer, sent, turn
from tests.support.flags import is_on
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)
INVITE = "/api/admin/projects/shop/access/invite"


@pytest.fixture
def cart(shop: Any, people: Any) -> Flag:
    """The owner leads the shop: may approve, and invite others to do so."""
    guarded(1)
    lead = Role.objects.create(name="Lead", type="custom")
    permissions = ("APPROVE_CHANGE_REQUEST", "PROJECT_USER_ACCESS_WRITE")
    RolePermission.objects.bulk_create(RolePermission(role=lead, permission=each) for each in permissions)
    Grant.objects.create(role=lead, project=shop, user=people["owner"])
    return live_flag("cart", strategies=[{"name": "default"}])


def invited(by: Any, name: str = "puppet@example.org") -> Any:
    """A client of somebody new whom this client has invited with the same role."""
    answer = by.post(INVITE, {"who": name, "role": Role.objects.get(name="Lead").pk}, format="json")
    assert answer.status_code in (200, 201), answer.content
    return client(make_token("personal", user=User.objects.get(username=name)))


def confirm(by: Any, name: str = "puppet@example.org") -> Any:
    return by.post(f"/api/admin/user-admin/{User.objects.get(username=name).pk}/confirm")


def test_who_was_invited_does_not_approve_the_authors_request_and_is_told_why(api, cart):
    puppet = invited(api["owner"])
    made = sent(api["owner"], turn(False))
    refused = enter(puppet, made, "Approved")
    assert refused.status_code == 403
    message = refused.json()["message"]
    assert "puppet@example.org was invited by owner" in message
    assert "admin may confirm the account" in message
    assert is_on()
    browser = Client()
    browser.force_login(User.objects.get(username="puppet@example.org"))
    page = page_text(browser.get(f"/projects/shop/change-requests/{made['id']}/"))
    assert "You cannot approve it." in page
    assert "was invited by owner" in page


def test_chains_and_siblings_are_one_person(api, cart):
    puppet = invited(api["owner"])
    chained = invited(puppet, "chained@example.org")
    sibling = invited(api["owner"], "sibling@example.org")
    made = sent(puppet, turn(False))
    assert enter(api["owner"], made, "Approved").status_code == 403
    assert enter(sibling, made, "Approved").status_code == 403
    made = sent(api["owner"], turn(False))
    assert enter(chained, made, "Approved").status_code == 403
    middle = User.objects.get(username="puppet@example.org")
    assert api["admin"].delete(f"/api/admin/user-admin/{middle.pk}").status_code == 200
    assert enter(chained, made, "Approved").status_code == 403


def test_two_approvals_are_of_two_people(api, cart):
    guarded(2)
    puppet = invited(api["owner"])
    made = sent(api["member"], turn(False))
    assert enter(api["owner"], made, "Approved").status_code == 200
    answer = enter(puppet, made, "Approved").json()
    assert answer["state"] == "In review"
    assert "owner (who has approved it too) may be one person" in answer["approvals"][1]["lapsed"]


def test_an_approval_from_before_is_counted_anew(api, cart):
    """An admin who takes over the account afterwards does not approve their own request with it."""
    pat = reviewer("pat", "APPROVE_CHANGE_REQUEST")
    made = sent(api["admin"], turn(False))
    assert enter(pat, made, "Approved").json()["state"] == "Approved"
    key = User.objects.get(username="pat").pk
    changed = api["admin"].post(
        f"/api/admin/user-admin/{key}/change-password", {"password": "correct horse battery"}, format="json"
    )
    assert changed.status_code == 200
    refused = enter(api["admin"], made, "Applied")
    assert refused.status_code == 409
    assert "pat was given a password or login link by admin" in refused.json()["message"]


def take_over_by_link(api: Any, key: int) -> Any:
    return api["admin"].post("/api/admin/user-admin/reset-password", {"id": f"{key}"}, format="json")


def take_over_by_email(api: Any, key: int) -> Any:
    return api["admin"].put(f"/api/admin/user-admin/{key}", {"email": "mine@example.org"}, format="json")


@pytest.mark.parametrize("take_over", [take_over_by_link, take_over_by_email])
def test_taking_over_an_account_makes_no_second_person(api, cart, take_over):
    reviewer("pat", "APPROVE_CHANGE_REQUEST")
    pat = User.objects.get(username="pat")
    assert take_over(api, pat.pk).status_code == 200
    made = sent(api["admin"], turn(False))
    taken = client(make_token("personal", user=pat))
    assert enter(taken, made, "Approved").status_code == 403


def test_programs_approve_nothing(api, cart):
    service = make_user("ci", root_role=BuiltIn.ADMIN, is_service=True)
    made = sent(api["owner"], turn(False))
    for program in (client(make_token("personal", user=service)), api["admin_token"]):
        refused = enter(program, made, "Approved")
        assert refused.status_code == 403
        assert "Only people can approve change requests" in refused.json()["message"]


def test_a_confirmed_account_is_a_second_person(api, browse, cart):
    puppet = invited(api["owner"])
    made = sent(api["owner"], turn(False))
    assert confirm(api["owner"]).status_code == 403
    assert confirm(puppet).status_code == 403
    assert confirm(api["admin"]).status_code == 200
    event = AuditEvent.objects.get(type="user-confirmed")
    assert (event.subject, event.actor_name, event.before) == (
        "puppet@example.org",
        "admin",
        {"keepers": ["owner"]},
    )
    answer = enter(puppet, made, "Approved").json()
    assert answer["state"] == "Approved"
    assert answer["approvals"][0]["origin"] == "invited by the author"
    page = page_text(browse("owner").get(f"/projects/shop/change-requests/{made['id']}/"))
    assert "(invited by the author)" in page


def test_who_made_an_account_does_not_confirm_it(api, cart):
    body = {"username": "puppet@example.org", "rootRole": "Admin"}
    assert api["admin"].post("/api/admin/user-admin", body, format="json").status_code == 201
    puppet = client(make_token("personal", user=User.objects.get(username="puppet@example.org")))
    for by in (api["admin"], puppet):
        refused = confirm(by)
        assert refused.status_code == 403
        assert "Nobody else is an admin who may confirm the account." in refused.json()["message"]
    made = sent(api["admin"], turn(False))
    assert enter(puppet, made, "Approved").status_code == 403


def test_an_admin_still_approves_their_own(api, cart):
    made = sent(api["admin"], turn(False))
    assert enter(api["admin"], made, "Approved").json()["state"] == "Approved"


def test_two_whom_an_admin_created_are_two(api, cart):
    for name in ("one", "two"):
        body = {"username": name, "rootRole": "Editor"}
        assert api["admin"].post("/api/admin/user-admin", body, format="json").status_code == 201
    users = [User.objects.get(username=name) for name in ("one", "two")]
    Grant.objects.bulk_create(
        Grant(role=Role.objects.get(name="Lead"), project_id="shop", user=user) for user in users
    )
    one, two = (client(make_token("personal", user=user)) for user in users)
    made = sent(one, turn(False))
    assert enter(two, made, "Approved").json()["state"] == "Approved"


def test_the_days_pass(api, cart, settings):
    puppet = invited(api["owner"])
    made = sent(api["owner"], turn(False))
    Custody.objects.update(since=timezone.now() - timedelta(days=8))
    settings.NEW_ACCOUNT_DAYS = 9
    assert enter(puppet, made, "Approved").status_code == 403
    settings.NEW_ACCOUNT_DAYS = 7
    assert enter(puppet, made, "Approved").json()["state"] == "Approved"


def test_the_identity_provider_vouches(api, cart):
    puppet = invited(api["owner"])
    end_custody(User.objects.get(username="puppet@example.org"), "the identity provider")
    made = sent(api["owner"], turn(False))
    assert enter(puppet, made, "Approved").json()["state"] == "Approved"


def test_who_made_the_token_that_creates_an_account_keeps_it(api, people, cart):
    make_token("admin", name="ci", created_by="owner")
    token = client(make_token("admin", name="terraform", created_by="owner"))
    assert token.post("/api/admin/user-admin", {"username": "puppet"}, format="json").status_code == 201
    custody = Custody.objects.get()
    assert (custody.keeper, custody.how) == (people["owner"], "created")


def test_a_service_account_proposes_for_who_keeps_it(api, people, cart):
    service = make_user("ci", is_service=True)
    Grant.objects.create(role_id=BuiltIn.OWNER, project_id="shop", user=service)
    Custody.objects.create(account=service, keeper=people["owner"], how="token")
    Custody.objects.update(since=timezone.now() - timedelta(days=800))
    made = sent(client(make_token("personal", user=service)), turn(False))
    assert enter(api["owner"], made, "Approved").status_code == 403
    assert enter(api["admin"], made, "Approved").json()["state"] == "Approved"


def test_the_persons_page_has_the_button(api, browse, cart):
    invited(api["owner"])
    puppet = User.objects.get(username="puppet@example.org")
    url = f"/access/people/{puppet.pk}/"
    page = page_text(browse("admin").get(url))
    assert "The account was invited by owner" in page
    assert "Confirm that it is another person's" in page
    record = api["admin"].get(f"/api/admin/user-admin/{puppet.pk}").json()
    assert [(each["by"], each["how"]) for each in record["unconfirmed"]] == [("owner", "invited")]
    assert browse("admin").post(f"{url}confirm").status_code == 302
    assert "The account was invited" not in page_text(browse("admin").get(url))


def test_signing_up_with_a_link_is_of_who_made_it(api, people, cart):
    new = NewInviteLink(name="Team", expires_at=timezone.now() + timedelta(days=1))
    _, token = create_invite_link(new, caller=Caller(user=people["admin"]))
    sign_up(token, username="anna", email="anna@example.org", name="Anna", password="correct horse battery")
    custody = Custody.objects.get()
    assert (custody.account.username, custody.keeper) == ("anna", people["admin"])
