"""/projects/ID/delete/ shows what blocks the deletion and what will be lost, and deletes nothing else."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.models import ApiToken, Grant, Group, RolePermission
from groups.permissions import BuiltIn
from projects.flags.actions import NewFlag, create_flag
from projects.models import Application, Flag, FlagUsage, Project, Segment, StrategySegment
from tests.support.cast import make_project, make_token
from tests.support.flags import add_strategy, depend, make_flag
from tests.support.for_each import for_each
from tests.support.page_text import page_text

URL = "/projects/legacy-portal/delete/"


def shown(browser):
    """What the page's forms send of what it shows."""
    return re.search(r'name="expected" value="([^"]+)"', browser.get(URL).text)[1]


def delete(browser, typed="legacy-portal", **options):
    return browser.post(URL, {"confirm": typed, "expected": shown(browser)}, **options)


def archived():
    return sorted(Flag.objects.archived().values_list("name", flat=True))


def use(flag, application, ago=timedelta(minutes=3)):
    row, _ = Application.objects.get_or_create(
        name=application, defaults={"created_at": timezone.now(), "folded_name": application}
    )
    moment = timezone.now() - ago
    FlagUsage.objects.create(
        application_id=row.pk, flag_id=flag.pk, environment="production", last_used_at=moment
    )


@pytest.fixture
def portal(people):
    """Two archived flags, two tokens of its own and one of others too, a group and three people."""
    project = make_project("legacy-portal", name="Legacy portal")
    for name in ("portal-login", "portal-export"):
        make_flag(name, project, archived=True)
    for environment in ("development", "production"):
        make_token("backend", projects=["legacy-portal"], environment=environment, name=f"in {environment}")
    make_token("backend", projects=["legacy-portal", "shop"], environment="production", name="both")
    group = Group.objects.create(name="Former contractors")
    Grant.objects.create(role_id=BuiltIn.MEMBER, project=project, group=group)
    for name in ("owner", "member", "reader"):
        Grant.objects.create(role_id=BuiltIn.MEMBER, project=project, user=people[name])
    Grant.objects.create(role_id=BuiltIn.OWNER, project=project, user=people["owner"])
    return project


@pytest.fixture
def active(portal):
    return [make_flag("portal-banner", portal), make_flag("portal-read-only", portal)]


# What stands there ----------------------------------------------------------------------------------------


def test_what_blocks_is_named(standing_clock, browse, active):
    use(active[1], "portal-web")
    use(active[1], "old-batch", ago=timedelta(days=40))
    page = browse("owner").get(URL)

    assert (
        "2 flags are still active. Archive them first; the project can be deleted after that."
        in page_text(page)
    )
    text = page_text(page).replace("\xa0", " ")
    assert 'Once a flag is archived, applications get "off".' in text
    assert "in use portal-web, 3 minutes ago, and 1 other application" in text
    assert page.text.count(">in use<") == 1
    assert re.search(r'<button class="irreversible" disabled', page.text)
    assert "2 flags are still active." in re.search(r'id="blocked"[^>]*>([^<]+)', page.text)[1]


def test_what_is_lost_is_named_and_the_default_project_explained(browse, portal):
    page = page_text(browse("owner").get(URL))

    assert (
        "This cannot be undone. It removes for good: project legacy-portal, its 2 archived flags, 2 API tokens, "
        "and the access of 1 group and 3 people."
    ) in page
    for name in (
        "portal-export, portal-login",
        "in development (development), in production (production)",
        "Former contractors (Member)",
    ):
        assert name in page
    assert "owner (Owner, Member)" in page
    assert "API tokens that keep access to other projects: both (" in page
    assert "Type legacy-portal to confirm" in page

    page = browse("admin").get("/projects/default/delete/")

    assert "The default project cannot be deleted." in page_text(page)
    assert "irreversible" not in page.text


def test_live_dependants_elsewhere_are_named(browse, portal, shop):
    cart, search = make_flag("cart", shop), make_flag("search", shop)
    depend(cart, Flag.objects.get(name="portal-login"))
    vip = Segment.objects.create(name="vip", project=portal, constraints=[])
    StrategySegment.objects.create(strategy=add_strategy(search), segment=vip)
    page = page_text(browse("owner").get(URL))

    assert "cart in shop depends on portal-login." in page
    assert "search in shop uses segment vip of this project." in page
    assert "2 flags elsewhere still need what is here." in page
    assert delete(browse("owner")).status_code == 403
    assert Project.objects.filter(pk="legacy-portal").exists()


