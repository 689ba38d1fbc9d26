"""Logging in through the identity provider's own page, and linking an account with it."""

from collections.abc import Iterator

import pytest
from allauth.socialaccount.models import SocialAccount
from cryptography.x509 import load_pem_x509_certificate
from playwright.sync_api import expect

from groups.login.sign_on.settings import OidcSettings, SamlSettings
from tests.browser.conftest import fits, make_narrow
from tests.browser.journeys import Clicks
from tests.support.identity_provider import IdentityProvider, identity_provider
from tests.support.saml_provider import saml_provider

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def provider(live_server) -> Iterator[IdentityProvider]:
    with identity_provider(live_server.url) as running:
        yield running


@pytest.fixture
def oidc(provider, settings, watch) -> Iterator[None]:
    settings.SIGN_ON = OidcSettings(
        issuer=provider.issuer, client_id="flagadmin", client_secret="s3cret", button="Log in with Example"
    )
    yield
    # The one other host that a page may lead to.
    watch.faults[:] = [fault for fault in watch.faults if provider.issuer not in fault]


def test_linked_once_one_logs_in_with_the_button(visit, scenery, people, oidc, provider, check_accessible):
    provider.know("ada", preferred_username="ada@example.org")
    people["viewer"].set_unusable_password()  # nothing to confirm the old session with
    people["viewer"].save()
    page = visit("viewer", "/account/")
    clicks = Clicks(page)
    card = page.locator("section", has=page.get_by_role("heading", name="Single sign-on"))
    clicks.on(card.get_by_role("link", name="Link single sign-on"))
    page.get_by_label("Name").fill("ada")
    clicks.on(page.get_by_role("button", name="Continue"))
    expect(card).to_contain_text("You log in as ada@example.org")
    assert clicks.count == 2
    page.context.clear_cookies()

    page.goto("/activity/?kind=flags")
    check_accessible(page)
    clicks = Clicks(page)
    clicks.on(page.get_by_role("link", name="Log in with Example"))
    page.get_by_label("Name").fill("ada")
    clicks.on(page.get_by_role("button", name="Continue"))

    expect(page.get_by_role("heading", level=1)).to_have_text("Audit log")
    assert page.url.endswith("/activity/?kind=flags")
    assert clicks.count == 2


def test_an_answer_of_saml_comes_without_cookies_and_finds_its_session(
    visit, scenery, people, settings, live_server, watch, tmp_path
):
    """The provider's page sends a form from another site, with which browsers send no cookie of the session."""
    with saml_provider(tmp_path) as provider:
        settings.PUBLIC_URL, site = live_server.url, provider.url.replace("localhost", "127.0.0.1")
        assert "//localhost:" in live_server.url  # so the provider is another site
        settings.SIGN_ON = SamlSettings(
            issuer=provider.issuer,
            url=f"{site}/sso",
            certificates=(load_pem_x509_certificate(provider.signer.certificate),),
            button="Log in with SAML",
        )
        provider.know("ada", username="ada")
        SocialAccount.objects.create(user=people["viewer"], provider=provider.issuer, uid="ada")
        page = visit(None, "/activity/?kind=flags")
        clicks, sent = Clicks(page), []
        page.on("request", lambda request: sent.append(request.method) if "callback" in request.url else None)
        clicks.on(page.get_by_role("link", name="Log in with SAML"))
        page.get_by_label("Name").fill("ada")
        clicks.on(page.get_by_role("button", name="Continue"))

        expect(page.get_by_role("heading", level=1)).to_have_text("Audit log")
        assert page.url.endswith("/activity/?kind=flags")
        assert (sent, clicks.count) == (["POST", "POST"], 2)  # theirs, and ours with the cookie
        watch.faults[:] = [fault for fault in watch.faults if site not in fault]


def test_the_login_page_of_somebody_who_was_refused(
    visit, scenery, oidc, provider, settings, check_in_both_themes
):
    settings.PASSWORD_LOGIN = False
    provider.know("eve", preferred_username="eve")
    page = visit(None, "/login/")
    check_in_both_themes(page)
    page.get_by_role("link", name="Log in with Example").click()
    page.get_by_label("Name").fill("eve")
    page.get_by_role("button", name="Continue").click()

    expect(page.get_by_role("alert")).to_have_text(
        "There is no account here for eve. Ask an administrator for one."
    )
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.get_by_label("Password")).to_have_count(0)
    check_in_both_themes(page)
    make_narrow(page)
    fits(page)
