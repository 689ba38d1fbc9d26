"""/flags/: the flags of all projects, their saved filters, and what is done with several of them at once."""

from datetime import timedelta

import pytest
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.models import Grant
from groups.permissions import BuiltIn
from projects.models import (
    Flag,
    FlagEnvironment,
    FlagLastSeen,
    FlagTag,
    Project,
    ProjectEnvironment,
    Strategy,
)
from tests.support.cast import make_project
from tests.support.flags import add_strategy, depend, make_flag, switch_on
from tests.support.for_each import for_each
from tests.support.page_text import csv_rows, page_text

LONG_AGO = timezone.now() - timedelta(days=50)
BOTH = {"name": ["cart", "guide"]}


@pytest.fixture
def flags(shop):
    make_project("docs")
    return [make_flag("cart", created_at=LONG_AGO), make_flag("guide", "docs", created_at=LONG_AGO)]


@pytest.fixture
def half(people, flags):
    """The member of shop may read docs."""
    Grant.objects.create(role_id=BuiltIn.READER, project_id="docs", user=people["member"])


def names(browser, query=""):
    lines = csv_rows(browser.get(f"/flags/?format=csv&{query}"))
    return [line[0] for line in lines][1:]


def on(flag, environment="production", **strategy):
    switch_on(flag, environment)
    return add_strategy(flag, environment, **strategy) if strategy else None


def test_flags_that_one_may_read_are_listed_and_saved_filters_keep_the_search(browse, flags):
    page = browse("viewer").get("/flags/")

    assert names(browse("viewer")) == ["cart", "guide"]
    assert "Docs" in page_text(page)
    assert "/projects/docs/features/guide/switch" not in page.text  # a viewer's toggles are locked

    page = browse("member").get("/flags/")

    assert names(browse("member")) == ["cart"]
    assert "guide" not in page.text
    assert "Docs" not in page.text
    assert names(browse("outsider")) == []
    assert browse("member").get("/flags/?project=docs").status_code == 400

    page = browse("viewer").get("/flags/?q=cart&rollout=off&seen=never").text

    assert 'href="?q=cart&amp;state=removable"' in page
    assert 'href="?q=cart&amp;rollout=differs"' in page

    make_flag("old", archived=True)
    Project.objects.filter(pk="docs").update(archived_at=timezone.now())

    assert names(browse("viewer")) == ["cart"]


def test_a_project_without_the_environment_has_no_cell_there_and_is_left_out(browse, flags):
    ProjectEnvironment.objects.filter(project="docs", environment="production").delete()

    page = browse("admin").get("/flags/").text
    assert "cart in production" in page
    assert "guide in production" not in page
    assert "guide in development" in page

    given = {**BOTH, "environment": "production", "enabled": "on"}

    page = page_text(browse("admin").post("/flags/switch", given, follow=True))
    assert "Left out: guide. Project docs has no environment production." in page
    browse("admin").post("/flags/switch", {**given, "confirmed": "yes"})
    assert list(Strategy.objects.values_list("flag__name", flat=True)) == ["cart"]


@for_each(
    ("query", "expected"),
    [
        ("", ["cart", "guide"]),
        ("project=docs", ["guide"]),
        ("q=gui", ["guide"]),
        ("sort=-name", ["guide", "cart"]),
        ("sort=project", ["guide", "cart"]),
        ("state=stale", ["guide"]),
        ("type=kill-switch", ["cart"]),
        ("seen=never", ["guide"]),
        ("rollout=off", ["guide"]),
        ("changed=1", []),
        ("in-production=on", ["cart"]),
    ],
)
def test_search_filters_and_sorting(browse, flags, query, expected):
    Flag.objects.filter(name="guide").update(stale=True)
    Flag.objects.filter(name="cart").update(type="kill-switch")
    FlagLastSeen.objects.create(flag=flags[0], environment="production", seen_at=timezone.now())
    on(flags[0])

    assert names(browse("viewer"), query) == expected


def listed(browse, rollout):
    return names(browse("viewer"), f"rollout={rollout}")


def share(percentage):
    return {"name": "flexibleRollout", "parameters": {"rollout": percentage}}


def only(field, *values):
    return {"contextName": field, "operator": "IN", "values": list(values)}


@for_each(
    ("environment", "strategy", "is_full"),
    [
        ("production", {}, True),
        ("production", share("100"), True),
        ("production", share("99"), False),
        ("production", {"disabled": True}, False),
        ("production", {"constraints": [only("plan", "a")]}, False),
        ("development", {}, False),
    ],
)
def test_full_is_on_for_everyone_in_production(browse, flags, environment, strategy, is_full):
    on(flags[0], environment, **strategy)
    on(make_flag("new"), environment, **strategy)  # not for 30 days
    assert listed(browse, "full") == ["cart"] * is_full


@for_each(
    ("event", "expected"),
    [
        ({"type": "feature-strategy-update", "environment": "production"}, []),
        ({"type": "feature-reverted"}, []),
        ({"type": "feature-strategy-update", "environment": "development"}, ["cart"]),
        ({"type": "feature-tagged"}, ["cart"]),
    ],
)
def test_full_has_not_changed_in_production_lately(browse, flags, event, expected):
    on(flags[0])
    AuditEvent.objects.create(feature="cart", project="shop", actor_name="ada", **event)
    assert listed(browse, "full") == expected


