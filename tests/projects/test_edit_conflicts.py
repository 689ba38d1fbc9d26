"""Edit forms show a concurrent change instead of overwriting it."""

import re
from collections.abc import Iterator

import pytest
from django.db import transaction
from django.urls import get_resolver, resolve

from flagadmin.console.edit_conflicts import EditConflictMixin
from groups.console import ActionPage, ConfirmPage, ConsolePage
from groups.models import Group, Role
from groups.permissions import BuiltIn
from playground.models import SavedContext
from projects.models import (
    ContextField,
    Flag,
    FlagLink,
    Project,
    ProjectEnvironment,
    Segment,
    StrategyType,
    TagType,
)
from tests.support.cast import make_user
from tests.support.flags import add_strategy, make_flag
from tests.support.page_text import page_text
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, race
from tests.support.scenery import make_vocabulary

pytestmark = pytest.mark.exhaustive

FLAG = "/projects/shop/features/cart/"


def shown(response):
    return re.search(r'name="expected" value="([^"]+)"', response.text)[1]


class Strategy:
    who = "member"
    first, second, third = (
        {"p-rollout": share, "p-stickiness": "userId", "title": "Ours", "disabled": "on", "confirmed": "yes"}
        for share in ("10", "20", "30")
    )
    told = "admin changed a strategy of cart in production"
    says = "Stored now: On for 10 % by userId. (Ours, disabled)"

    def __init__(self, flag):
        made = add_strategy(flag, "production", "flexibleRollout", parameters={"rollout": "1"})
        self.url = f"{FLAG}strategies/edit?environmentId=production&strategyId={made.pk}"
        self.row = made

    def stored(self):
        self.row.refresh_from_db()
        return self.row.parameters["rollout"]


class Variants:
    who = "member"
    first, second, third = ({"v": "0", "v-0-name": name, "confirmed": "yes"} for name in ("10", "20", "30"))
    told = "admin changed the variants of cart in production"
    says = "Stored now: Variants: 10 100 %"

    def __init__(self, flag):
        self.url = f"{FLAG}variants?environmentId=production"
        self.row = flag.environments.get(environment="production")

    def stored(self):
        self.row.refresh_from_db()
        return self.row.variants[0]["name"]


class OfSegment:
    who = "editor"
    first, second, third = (
        {"name": "vip", "c": "0", "c-0-field": "plan", "c-0-operator": "STR_CONTAINS", "c-0-values": share}
        for share in ("10", "20", "30")
    )
    told = "admin changed segment vip"
    says = "Stored now: plan is a string containing 10. (vip, for all projects)"

    def __init__(self, flag):
        make_vocabulary()
        self.row = Segment.objects.create(name="vip", constraints=[])
        self.url = f"/segments/{self.row.pk}/"

    def stored(self):
        self.row.refresh_from_db()
        return self.row.constraints[0]["values"][0]


class Row:
    """A form of plain fields that edits one row; ``field`` is the one that is changed."""

    who, field, given = "boss", "name", {}

    def __init__(self, flag):
        self.first, self.second, self.third = (
            self.given | {self.field: share} for share in ("10", "20", "30")
        )
        self.says = f"Stored now: {self.field.capitalize()}: 10."
        self.row = self.make()

    def make(self):
        raise NotImplementedError

    def stored(self):
        self.row.refresh_from_db()
        return getattr(self.row, self.field)


class Settings(Row):
    who, given = "owner", {"default_stickiness": "default"}
    told, url = "admin changed the settings of project shop", "/projects/shop/settings/"

    def make(self):
        return Project.objects.get(pk="shop")


class DefaultStrategy(Row):
    who, field, given = "owner", "title", {"name": "flexibleRollout", "p-rollout": "5"}
    told = "admin changed the default strategy of shop in production"
    url = "/projects/shop/environments/production/strategy"

    def make(self):
        self.says = "Stored now: On for 5 % by userId, else sessionId. (10)"
        return ProjectEnvironment.objects.get(project="shop", environment="production")

    def stored(self):
        self.row.refresh_from_db()
        return self.row.default_strategy["title"]


class OfRole(Row):
    given = {"permissions": ["UPDATE_FEATURE", "UPDATE_FEATURE_ENVIRONMENT development"]}
    told = "admin changed role 10"

    def make(self):
        role = Role.objects.create(name="Helper", type=Role.Type.CUSTOM)
        self.url = f"/access/roles/{role.pk}/edit/"
        return role


class OfGroup(Row):
    told = "admin changed group 10"

    def make(self):
        group = Group.objects.create(name="Team")
        self.url = f"/access/groups/{group.pk}/edit/"
        return group


class Account(Row):
    told = "admin changed user ada"

    def make(self):
        self.says = "Stored now: Full name: 10."
        user = make_user("ada")
        self.url = f"/access/people/{user.pk}/edit/"
        return user


class ServiceAccount(Row):
    told = "admin changed service account bot"

    def make(self):
        self.says = "Stored now: Full name: 10."
        user = make_user("bot", is_service=True)
        self.url = f"/access/service-accounts/{user.pk}/edit/"
        return user


