"""Access pages are for admins and users who may read roles. Others see only which permission they need."""

import pytest

from groups.models import Group, Role
from groups.permissions import BuiltIn
from tests.support.page_text import page_text


@pytest.fixture
def addresses(people, db):
    group = Group.objects.create(name="Secret team")
    role = Role.objects.create(name="Secret role")
    user = people["member"].pk
    return [
        "/access/roles/",
        "/access/roles/new/",
        f"/access/roles/{BuiltIn.MEMBER.value}/",
        f"/access/roles/{role.pk}/edit/",
        f"/access/roles/{role.pk}/delete/",
        "/access/groups/",
        "/access/groups/new/",
        f"/access/groups/{group.pk}/",
        f"/access/groups/{group.pk}/edit/",
        f"/access/groups/{group.pk}/delete/",
        "/access/people/",
        "/access/people/new/",
        f"/access/people/{user}/",
        f"/access/people/{user}/edit/",
        f"/access/people/{user}/delete/",
        f"/access/people/{user}/reset-password/",
        "/access/service-accounts/",
        "/access/service-accounts/new/",
        f"/access/service-accounts/{people['service'].pk}/",
        f"/access/service-accounts/{people['service'].pk}/edit/",
        f"/access/service-accounts/{people['service'].pk}/delete/",
        f"/access/service-accounts/{people['service'].pk}/tokens/new/",
        "/access/tokens/",
        "/access/tokens/new/",
    ]


def test_an_admin_sees_every_page(browse, addresses):
    admin = browse("admin")

    assert {address: admin.get(address).status_code for address in addresses} == dict.fromkeys(addresses, 200)


@pytest.mark.parametrize("who", ["viewer", "outsider"])
def test_others_are_told_what_they_need_and_see_nothing(browse, addresses, who):
    browser = browse(who)
    for address in addresses:
        answer = browser.get(address)
        assert answer.status_code == 403, address
        assert "You need" in page_text(answer)
        assert "Secret" not in answer.text


@pytest.mark.parametrize("who", ["viewer", "outsider", "owner"])
def test_others_change_nothing(browse, people, addresses, who):
    browser = browse(who)
    group = Group.objects.get(name="Secret team")
    posts = [address for address in addresses if address.endswith(("new/", "edit/", "delete/", "password/"))]
    posts = [address for address in posts if address != "/access/tokens/new/"]
    posts += [f"/access/groups/{group.pk}/members/", f"/access/people/{people['member'].pk}/active"]
    for address in posts:
        answer = browser.post(address, {"name": "x", "username": "x", "who": "member", "active": "no"})
        assert answer.status_code == 403, address
    group.refresh_from_db()
    assert group.memberships.count() == 0


@pytest.mark.parametrize("kind", ["roles", "groups", "people", "service-accounts"])
def test_pages_of_missing_objects_are_404(browse, people, kind):
    assert browse("admin").get(f"/access/{kind}/987654/").status_code == 404