COUNTRIES, REGIONS = only("country", "DE", "FR"), only("region", "DE", "FR")
REVERSED = [only("region", "FR", "DE"), only("country", "FR", "DE")]


@for_each(
    ("development", "production", "differs"),
    [
        (None, [], True),
        ([share("20")], [share("10")], True),
        ([share("10")], [share("10")], False),
        ([{}, share("5") | {"disabled": True}], [{"title": "All"}], False),
        ([share("10"), share("20")], [share("20"), share("10")], True),
        ([{"name": "default"}] * 2, [{"name": "userWithId"}] * 2, True),
        ([{"constraints": [COUNTRIES, REGIONS]}], [{"constraints": REVERSED}], False),
        ([{"constraints": [only("a", "1")]}], [{"constraints": [only("a", "2")]}], True),
    ],
)
def test_differing_environments(browse, flags, development, production, differs):
    for environment, strategies in (("development", development), ("production", production)):
        if strategies is not None:
            switch_on(flags[0], environment)
            for order, strategy in enumerate(strategies):
                add_strategy(flags[0], environment, sort_order=order, **strategy)
    assert listed(browse, "differs") == ["cart"] * differs


def test_other_variants_differ(browse, flags):
    for environment in ("development", "production"):
        on(flags[0], environment)
    FlagEnvironment.objects.filter(flag=flags[0], environment="production").update(variants=[{"name": "a"}])
    assert listed(browse, "differs") == ["cart"]


def test_environments_that_the_project_does_not_use_do_not_differ(browse, flags):
    on(flags[0], "development")
    ProjectEnvironment.objects.filter(project="shop", environment="production").delete()
    assert listed(browse, "differs") == []
    assert listed(browse, "off") == ["guide"]


def test_flags_of_several_projects_are_archived_together_also_if_they_depend_on_each_other(browse, flags):
    depend(flags[1], flags[0])
    admin = browse("admin")

    page = page_text(admin.post("/flags/archive", BOTH, follow=True))
    assert "Archive 2 flags" in page
    assert "No other flag" in page
    answer = admin.post("/flags/archive", {**BOTH, "known": "yes", "next": "/flags/?state=stale"})

    assert answer["Location"] == "/flags/?state=stale"
    assert list(Flag.objects.archived().values_list("name", flat=True)) == ["cart", "guide"]
    events = AuditEvent.objects.filter(type="feature-archived")
    assert sorted(events.values_list("project", "feature")) == [("docs", "guide"), ("shop", "cart")]


def test_dependants_in_other_projects_are_archived_too_if_one_may(browse, flags, half):
    depend(flags[1], flags[0])

    assert "Flags of other projects depend on it." in page_text(
        browse("member").get("/flags/archive?name=cart")
    )
    browse("admin").post("/flags/archive", {"name": "cart", "dependants": "yes", "known": "yes"})
    assert Flag.objects.archived().count() == 2


@for_each(
    ("address", "given"),
    [
        ("archive", {}),
        ("tags", {}),
        ("switch", {"environment": "production", "enabled": "on"}),
        ("stale", {"stale": "yes"}),
    ],
)
def test_what_one_may_not_change_is_said_before(browse, flags, half, address, given):
    page = page_text(browse("member").post(f"/flags/{address}", {**BOTH, **given}, follow=True))

    assert "Left out: guide. You need" in page
    assert not Flag.objects.filter(stale=True).exists()


@for_each(
    ("address", "given"),
    [
        ("archive", {"known": "yes"}),
        ("tags", {"do": "add", "type": "simple", "value": "old"}),
        ("switch", {"environment": "production", "enabled": "on", "confirmed": "yes"}),
        ("stale", {"stale": "yes", "known": "yes"}),
    ],
)
def test_flags_that_one_may_not_change_stay_as_they_are(browse, flags, half, address, given):
    answer = browse("member").post(f"/flags/{address}", {**BOTH, **given})

    assert answer["Location"] == "/flags/"
    assert set(AuditEvent.objects.values_list("feature", flat=True)) == {"cart"}
    only = browse("member").post(f"/flags/{address}", {**given, "name": "guide"}, follow=True)
    assert "You need" in page_text(only)
    assert set(AuditEvent.objects.values_list("feature", flat=True)) == {"cart"}


def test_marking_as_stale_is_undone_and_matching_flags_tagged_in_all_projects(browse, flags):
    told = browse("admin").post("/flags/stale", {**BOTH, "stale": "yes"}, follow=True)

    assert "Marked 2 flags as stale." in page_text(told)
    assert 'action="/flags/stale"' in told.text
    browse("admin").post("/flags/stale", {**BOTH, "stale": "no"})
    assert not Flag.objects.filter(stale=True).exists()

    given = {"matching": "project=docs", "do": "add", "type": "simple", "value": "old"}
    browse("admin").post("/flags/tags", given)

    assert list(FlagTag.objects.values_list("flag__name", flat=True)) == ["guide"]

    answer = browse("admin").post("/flags/archive", {}, follow=True)
    assert "Select an active flag first." in page_text(answer)
    # The form can be asked who changes.
    answer = browse("admin").get("/flags/archive?name=cart&name=guide")
    assert "Who changes" in page_text(answer)