class OfContextField(Row):
    who, field, given = "editor", "description", {"sort_order": "1", "legal_values": "pro :: pays"}
    told, url = "admin changed context field tier", "/context-fields/tier/"

    def make(self):
        return ContextField.objects.create(name="tier")


class OfStrategyType(Row):
    who, field, given = "editor", "title", {"parameters": "hosts :: list"}
    told, url = "admin changed strategy type hostGroup", "/strategy-types/hostGroup/"

    def make(self):
        return StrategyType.objects.create(name="hostGroup", built_in=False)


class OfTagType(Row):
    who, field = "editor", "icon"
    told, url = "admin changed tag type team", "/tag-types/team/"

    def make(self):
        return TagType.objects.create(name="team")


class Metadata(Row):
    who, field, given = "member", "description", {"type": "kill-switch", "stale": "on"}
    told, url = "admin changed the description of flag cart", f"{FLAG}edit"

    def make(self):
        return Flag.objects.get(name="cart")


class OfLink(Row):
    who, field = "member", "title"
    given, told = {"url": "https://a.example"}, "admin changed a link of flag cart"

    def make(self):
        link = FlagLink.objects.create(flag=Flag.objects.get(name="cart"), url="https://a.example")
        self.url = f"{FLAG}link/{link.pk}/"
        return link


class OfSavedContext(Row):
    who, field, given = "editor", "note", {"name": "Ada", "context": '{"userId": "42"}'}
    told = "admin changed saved context Ada"

    def make(self):
        saved = SavedContext.objects.create(name="Ada")
        self.url = f"/playground/contexts/{saved.pk}/"
        return saved


FORMS = [
    *(Strategy, Variants, OfSegment, Settings, DefaultStrategy, OfRole, OfGroup, Account, ServiceAccount),
    *(OfContextField, OfStrategyType, OfTagType, Metadata, OfLink, OfSavedContext),
]


@pytest.fixture(params=FORMS)
def form(request, people):
    people["boss"] = make_user("boss", root_role=BuiltIn.ADMIN)
    return request.param(make_flag("cart"))


# Forms that change no stored row which somebody else could have changed meanwhile.
NO_EDIT = {
    # They create something.
    *(
        "account-token-new",
        "context-field-new",
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
    *("account-password", "account-log-out", "account-token-revoke"),
    *("account-confirm", "two-step-app", "two-step-passkey-new", "two-step-passkey"),
    # They archive or delete what they list, or make it what they say.
    *("flags-archive", "project-delete", "flags-toggle", "flags-tags", "flag-move"),
    "flag-revert",  # compares the flag with what it listed, and lists anew
    # They create or add something.
    *("flag-clone", "person-grant", "service-account-grant", "group-grant"),
    "import-run",  # compares the plan
    *("playground", "playground-compare", "if-saved", "who-changes"),  # only evaluate
    "users",  # creates a run
    "application",  # shows what was reported
}


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
    tested = {url_name(form, flag) for form in FORMS}
    forms = views(get_resolver().url_patterns)
    assert tested == {name for name, view in forms if issubclass(view, EditConflictMixin)}


def test_what_somebody_else_saved_meanwhile_is_told_and_stays(browse, form):
    mine = shown(browse(form.who).get(form.url))
    assert browse("admin").post(form.url, form.first | {"expected": mine}).status_code == 302

    refused = browse(form.who).post(form.url, form.second | {"expected": mine})

    assert refused.status_code == 409
    assert "changed since you opened this page. Nothing was saved." in page_text(refused)
    assert form.told in page_text(refused)
    assert form.says in page_text(refused)
    assert re.search(r'value="20"|>\s*20<', refused.text)  # what was entered is still there
    assert form.stored() == "10"


def test_saved_again_it_replaces_that(browse, form):
    mine = shown(browse(form.who).get(form.url))
    browse("admin").post(form.url, form.first | {"expected": mine})
    refused = browse(form.who).post(form.url, form.second | {"expected": mine})

    assert browse(form.who).post(form.url, form.second | {"expected": shown(refused)}).status_code == 302
    assert form.stored() == "20"


def test_once_more_is_asked_once_more(browse, form):
    mine = shown(browse(form.who).get(form.url))
    browse("admin").post(form.url, form.first | {"expected": mine})
    refused = browse(form.who).post(form.url, form.second | {"expected": mine})
    browse("admin").post(form.url, form.third | {"expected": shown(browse("admin").get(form.url))})

    assert browse(form.who).post(form.url, form.second | {"expected": shown(refused)}).status_code == 409
    assert form.stored() == "30"


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


@pytest.mark.parametrize("form", [one for one in FORMS if one is not Metadata], indirect=True)
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
    settings = browse("owner").get("/projects/shop/settings/")
    mine = re.search(
        r'value="production">\s*<input type="hidden" name="expected" value="([^"]+)"', settings.text
    )[1]
    form = DefaultStrategy(None)
    browse("admin").post(form.url, form.first)

    sent = {"environment": "production", "do": "remove", "expected": mine}
    answer = browse("owner").post("/projects/shop/environments", sent, follow=True)

    assert "changed since you opened this page" in page_text(answer)
    assert ProjectEnvironment.objects.filter(project="shop", environment="production").exists()
