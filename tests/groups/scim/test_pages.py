"""The page Provisioning."""

import re

import pytest

from tests.support.cast import client
from tests.support.scim import USERS

pytestmark = pytest.mark.django_db
PAGE = "/access/scim/"


def test_switch_on_create_a_token_that_is_shown_once_and_switch_off(browse):
    admin = browse("admin")
    page = admin.get(PAGE).content.decode()
    assert "No token yet." in page
    assert "http://testserver/scim/v2" in page
    assert (
        "Provisioning is on."
        in admin.post(f"{PAGE}enabled", {"enabled": "yes"}, follow=True).content.decode()
    )
    shown = admin.post(PAGE, follow=True).content.decode()
    [secret] = re.findall(r'<code id="secret">([^<]+)', shown)
    assert client(secret).get(USERS).status_code == 200
    later = admin.get(PAGE).content.decode()
    assert secret not in later
    assert "Replace token" in later
    assert "off" in admin.post(f"{PAGE}enabled", {"enabled": "no"}, follow=True).content.decode()
    assert client(secret).get(USERS).status_code == 401
