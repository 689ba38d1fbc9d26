"""Every change form of the admin site shows a concurrent change instead of overwriting it."""

import re

import pytest
from django.contrib import admin
from django.urls import reverse

from groups.models import ApiToken, Group, Role, User
from groups.permissions import BuiltIn
from playground.models import SavedContext
from projects.models import (
    ContextField,
    Environment,
    Flag,
    FlagLink,
    Project,
    Segment,
    Strategy,
    StrategyType,
    TagType,
)
from tests.support.admin_forms import entered, filled, saved, send, shown, site
from tests.support.cast import make_token, make_user
from tests.support.flags import add_strategy, make_flag
from tests.support.page_text import page_text
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, race

pytestmark = pytest.mark.exhaustive

__all__ = ["site"]


def backend_token():
    make_token("backend", projects=["shop"], environment="development")
    return ApiToken.objects.get()


# A row of each table that has a change form, the field that is changed, and what the page says of the change.
ROWS = {
    Flag: (lambda: make_flag("cart"), "description", "boss changed the description of flag cart"),
    Strategy: (
        lambda: add_strategy(make_flag("cart")),
        "title",
        "boss changed a strategy of cart in development",
    ),
    Project: (
        lambda: Project.objects.get(pk="shop"),
        "description",
        "boss changed the settings of project shop",
    ),
    Environment: (lambda: Environment.objects.first(), "type", "boss changed environment"),
    Segment: (
        lambda: Segment.objects.create(name="vip", constraints=[]),
        "description",
        "boss changed segment vip",
    ),
    ContextField: (
        lambda: ContextField.objects.create(name="tier"),
        "description",
        "boss changed context field tier",
    ),
    StrategyType: (
        lambda: StrategyType.objects.create(name="hosts", built_in=False),
        "description",
        "boss changed strategy type hosts",
    ),
    TagType: (lambda: TagType.objects.create(name="team"), "description", "boss changed tag type team"),
    ApiToken: (backend_token, "expires_at", "boss changed API token backend of nobody"),
    Group: (lambda: Group.objects.create(name="crew"), "description", "boss changed group crew"),
    Role: (lambda: Role.objects.create(name="Helper"), "description", "boss changed role Helper"),
    SavedContext: (lambda: SavedContext.objects.create(name="Ada"), "note", "boss changed saved context Ada"),
    User: (lambda: make_user("ada"), "name", "boss changed user ada"),
}
DATES = {"10": "2031-01-10T00:00:00", "20": "2031-01-20T00:00:00"}


class ChangeForm:
    def __init__(self, model):
        make, self.field, self.expected_sentence = ROWS[model]
        self.row = make()
        self.url = url_of(self.row)

    def values(self, text):
        return {self.field: DATES[text] if self.field == "expires_at" else text, "_save": "Save"}

    def stored(self):
        self.row.refresh_from_db()
        value = getattr(self.row, self.field)
        return str(value.day) if self.field == "expires_at" else value


def url_of(row):
    meta = row._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk])


@pytest.fixture
def boss(people):
    """Another admin."""
    return entered(make_user("boss", root_role=BuiltIn.ADMIN))


@pytest.fixture(params=ROWS, ids=lambda model: model.__name__)
def form(request, people):
    return ChangeForm(request.param)


@pytest.fixture
def cart(shop):
    return make_flag("cart")


def refused(response):
    assert response.status_code == 409
    assert "changed since you opened this page. Nothing was saved." in page_text(response)
    return page_text(response)


def test_every_change_form_is_tested_here():
    assert set(ROWS) == {model for model, page in admin.site._registry.items() if page.change}  # type: ignore[attr-defined]


def test_a_concurrent_change_is_shown_and_overwritten_only_by_a_form_that_saw_it_or_sends_no_version(
    site, boss, form
):
    page = site.get(form.url)
    assert re.search(r'type="hidden" name="expected" value="\w{32}\.\d+"', page.text)
    mine = shown(page)
    saved(send(boss, form.url, **form.values("10")))
    answer = site.post(form.url, mine | form.values("20"))
    text = refused(answer)
    assert form.expected_sentence in text
    assert "Stored now: " in text
    assert shown(answer)[form.field] == form.values("20")[form.field]
    assert form.stored() == "10"

    saved(site.post(form.url, shown(answer) | form.values("20")))
    assert form.stored() == "20"

    saved(send(boss, form.url, **form.values("10")))
    saved(site.post(form.url, mine | form.values("20") | {"expected": ""}))
    assert form.stored() == "20"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("form", [Flag, Segment, Group, TagType], indirect=True)
@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
def test_of_two_at_once_one_is_saved(transactional_db, site, boss, form, stop):
    mine = filled(site, form.url)

    def save(browser, text):
        return lambda: browser.post(form.url, mine | form.values(text)).status_code

    # Stopped before its lock the first finds what the second has saved; before its commit it has saved already.
    statuses = (409, 302) if stop == BEFORE_LOCK else (302, 409)
    assert race(save(site, "10"), save(boss, "20"), stop=stop) == statuses
    assert form.stored() == ("20" if stop == BEFORE_LOCK else "10")


def test_a_changed_inline_row_is_refused(site, boss, cart):
    link = FlagLink.objects.create(flag=cart, url="https://a.example")
    mine = filled(site, url_of(cart))
    saved(send(boss, url_of(cart), **{"links-0-url": "https://b.example"}))

    answer = site.post(url_of(cart), mine | {"links-0-title": "Ours", "_save": "Save"})

    assert "https://b.example: Url: https://b.example." in refused(answer)
    assert (shown(answer)["links-0-url"], shown(answer)["links-0-title"]) == ("https://a.example", "Ours")
    link.refresh_from_db()
    assert (link.url, link.title) == ("https://b.example", None)
    saved(site.post(url_of(cart), shown(answer) | {"_save": "Save"}))
    link.refresh_from_db()
    assert (link.url, link.title) == ("https://a.example", "Ours")


def test_a_row_added_meanwhile_is_shown(site, boss, cart):
    mine = filled(site, url_of(cart))
    added = {"links-TOTAL_FORMS": "1", "links-0-url": "https://b.example"}
    saved(send(boss, url_of(cart), **added))

    answer = site.post(url_of(cart), mine | {"description": "Ours", "_save": "Save"})

    assert "Rows were added or removed." in refused(answer)
    assert shown(answer)["links-0-url"] == "https://b.example"
    saved(site.post(url_of(cart), shown(answer) | {"_save": "Save"}))
    cart.refresh_from_db()
    assert (cart.description, cart.links.count()) == ("Ours", 1)


def test_a_row_removed_meanwhile_is_dropped(site, boss, cart):
    add_strategy(cart)
    mine = filled(site, url_of(cart))
    saved(send(boss, url_of(cart), **{"strategies-0-DELETE": "on"}))

    answer = site.post(url_of(cart), mine | {"strategies-0-title": "Ours", "_save": "Save"})

    assert "Rows were added or removed." in refused(answer)
    assert not Strategy.objects.exists()
    saved(site.post(url_of(cart), shown(answer) | {"_save": "Save"}))


def test_what_changes_elsewhere_does_not_matter(site, people, cart):
    mine = filled(site, url_of(people["member"]))
    User.objects.filter(pk=people["member"].pk).update(seen_at="2031-01-01T00:00:00Z")

    saved(site.post(url_of(people["member"]), mine | {"name": "Mem", "_save": "Save"}))