@for_each("who", ["member", "reader", "viewer"])
@for_each("method", ["get", "post"])
def test_who_may_not_is_told_so(browse, portal, who, method):
    answer = getattr(browse(who), method)(URL)

    assert answer.status_code == 403
    assert 'You need the "Archive and delete the project" permission in Legacy portal.' in page_text(answer)
    assert "Delete project" not in page_text(browse(who).get("/projects/legacy-portal/"))


def test_who_may_delete_but_not_archive_is_told_so(browse, active, people):
    RolePermission.objects.filter(role_id=BuiltIn.OWNER, permission="DELETE_FEATURE").delete()
    Grant.objects.filter(user=people["owner"], role_id=BuiltIn.MEMBER).delete()
    page = browse("owner").get(URL)

    assert "in Legacy portal. Ask somebody who has it to archive them." in page_text(page)
    assert 'name="archive"' not in page.text


# Archiving ------------------------------------------------------------------------------------------------


ARCHIVE = "/projects/legacy-portal/features/archive"


def confirmed(page):
    """What the confirm page's form sends."""
    fields = dict(re.findall(r'type="hidden" name="(all|expected|next)" value="([^"]*)"', page.text))
    return {**fields, "known": "yes"}


def test_all_are_archived_after_a_page_that_names_them(browse, active):
    use(active[1], "portal-web")
    browser = browse("owner")
    shown = browser.post(ARCHIVE, {"all": "yes", "next": URL}, follow=True)

    assert "portal-banner, portal-read-only" in page_text(shown)
    assert "portal-read-only was evaluated by portal-web" in page_text(shown)
    assert archived() == ["portal-export", "portal-login"]
    answer = browser.post(ARCHIVE, confirmed(shown), follow=True)
    assert answer.redirect_chain == [(URL, 302)]
    assert "Archived 2 flags." in page_text(answer)
    assert archived() == ["portal-banner", "portal-export", "portal-login", "portal-read-only"]
    assert '<button class="irreversible">' in answer.text


def test_none_chosen_is_told_where_one_came_from(browse, active):
    answer = browse("owner").post(ARCHIVE, {"next": URL}, follow=True)

    assert answer.redirect_chain == [(URL, 302)]
    assert "Select an active flag of this project first." in page_text(answer)


def test_dependants_are_archived_too_where_that_is_asked_for(browse, active):
    depend(active[0], active[1])
    browser = browse("owner")
    shown = browser.post(ARCHIVE, {"name": "portal-read-only"}, follow=True)
    assert "Archive dependents too: portal-banner" in page_text(shown)

    refused = browser.post(ARCHIVE, {"name": "portal-read-only", "known": "yes"})
    assert refused.status_code == 403
    assert "portal-read-only" not in archived()
    browser.post(ARCHIVE, {"name": "portal-read-only", "known": "yes", "dependants": "yes"})
    assert archived() == ["portal-banner", "portal-export", "portal-login", "portal-read-only"]


def test_a_parent_of_flags_elsewhere_is_not_archived(browse, active, shop):
    depend(make_flag("cart", shop), active[0])
    shown = browse("owner").post(ARCHIVE, {"all": "yes"}, follow=True)
    answer = browse("owner").post(ARCHIVE, {**confirmed(shown), "dependants": "yes"})

    assert "Archive dependents too" not in page_text(shown)
    assert answer.status_code == 403
    assert "cart" in page_text(answer)
    assert "portal-banner" not in archived()


def test_a_flag_that_came_since_is_not_archived_unseen(browse, active, callers):
    browser = browse("owner")
    shown = browser.post(ARCHIVE, {"all": "yes"}, follow=True)
    create_flag("legacy-portal", NewFlag(name="portal-new"), caller=callers("admin"))
    answer = browser.post(ARCHIVE, confirmed(shown))

    assert answer.status_code == 409
    assert "changed since you opened this page. Nothing was archived." in page_text(answer)
    assert "portal-new" in page_text(answer)
    assert archived() == ["portal-export", "portal-login"]


