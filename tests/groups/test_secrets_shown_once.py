"""A new secret is shown on one page after its creation. Reloading it neither shows nor creates one."""

import re

import pytest

from groups.models import ApiToken, User
from tests.support.cast import make_user
from tests.support.page_text import page_text

SECRET = re.compile(r'id="secret">([^<]+)<')
PAGES = {
    "API token": (
        "/access/tokens/new/",
        {"tokenName": "a", "type": "backend", "projects": "shop", "environment": "production"},
    ),
    "personal token": ("/account/tokens/new/", {"description": "laptop"}),
    "key of a service account": ("/access/service-accounts/{service}/tokens/new/", {"description": "deploy"}),
    "invitation": ("/access/people/new/", {"username": "grace"}),
    "password reset": ("/access/people/{person}/reset-password/", {}),
}


def counts():
    return ApiToken.objects.count(), User.objects.count()


@pytest.mark.parametrize(("address", "given"), PAGES.values(), ids=PAGES)
def test_reloading_it_shows_and_creates_nothing(browse, people, shop, address, given):
    admin = browse("admin")
    address = address.format(service=make_user("deploy-bot", is_service=True).pk, person=people["viewer"].pk)

    posted = admin.post(address, given)
    assert (posted.status_code, posted["Location"]) == (302, f"{address}?created")
    page = admin.get(posted["Location"])
    secret = SECRET.search(page.text)[1]
    before = counts()
    again = admin.get(posted["Location"], follow=True)

    assert "no-store" in page["Cache-Control"]
    assert "HttpOnly" in str(posted.cookies["shown_once"])
    assert secret not in again.text
    assert "It was created and shown once." in page_text(again)
    assert counts() == before


def test_a_secret_is_shown_to_nobody_else(browse, people, shop):
    admin, editor = browse("admin"), browse("editor")
    posted = admin.post(*PAGES["personal token"])
    editor.cookies["shown_once"] = posted.cookies["shown_once"].value

    assert not SECRET.search(editor.get(posted["Location"], follow=True).text)


@pytest.mark.parametrize("planted", ["", "nonsense", "WzEseyJzZWNyZXQiOiJ4In1d:1:1"])
def test_a_forged_cookie_is_not_shown(browse, people, planted):
    admin = browse("admin")
    admin.cookies["shown_once"] = planted

    assert not SECRET.search(admin.get("/account/tokens/new/?created", follow=True).text)
