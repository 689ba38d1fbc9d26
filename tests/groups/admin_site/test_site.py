"""The admin site: who may log in, and that every page opens."""

from datetime import UTC, datetime

import pytest
from django.contrib import admin
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.models import ApiToken, Grant, Group, GroupMembership, InviteLink, LoginFailure, Role
from groups.permissions import BuiltIn
from groups.tokens import hash_secret
from importer.models import InstallationMove, SourceEvent
from playground.models import Analysis, SavedContext, UserRun
from projects.models import (
    Application,
    ApplicationInstance,
    Dependency,
    Flag,
    FlagLastSeen,
    FlagLink,
    FlagTag,
    LifecycleStage,
    Segment,
    StrategySegment,
)
from tests.support.admin_forms import entered, site
from tests.support.cast import client, make_token
from tests.support.flags import add_strategy, make_flag

__all__ = ["site"]


@pytest.fixture
def furnished(people):
    """One row in every table that has a page."""
    now = timezone.now()
    flag, parent = make_flag("cart", enabled=True), make_flag("base")
    strategy = add_strategy(flag)
    segment = Segment.objects.create(name="vip", constraints=[])
    StrategySegment.objects.create(strategy=strategy, segment=segment)
    FlagTag.objects.create(flag=flag, tag_type_id="simple", value="web")
    FlagLink.objects.create(flag=flag, url="https://example.com")
    Dependency.objects.create(flag=flag, parent=parent)
    FlagLastSeen.objects.create(flag=flag, environment="development", seen_at=now)
    LifecycleStage.objects.create(flag=flag, stage="initial", entered_at=now)
    application = Application.objects.create(name="web", folded_name="web", created_at=now)
    ApplicationInstance.objects.create(
        application=application, environment="development", instance_id="i", first_seen_at=now, seen_at=now
    )
    group = Group.objects.create(name="crew", root_role_id=BuiltIn.VIEWER)
    GroupMembership.objects.create(group=group, user=people["outsider"])
    Grant.objects.create(role_id=BuiltIn.MEMBER, project_id="shop", group=group)
    Role.objects.create(name="Tester").permissions.create(permission="CREATE_FEATURE")
    make_token("backend", projects=["shop"], environment="development")
    SavedContext.objects.create(name="Ada")
    UserRun.objects.create(caller_name="x", environment="production", created_at=now)
    Analysis.objects.create(
        flag=flag,
        environment_id="production",
        name="x",
        design={},
        sight={},
        caller_name="x",
        created_at=now,
    )
    LoginFailure.objects.create(account="x", address="127.0.0.1")
    InviteLink.objects.create(
        name="Team", key="abc", token_hash=hash_secret("abc.def"), role_id=BuiltIn.VIEWER, expires_at=now
    )
    InstallationMove.objects.create(step="plan", address="https://unleash.example.org", caller_name="x")
    SourceEvent.objects.create(
        source="https://unleash.example.org", event_id=1, created_at=now, type="feature-created"
    )
    AuditEvent.objects.create(type="project-created", actor_name="x", project="shop", after={"id": "shop"})


PAGES = sorted(admin.site._registry, key=lambda model: model._meta.label)


def url(model, page, *args):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


EMPTY = {"importer.ImportRun", "groups.LoginLink"}


def wrong_statuses(site, model):
    """The pages of a model that answer another status than they should, with both."""
    page, row = admin.site._registry[model], model._base_manager.first()
    query = {"q": "shop"} if page.search_fields else {}
    add = site.get(url(model, "add"))
    expected = {"add": (add.status_code, 200 if page.has_add_permission(add.wsgi_request) else 403)}
    expected["search"] = site.get(url(model, "changelist"), query).status_code, 200
    expected["changelist"] = site.get(url(model, "changelist")).status_code, 200
    if row is not None:
        delete = site.get(url(model, "delete", row.pk))
        may = page.has_delete_permission(delete.wsgi_request, row)
        expected["delete"] = delete.status_code, 200 if may else 403
        expected["change"] = site.get(url(model, "change", row.pk)).status_code, 200
    return {name: statuses for name, statuses in expected.items() if statuses[0] != statuses[1]}