def test_many_blockers_are_paged_searched_and_all_archived(browse, portal, django_assert_max_num_queries):
    flags = [make_flag(f"many-{number:03}", portal) for number in range(120)]
    for flag in flags[:30]:
        use(flag, "portal-web")
    assert browse("owner").get(f"{URL}?q=MANY-11&sort=-flag").text.count('name="name"') == 10
    browser = browse("owner")
    with django_assert_max_num_queries(32):
        assert browser.get(f"{URL}?page=2").text.count('name="name"') == 20
    shown = browser.post(ARCHIVE, {"all": "yes"}, follow=True)
    assert "and 10 more" in page_text(shown)
    browser.post(ARCHIVE, confirmed(shown))

    assert not Flag.objects.active().filter(project=portal).exists()


# Deleting -------------------------------------------------------------------------------------------------


def test_the_typed_id_deletes_and_only_who_did_it_is_told(browse, portal):
    answer = delete(browse("owner"), " legacy-portal ", follow=True)

    assert answer.redirect_chain == [("/projects/", 302)]
    assert (
        "Deleted project legacy-portal, its 2 archived flags, 2 API tokens, "
        "and the access of 1 group and 3 people."
    ) in page_text(answer)
    assert "Deleted project" not in page_text(browse("admin").get("/projects/"))
    assert not Project.objects.filter(pk="legacy-portal").exists()
    assert list(ApiToken.objects.values_list("name", flat=True)) == ["both"]


@for_each("typed", ["", "legacy", "Legacy-portal", "Legacy portal"])
def test_anything_else_typed_deletes_nothing(browse, portal, typed):
    answer = delete(browse("owner"), typed)

    assert answer.status_code == 400
    assert "Type legacy-portal to confirm" in re.search(r'id="confirm_error"><li>([^<]+)', answer.text)[1]
    assert Project.objects.filter(pk="legacy-portal").exists()


def add_flag(portal, people, callers):
    create_flag("legacy-portal", NewFlag(name="portal-new"), caller=callers("admin"))


def add_archived_flag(portal, people, callers):
    make_flag("portal-old", portal, archived=True)


def add_access(portal, people, callers):
    Grant.objects.create(role_id=BuiltIn.MEMBER, project=portal, user=people["outsider"])


def add_token(portal, people, callers):
    make_token("backend", projects=["legacy-portal"], environment="production", name="new")


@for_each("change", [add_flag, add_archived_flag, add_access, add_token])
def test_what_has_changed_since_is_said_and_nothing_deleted(browse, portal, people, callers, change):
    before = shown(browse("owner"))
    change(portal, people, callers)
    answer = browse("owner").post(URL, {"confirm": "legacy-portal", "expected": before})

    assert answer.status_code == 409
    assert "legacy-portal has changed since you opened this page. Nothing was deleted." in page_text(answer)
    assert ("admin created flag portal-new" in page_text(answer)) == (change is add_flag)
    assert Project.objects.filter(pk="legacy-portal").exists()


@for_each("sent", ["", "x", "x.y", f"x.{'9' * 30}", "x.²"])
def test_a_form_that_says_not_what_it_showed_deletes_nothing(browse, portal, sent):
    answer = browse("owner").post(URL, {"confirm": "legacy-portal", "expected": sent})

    assert answer.status_code == 409
    assert Project.objects.filter(pk="legacy-portal").exists()


# Backup ---------------------------------------------------------------------------------------------------


def test_the_backup_has_every_flag_of_every_environment(browse, active):
    answer = browse("owner").get(f"{URL}backup")

    assert re.fullmatch(
        r'attachment; filename="legacy-portal-backup-\d{4}-\d\d-\d\d\.json"', answer["Content-Disposition"]
    )
    assert sorted(answer.json()) == ["development", "production"]
    flags = {feature["name"]: feature["archived"] for feature in answer.json()["production"]["features"]}
    assert flags == {
        "portal-banner": False, "portal-export": True, "portal-login": True, "portal-read-only": False,
    }  # fmt: skip
    assert AuditEvent.objects.filter(type="features-exported", project="legacy-portal").count() == 1
