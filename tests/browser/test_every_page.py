"""Every page is accessible in both themes, fits every width, is small, and makes no external request or CSP violation."""

import gzip
import re

import pytest
from django.test import Client
from playwright.sync_api import expect

from tests.browser.conftest import fits, make_narrow, person
from tests.browser.pages import PAGES, filled, meant_status
from tests.support.second_factor import just_logged_in

pytestmark = pytest.mark.usefixtures("scenery")

PARTS = 12  # so that several workers share the pages
MAX_REQUESTS, MAX_BYTES = 7, 70_000
HEADERS = 600  # bytes of one answer, at most
MANY_FILES = "/admin/"  # Django's admin site has 25 files of its own
COLORS = """() => [...document.querySelectorAll("body, body *")].map((element) => {
    const style = getComputedStyle(element);
    return [element.tagName, style.color, style.backgroundColor, style.borderTopColor].join(" ");
})"""


@pytest.mark.parametrize("part", range(PARTS))
def test_they_are_small_accessible_in_both_themes_and_fit_every_width(visit, watch, check_accessible, part):
    """Colors depend on the theme and structure on the width: two looks with both different find what all four would."""
    page = visit("admin", "/account/")
    browser = page.context.new_cdp_session(page)
    for address in PAGES[part::PARTS]:
        page.goto("about:blank")  # ends what the page before still asks for
        browser.send("Network.clearBrowserCache")
        watch.requests.clear()
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(filled(address))
        page.wait_for_load_state()
        if not address.startswith(MANY_FILES):
            check_cold_visit(watch.requests)
        check_accessible(page)
        fits(page, 1440)
        make_narrow(page, 1024)
        fits(page, 1024)
        make_narrow(page, 820)
        fits(page, 820)

        page.emulate_media(color_scheme="dark")
        make_narrow(page)
        check_accessible(page)
        fits(page)


def check_cold_visit(requests):
    sizes = {request.url: sent_bytes(request) for request in requests}
    assert len(requests) <= MAX_REQUESTS, "\n".join(sizes)
    assert sum(sizes.values()) <= MAX_BYTES, sizes


def sent_bytes(request):
    """What goes over the wire when it is compressed; tests serve static files as they lie on the disk."""
    body = request.response().body()
    return HEADERS + len(gzip.compress(body))


@pytest.mark.parametrize("address", ["/playground/", "/projects/checkout/", "/admin/projects/flag/"])
def test_a_chosen_theme_looks_as_that_of_the_system(visit, address):
    """Accessible in one, accessible in the other."""
    for theme, other in (("dark", "light"), ("light", "dark")):
        of_system, chosen = visit("admin", address, theme=theme), visit("admin", "/", theme=other)
        chosen.context.add_cookies([{"name": "theme", "value": theme, "url": chosen.url}])
        chosen.goto(address)
        assert chosen.evaluate(COLORS) == of_system.evaluate(COLORS)


def test_every_address_leads_to_its_page():
    """An error page is accessible too: what is checked above has to be the page that is meant."""
    browser = Client()
    browser.force_login(person("admin"))
    session = browser.session
    just_logged_in(session, person("admin"))
    session.save()
    answers = {address: browser.get(filled(address)) for address in PAGES}
    assert {address: each.status_code for address, each in answers.items()} == {
        address: meant_status(address) for address in PAGES
    }
    assert {address: forms_without_button(each.content.decode()) for address, each in answers.items()} == {
        address: [] for address in PAGES
    }


def forms_without_button(page):
    """Forms that only a script or the Enter key could send."""
    forms = {
        form: re.search(r'\bid="([^"]+)"', form) for form in re.findall(r"<form\b.*?</form>", page, re.DOTALL)
    }
    return [
        form[:120]
        for form, name in forms.items()
        if not re.search(r"<button(?! type=\"(?:button|reset))|<input[^>]* type=\"submit", form)
        and not (name and f'form="{name[1]}"' in page)
        and not re.match(r"<form[^>]* hidden", form)
    ]


def test_so_is_the_login_page(visit, check_accessible):
    page = visit(None, "/activity/")
    check_accessible(page)

    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("This field is required.")).to_be_visible()
    check_accessible(page)
    page.emulate_media(color_scheme="dark")
    check_accessible(page)
    make_narrow(page)
    fits(page)
