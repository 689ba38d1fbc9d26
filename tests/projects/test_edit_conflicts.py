"""Edit forms show a concurrent change instead of overwriting it."""

import re
from collections.abc import Iterator

import pytest
from django.db import transaction
from django.urls import get_resolver, resolve

from flagadmin.core.edit_conflicts.forms import EditConflictMixin
from groups.console import ActionPage, ConfirmPage, ConsolePage
from groups.permissions import BuiltIn
from projects.models import (
    Flag,
    ProjectEnvironment,
)
from tests.projects.edit_forms import FORMS, DefaultStrategy, Metadata, OfSegment, OfShare, Strategy, Variants
from tests.support.cast import make_user
from tests.support.flags import add_strategy, make_flag
from tests.support.page_text import page_text
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, race

pytestmark = pytest.mark.exhaustive


def shown(response):
    return re.search(r'name="expected" value="([^"]+)"', response.text)[1]


@pytest.fixture(params=FORMS)
def form(request, people):
    people["boss"] = make_user("boss", root_role=BuiltIn.ADMIN)
    return request.param(make_flag("cart"))


# Forms that change no stored row which somebody else could have changed meanwhile.
NO_EDIT = {
    # They create something.
    *(
        "account-token-new",
        "agents",
        "context-field-new",
        "environment-new",
        "expectation-new",
        "flag-new",
        "group-new",
        "person-new",
        "project-new",
        "role-new",
        "saved-context-new",
    ),
    *("segment-new", "service-account-new", "service-account-token-new", "strategy-new", "strategy-type-new"),
    *("tag-type-new", "token-new", "import"),
    # They replace or end something of the user's own.
    *("account-password", "account-log-out"),
    *("account-confirm", "two-step-app", "two-step-passkey-new", "two-step-passkey"),
    # They archive or delete what they list, or make it what they say.
    *("flags-archive", "project-delete", "flags-toggle", "flags-tags", "flag-move"),
    *("all-flags-archive", "all-flags-toggle", "all-flags-tags"),
    "change-revert",  # refuses what has been changed since
    "flag-revert",  # compares the flag with what it listed, and lists anew
    "environment-revert",  # the same, of all flags
    # They create or add something.
    *("flag-clone", "person-grant", "service-account-grant", "group-grant", "project-invite"),
    *("charts", "flag-charts", "flag-safeguards"),  # they add one, beside a list of those that there are
    "import-run",  # compares the plan
    "promote",  # plans, and then it is an import-run
    *(
        "playground",
        "playground-compare",
        "if-saved",
        "who-changes",
        "assignments",
        "incidents",
        "analysis-new",
    ),  # only evaluate
    "users",  # creates a run
    "application",  # shows what was reported
    *("invite-link-new", "connect"),  # create one
    *("integration-new", "integration-signing-key"),  # create one
    *(
        "signal-source-new",
        "signal-rule-new",
        "release-template-new",
        "plan-new",
        "in-steps",
        "calendar",
        "move",
    ),  # create one
    "signal-token",  # replaces it
    "signal-rule-try",  # changes nothing
    *("installation", "scim"),  # sets single values, and shows at once what they are
}


# Tested with the other pages of release templates.
IN_RELEASE_TEMPLATES = {"milestone-strategy", "milestone-strategy-new"}


def views(patterns) -> Iterator[tuple[str, type]]:
    """The name and the class of every console page that accepts a form."""
    for pattern in patterns:
        if hasattr(pattern, "url_patterns"):
            yield from views(pattern.url_patterns)
            continue
        view = getattr(pattern.callback, "view_class", object)
        if issubclass(view, ConsolePage) and hasattr(view, "post"):
            yield pattern.name, view


def test_every_edit_form_detects_conflicts():
    """A new form either extends EditPage (or EditConflictMixin) or is named in NO_EDIT with its reason."""
    pages = {
        name: issubclass(view, EditConflictMixin)
        for name, view in views(get_resolver().url_patterns)
        if not issubclass(view, ActionPage | ConfirmPage)
    }
    assert {name for name, detects in pages.items() if not detects} == NO_EDIT


def url_name(form, flag):
    with transaction.atomic():
        url = form(flag).url
        transaction.set_rollback(True)
    return resolve(url.partition("?")[0]).url_name


