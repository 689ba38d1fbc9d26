"""Every page is accessible in both themes, fits every width, is small, and makes no external request or CSP violation."""

import gzip
import re
from functools import cache
from typing import Any
from urllib.request import urlopen

import pytest
from django.contrib import admin
from django.urls import reverse
from playwright.sync_api import expect

from tests.browser.conftest import fits, make_narrow
from tests.browser.looks import Window, tell
from tests.browser.pages import PAGES, filled, meant_status

pytestmark = pytest.mark.usefixtures("scenery")
admin.autodiscover()

MAX_REQUESTS, MAX_BYTES = 7, 71_000
HEADERS = 600  # bytes of one answer, at most
MANY_FILES = "/admin/"  # Django's admin site has 25 files of its own
COLORS = """() => [...document.querySelectorAll("body, body *")].map((element) => {
    const style = getComputedStyle(element);
    return [element.tagName, style.color, style.backgroundColor, style.borderTopColor].join(" ");
})"""
KINDS = """() => [...document.querySelectorAll("body *")].map((each) => [
    each.parentElement, each].map(({localName, className}) => `${localName}.${className}`).join(" > ")
    + each.getAttributeNames() + each.getAttribute("type") + each.getAttribute("role"))"""


@pytest.fixture
def window(visit):
    return Window(visit("admin", "/account/"))


@pytest.mark.exhaustive
def test_pages_are_small_accessible_in_both_themes_and_fit_every_width(window, watch):
    faults = {}
    for address in PAGES:
        before = window.page.url
        watch.requests.clear()
        answer = window.page.goto(filled(address))
        window.page.wait_for_load_state()
        # Those of the page before may come until this one is there.
        requests = [each for each in watch.requests if each.headers.get("referer") != before]
        faults[address] = check_answer(address, answer, requests) | window.look()
    tell(faults)


def check_answer(address, answer, requests):
    found = {}
    if answer.status != meant_status(address):  # an error page is accessible too
        found["status"] = answer.status
    if forms := forms_without_button(answer.text()):
        found["forms without a button"] = forms
    if not address.startswith(MANY_FILES):
        sizes = {each.url: sent_bytes(each) for each in requests}
        if len(requests) > MAX_REQUESTS or sum(sizes.values()) > MAX_BYTES:
            found["size"] = sizes
    return found


def sent_bytes(request):
    """What goes over the wire when it is compressed; tests serve static files as they lie on the disk."""
    if "/static/" in request.url:
        return sent_bytes_of_file(request.url)
    return HEADERS + len(gzip.compress(request.response().body()))


@cache
def sent_bytes_of_file(url):
    with urlopen(url) as answer:
        return HEADERS + len(gzip.compress(answer.read()))


def pages_of_data_fixes():
    """The list, one row and its deletion of every model, an app's page, the form of the most fields, and a history."""
    registered: dict[Any, Any] = dict(admin.site._registry)
    for model, page in registered.items():
        name, row = f"admin:{model._meta.app_label}_{model._meta.model_name}", model._base_manager.first()
        yield reverse(f"{name}_changelist")
        if row is not None:
            yield reverse(f"{name}_change", args=[row.pk])
            if page.remove:
                yield reverse(f"{name}_delete", args=[row.pk])
    yield from ("/admin/projects/", "/admin/projects/flag/add/", "/admin/projects/project/checkout/history/")


@pytest.mark.exhaustive
def test_pages_of_data_fixes_fit_a_phone_and_each_kind_of_element_is_accessible(window):
    """Django's templates make them: a page whose elements are all known from others needs no other look."""
    faults, known = {}, set()
    for address in pages_of_data_fixes():
        window.page.goto(address)
        wide = window.narrow()
        faults[address] = {"width": wide} if wide > 360 else {}
        kinds = set(window.page.evaluate(KINDS))
        if not kinds <= known:
            faults[address] |= window.look()
        known |= kinds
    tell(faults)


def test_a_chosen_theme_looks_as_that_of_the_system(visit):
    """Accessible in one, accessible in the other."""
    page = visit("admin", "/")
    for address in ("/playground/", "/projects/checkout/", "/admin/projects/flag/"):
        page.context.clear_cookies(name="theme")
        page.goto(address)
        for theme, other in (("dark", "light"), ("light", "dark")):
            page.emulate_media(color_scheme=theme)
            of_system = page.evaluate(COLORS)
            page.emulate_media(color_scheme=other)
            assert page.evaluate(COLORS) != of_system
            page.context.add_cookies([{"name": "theme", "value": theme, "url": page.url}])
            page.reload()
            assert page.evaluate(COLORS) == of_system
            page.context.clear_cookies(name="theme")
            page.reload()


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
