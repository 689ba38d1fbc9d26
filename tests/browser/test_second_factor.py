"""Setting up passkeys and logging in with them, with a virtual authenticator."""

from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from allauth.mfa.models import Authenticator
from playwright.sync_api import expect

from flagadmin.core.audit.models import AuditEvent
from tests.browser.conftest import fits, make_narrow, person
from tests.browser.journeys import Clicks

PASSWORD = "correct horse battery"
DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def ada(scenery, standing_clock):
    user = person("admin")
    user.set_password(PASSWORD)
    user.save()
    return user


def give_device(page, **more):
    """Plugs a virtual authenticator in. Returns its id."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    session.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE | more})


def log_in(page, clicks):
    page.get_by_label("User name or email").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    clicks.on(page.get_by_role("button", name="Log in", exact=True))


def log_out(page):
    page.context.clear_cookies()
    page.goto("/login/")


def test_a_passkey_is_added_and_logs_in_with_and_without_password(visit, ada, check_accessible):
    page = visit(None, "/login/?next=/account/two-step/")
    give_device(page)
    clicks = Clicks(page)
    log_in(page, clicks)
    clicks.on(page.get_by_role("link", name="Add passkey"))
    check_accessible(page)
    page.get_by_label("Name").fill("Laptop")
    clicks.on(page.get_by_role("button", name="Add passkey"))
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    check_accessible(page)
    clicks.on(page.get_by_role("link", name="Done"))
    expect(page.get_by_role("rowheader", name="Laptop")).to_be_visible()
    check_accessible(page)
    assert clicks.count == 4

    log_out(page)
    clicks = Clicks(page)
    log_in(page, clicks)
    expect(page.get_by_text("Use your passkey, or enter a recovery code.")).to_be_visible()
    check_accessible(page)
    make_narrow(page)
    fits(page)
    clicks.on(page.get_by_role("button", name="Use a passkey"))
    expect(page.get_by_label("admin: account")).to_be_visible()
    assert clicks.count == 2

    log_out(page)
    page.goto("/login/?next=/activity/")
    check_accessible(page)
    with page.expect_request(lambda request: request.method == "POST") as sent:
        page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", name="Audit log")).to_be_visible()
    assert_used_up(sent.value)
    hows = [event["how"] for event in logins()]
    assert hows == ["password", "password, passkey Laptop", "passkey"]


def assert_used_up(sent):
    """The same answer to the same challenge logs nobody in again."""
    headers = {name: value for name, value in sent.all_headers().items() if name in ("cookie", "origin")}
    again = urlopen(Request(sent.url, sent.post_data.encode(), headers))
    assert urlsplit(again.url).path == "/login/"
    assert AuditEvent.objects.filter(type="user-login-failed").exists()


def logins():
    return list(
        AuditEvent.objects.filter(type="user-logged-in").order_by("id").values_list("after", flat=True)
    )


def test_a_security_key_without_memory_is_a_second_factor_only(visit, ada):
    page = visit(None, "/login/?next=/account/two-step/passkeys/new/")
    give_device(page, transport="usb", hasResidentKey=False, hasUserVerification=False)
    log_in(page, Clicks(page))
    page.get_by_label("Name").fill("Key")
    page.evaluate(
        "() => { navigator.credentials.create = () => Promise.reject(new DOMException('', 'NotAllowedError')) }"
    )
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_text("No passkey was used. Try again.")).to_be_visible()
    page.evaluate("() => { delete navigator.credentials.create }")
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()

    log_out(page)
    log_in(page, Clicks(page))
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_label("admin: account")).to_be_visible()


def test_a_passkey_confirms_who_one_is_and_is_renamed_and_removed(visit, ada):
    page = visit(None, "/login/?next=/account/two-step/passkeys/new/")
    give_device(page)
    log_in(page, Clicks(page))
    page.get_by_label("Name").fill("Laptop")
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    page.goto("/account/confirm/?next=/account/two-step/")
    page.get_by_role("button", name="Use a passkey").click()
    page.get_by_role("link", name="Rename Laptop").click()
    page.get_by_label("Name").fill("Old laptop")
    page.get_by_role("button", name="Save name").click()
    page.get_by_role("link", name="Remove… Old laptop").click()
    page.get_by_role("button", name="Remove").click()

    expect(page.get_by_text("Removed: passkey Old laptop.")).to_be_visible()
    assert not Authenticator.objects.exists()