def test_every_page_opens(furnished, site):
    assert {each._meta.label for each in PAGES if not each._base_manager.exists()} == EMPTY
    site.raise_request_exception = False
    wrong = {model._meta.label: wrong_statuses(site, model) for model in PAGES}
    faults = {label: pages for label, pages in wrong.items() if pages}
    assert not faults, faults


def test_every_model_with_a_page_can_be_searched_for():
    unsearched = [model._meta.label for model in PAGES if not admin.site._registry[model].search_fields]
    assert unsearched == []


def test_nothing_is_written_inline(furnished, site):
    """The pages keep to the content security policy: no script and no style in the markup."""
    for model in PAGES:
        for path in (
            url(model, "changelist"),
            url(model, "change", getattr(model._base_manager.first(), "pk", 0)),
        ):
            response = site.get(path)
            markup = response.content.decode()
            assert "<style" not in markup, path
            assert " onclick=" not in markup, path
            assert "'unsafe-inline'" not in response["Content-Security-Policy"]


@pytest.mark.parametrize("who", ["editor", "viewer", "owner", "outsider"])
def test_only_the_admin_role_enters(people, who):
    browser = entered(people[who])
    for model in PAGES:
        assert browser.get(url(model, "changelist")).status_code == 302, model
        assert browser.post(url(model, "changelist"), {}).status_code == 302, model


def test_nobody_enters_without_a_session(api, db):
    assert client().get("/admin/projects/project/").status_code == 302
    # A key is for the API.
    assert api["admin"].get("/admin/projects/project/").status_code == 302


def test_an_admin_by_group_enters(people):
    group = Group.objects.create(name="admins", root_role_id=BuiltIn.ADMIN)
    GroupMembership.objects.create(group=group, user=people["outsider"])
    assert entered(people["outsider"]).get("/admin/projects/project/").status_code == 200


def test_no_secret_is_shown(furnished, site, people):
    secret = make_token("personal", user=people["admin"])
    token = ApiToken.objects.get(secret_hash=hash_secret(secret))
    link = InviteLink.objects.get()
    for row in (token, link):
        for path in (url(type(row), "changelist"), url(type(row), "change", row.pk)):
            shown = site.get(path).content.decode()
            assert secret not in shown
            assert hash_secret(secret) not in shown
            assert link.token_hash not in shown
    person = site.get(f"/admin/groups/user/{people['admin'].pk}/change/").content.decode()
    assert "md5$" not in person


def test_the_audit_trail_is_only_shown(furnished, site):
    event = AuditEvent.objects.get()
    assert site.get(f"/admin/audit/auditevent/{event.pk}/change/").status_code == 200
    for page in ("change", "delete"):
        assert site.post(f"/admin/audit/auditevent/{event.pk}/{page}/", {"post": "yes"}).status_code == 403
    assert AuditEvent.objects.get().type == "project-created"


def test_autocomplete_finds_accounts(furnished, site):
    response = site.get(
        "/admin/autocomplete/",
        {"app_label": "groups", "model_name": "grant", "field_name": "user", "term": "outs"},
    )
    assert [item["text"] for item in response.json()["results"]] == ["outsider"]


def test_times_are_written_as_on_the_other_pages(site, shop):
    cart = make_flag("cart")
    Flag.objects.update(created_at=datetime(2026, 10, 6, 22, 20, 5, tzinfo=UTC))
    listed = site.get("/admin/projects/flag/").text
    assert '<time datetime="2026-10-06T22:20:05+00:00" data-time="minute"' in listed
    assert ">6 Oct 2026, 22:20 UTC</time>" in listed
    assert "6 Oct 2026, 22:20 UTC" in site.get(f"/admin/projects/flag/{cart.pk}/change/").text


def test_a_form_begins_with_its_fields(site):
    form = site.get("/admin/projects/environment/add/").text.partition('id="environment_form"')[2]
    assert form.index('name="name"') < form.index('name="_save"')
