"""Setting up a second factor, and logging in with it."""

import re
from urllib.parse import unquote

import pytest

from groups.permissions import BuiltIn
from tests.support.cast import make_user
from tests.support.second_factor import code_of, set_up_app

PASSWORD = "a long enough passphrase"


@pytest.fixture
def ada(scenery, standing_clock):
    return make_user("ada", password=PASSWORD, root_role=BuiltIn.ADMIN)


def log_in(page):
    page.fill("User name or email", "ada")
    page.fill("Password", PASSWORD)
    page.press("Log in")


def test_an_app_is_set_up_in_five_clicks_and_used_in_two(walk, ada):
    page = walk(None, "/login/?next=/account/")
    log_in(page)
    page.press("Set up two-step verification")
    page.press("Set up")
    secret = re.search(r"key: ([A-Z2-7 ]{39})", page.text)[1].replace(" ", "")
    page.fill("Code", code_of(secret))
    page.press("Turn on")
    assert page.heading == "Recovery codes"
    page.press("Done")
    assert "10 left" in page.text
    assert page.presses == 5

    page = walk(None, "/login/?next=/account/")
    log_in(page)
    page.fill("Code", code_of(secret, later=1))
    page.press("Log in")
    assert "ada: account" in page.names()
    assert page.presses == 2


def test_recovery_codes_are_a_file(walk, ada):
    codes = set_up_app(ada)
    page = walk("ada", "/account/confirm/?next=/account/two-step/recovery-codes/")
    page.fill("Password", PASSWORD)
    page.press("Continue")
    page.press("Create recovery codes")
    link = page.control("Download")
    lines = unquote(link["href"].partition(",")[2]).splitlines()
    assert link["download"] == "flagadmin-recovery-codes.txt"
    assert len(lines) == 10
    assert not set(lines) & set(codes)