def test_every_edit_form_is_tested_here(people):
    flag = make_flag("cart")
    tested = {url_name(form, flag) for form in FORMS} | IN_RELEASE_TEMPLATES
    forms = views(get_resolver().url_patterns)
    assert tested == {name for name, view in forms if issubclass(view, EditConflictMixin)}


def test_what_somebody_else_saved_meanwhile_is_told_and_stays_until_it_was_seen(browse, form):
    mine = shown(browse(form.who).get(form.url))
    assert browse("admin").post(form.url, form.first | {"expected": mine}).status_code == 302

    refused = browse(form.who).post(form.url, form.second | {"expected": mine})

    assert refused.status_code == 409
    assert "changed since you opened this page. Nothing was saved." in page_text(refused)
    assert form.told in page_text(refused)
    assert form.says in page_text(refused)
    assert re.search(r'value="20"|>\s*20<|&quot;20&quot;', refused.text)  # what was entered is still there
    assert form.stored() == "10"

    browse("admin").post(form.url, form.third | {"expected": shown(browse("admin").get(form.url))})
    again = browse(form.who).post(form.url, form.second | {"expected": shown(refused)})
    assert (again.status_code, form.stored()) == (409, "30")

    assert browse(form.who).post(form.url, form.second | {"expected": shown(again)}).status_code == 302
    assert form.stored() == "20"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
def test_of_two_at_once_one_is_saved(transactional_db, browse, form, stop):
    mine = shown(browse(form.who).get(form.url))

    def save(who, sent):
        browser = browse(who)
        return lambda: browser.post(form.url, sent | {"expected": mine}).status_code

    # Stopped before its lock the first finds what the second has saved; before its commit it has saved already.
    expected = (409, 302) if stop == BEFORE_LOCK else (302, 409)
    assert race(save(form.who, form.first), save("admin", form.second), stop=stop) == expected
    assert form.stored() == ("20" if stop == BEFORE_LOCK else "10")


@pytest.mark.parametrize("form", [Strategy, Variants, OfSegment, DefaultStrategy], indirect=True)
def test_looking_at_what_it_says_does_not_agree_to_it(browse, form):
    """The form is drawn again with every row that is added; what was seen first counts."""
    mine = shown(browse(form.who).get(form.url))
    browse("admin").post(form.url, form.first | {"expected": mine})

    drawn = browse(form.who).post(form.url, form.second | {"expected": mine, "do": "refresh"})

    assert shown(drawn) == mine


# Another strategy leaves the flag no single share.
@pytest.mark.parametrize("form", [one for one in FORMS if one not in (Metadata, OfShare)], indirect=True)
def test_what_changed_elsewhere_does_not_matter(browse, form):
    mine = shown(browse(form.who).get(form.url))
    add_strategy(make_flag("other"), "production")
    add_strategy(Flag.objects.get(name="cart"), "production")
    Flag.objects.filter(name="cart").update(description="Changed")

    assert browse(form.who).post(form.url, form.second | {"expected": mine}).status_code == 302


@pytest.mark.parametrize("sent", ["x", "x.y", f"x.{'9' * 30}", "x.²"])
def test_a_form_of_something_else_is_refused(browse, form, sent):
    assert browse(form.who).post(form.url, form.second | {"expected": sent}).status_code == 409


def test_another_place_in_the_order_is_no_change(browse, shop):
    form = Strategy(make_flag("cart"))
    mine = shown(browse(form.who).get(form.url))
    form.row.sort_order = 7
    form.row.save()

    assert browse(form.who).post(form.url, form.second | {"expected": mine}).status_code == 302
    assert form.stored() == "20"


def test_a_form_without_a_version_overwrites(browse, form):
    browse("admin").post(form.url, form.first | {"expected": shown(browse("admin").get(form.url))})

    assert browse(form.who).post(form.url, form.second).status_code == 302
    assert form.stored() == "20"


def test_an_environment_whose_default_strategy_changed_stays_in_use(browse, shop):
    settings = browse("owner").get("/projects/shop/settings/approvals/")
    mine = re.search(
        r'value="production">\s*<input type="hidden" name="expected" value="([^"]+)"', settings.text
    )[1]
    form = DefaultStrategy(None)
    browse("admin").post(form.url, form.first)

    sent = {"environment": "production", "do": "remove", "expected": mine}
    answer = browse("owner").post("/projects/shop/environments", sent, follow=True)

    assert "changed since you opened this page" in page_text(answer)
    assert ProjectEnvironment.objects.filter(project="shop", environment="production").exists()
