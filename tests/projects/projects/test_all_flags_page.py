"""/flags/: the flags of all projects, their saved filters, and what is done with several of them at once."""

import csv
import io
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
from tests.support.page_text import page_text

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
    response = browser.get(f"/flags/?format=csv&{query}")
    lines = csv.reader(io.StringIO(b"".join(response.streaming_content).decode()))
    return [line[0] for line in lines][1:]


def on(flag, environment="production", **strategy):
    switch_on(flag, environment)
    return add_strategy(flag, environment, **strategy) if strategy else None


def test_the_flags_of_all_projects_are_listed_with_theirs(browse, flags):
    page = browse("viewer").get("/flags/")

    assert names(browse("viewer")) == ["cart", "guide"]
    assert "Docs" in page_text(page)
    assert "/projects/docs/features/guide/switch" not in page.text  # a viewer's toggles are locked


def test_only_what_one_may_read_is_listed_and_offered(browse, flags):
    page = browse("member").get("/flags/")

    assert names(browse("member")) == ["cart"]
    assert "guide" not in page.text
    assert "Docs" not in page.text
    assert names(browse("outsider")) == []
    assert browse("member").get("/flags/?project=docs").status_code == 400


def test_archived_flags_and_those_of_archived_projects_are_left_out(browse, flags):
    make_flag("old", archived=True)
    Project.objects.filter(pk="docs").update(archived_at=timezone.now())

    assert names(browse("viewer")) == ["cart"]


def test_a_project_without_the_environment_has_no_cell_there(browse, flags):
    ProjectEnvironment.objects.filter(project="docs", environment="production").delete()

    page = browse("admin").get("/flags/").text
    assert "cart in production" in page
    assert "guide in production" not in page
    assert "guide in development" in page


@pytest.mark.parametrize(
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
        ("in-production=on", ["cart"]),
    ],
)
def test_search_filters_and_sorting(browse, flags, query, expected):
    Flag.objects.filter(name="guide").update(stale=True)
    Flag.objects.filter(name="cart").update(type="kill-switch")
    FlagLastSeen.objects.create(flag=flags[0], environment="production", seen_at=timezone.now())
    on(flags[0])

    assert names(browse("viewer"), query) == expected


def test_saved_filters_replace_each_other_and_keep_the_search(browse, flags):
    page = browse("viewer").get("/flags/?q=cart&rollout=off&seen=never").text

    assert 'href="?q=cart&amp;state=stale"' in page
    assert 'href="?q=cart&amp;rollout=differs"' in page


def listed(browse, rollout):
    return names(browse("viewer"), f"rollout={rollout}")


class TestFull:
    """On for everyone in production, and unchanged there for 30 days."""

    def test_without_strategies_or_with_one_for_everyone(self, browse, flags):
        on(flags[0])
        on(flags[1], name="flexibleRollout", parameters={"rollout": "100"})
        assert listed(browse, "full") == ["cart", "guide"]

    def test_not_with_conditions_a_share_or_disabled_strategies(self, browse, flags):
        on(flags[0], name="flexibleRollout", parameters={"rollout": "99"})
        on(flags[1], name="default", disabled=True)
        assert listed(browse, "full") == []
        on(flags[0], name="default", constraints=[{"contextName": "plan", "operator": "IN", "values": ["a"]}])
        assert listed(browse, "full") == []

    def test_not_only_in_development(self, browse, flags):
        on(flags[0], "development")
        assert listed(browse, "full") == []

    @pytest.mark.parametrize(
        ("event", "expected"),
        [
            ({"type": "feature-strategy-update", "environment": "production"}, []),
            ({"type": "feature-reverted"}, []),
            ({"type": "feature-strategy-update", "environment": "development"}, ["cart"]),
            ({"type": "feature-tagged"}, ["cart"]),
        ],
    )
    def test_not_if_it_changed_in_production_lately(self, browse, flags, event, expected):
        on(flags[0])
        AuditEvent.objects.create(feature="cart", project="shop", actor_name="ada", **event)
        assert listed(browse, "full") == expected

    def test_not_if_it_is_new(self, browse, flags):
        on(make_flag("new"))
        assert listed(browse, "full") == []


class TestDiffers:
    def test_on_in_one_environment_only(self, browse, flags):
        on(flags[0])
        assert listed(browse, "differs") == ["cart"]

    def test_other_strategies(self, browse, flags):
        for flag, share in ((flags[0], "10"), (flags[1], "20")):
            on(flag, name="flexibleRollout", parameters={"rollout": "10"})
            on(flag, "development", name="flexibleRollout", parameters={"rollout": share})
        assert listed(browse, "differs") == ["guide"]

    def test_titles_and_disabled_strategies_decide_nothing(self, browse, flags):
        on(flags[0], name="default", title="Everyone")
        on(flags[0], "development", name="default")
        add_strategy(flags[0], "development", disabled=True, name="flexibleRollout")
        assert listed(browse, "differs") == []

    def test_the_order_of_strategies_counts(self, browse, flags):
        for environment, shares in (("development", ("10", "20")), ("production", ("20", "10"))):
            for order, share in enumerate(shares):
                on(
                    flags[0],
                    environment,
                    name="flexibleRollout",
                    parameters={"rollout": share},
                    sort_order=order,
                )
        assert listed(browse, "differs") == ["cart"]

    def test_a_strategy_that_is_there_twice_counts(self, browse, flags):
        for environment, name in (("development", "default"), ("production", "userWithId")):
            for order in range(2):
                on(flags[0], environment, name=name, sort_order=order)
        assert listed(browse, "differs") == ["cart"]

    def test_the_order_of_values_decides_nothing(self, browse, flags):
        for environment, values in (("development", ["DE", "FR"]), ("production", ["FR", "DE"])):
            condition = {"contextName": "country", "operator": "IN", "values": values}
            on(
                flags[0],
                environment,
                constraints=[condition, {**condition, "contextName": "region"}][
                    :: 1 if values[0] == "DE" else -1
                ],
            )
        on(flags[1], constraints=[{"contextName": "country", "operator": "IN", "values": ["DE"]}])
        on(
            flags[1],
            "development",
            constraints=[{"contextName": "country", "operator": "IN", "values": ["FR"]}],
        )
        assert listed(browse, "differs") == ["guide"]

    def test_other_variants(self, browse, flags):
        for environment in ("development", "production"):
            on(flags[0], environment)
        FlagEnvironment.objects.filter(flag=flags[0], environment="production").update(
            variants=[{"name": "a"}]
        )
        assert listed(browse, "differs") == ["cart"]

    def test_environments_that_the_project_does_not_use_do_not_count(self, browse, flags):
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


def test_flags_are_turned_on_where_their_projects_have_the_environment(browse, flags):
    ProjectEnvironment.objects.filter(project="docs", environment="production").delete()
    given = {**BOTH, "environment": "production", "enabled": "on"}

    page = page_text(browse("admin").post("/flags/switch", given, follow=True))
    assert "Left out: guide. Project docs has no environment production." in page
    browse("admin").post("/flags/switch", {**given, "confirmed": "yes"})
    assert list(Strategy.objects.values_list("flag__name", flat=True)) == ["cart"]


def test_marking_as_stale_is_undone_in_all_projects(browse, flags):
    told = browse("admin").post("/flags/stale", {**BOTH, "stale": "yes"}, follow=True)

    assert "Marked 2 flags as stale." in page_text(told)
    assert 'action="/flags/stale"' in told.text
    browse("admin").post("/flags/stale", {**BOTH, "stale": "no"})
    assert not Flag.objects.filter(stale=True).exists()


def test_all_matching_flags_are_tagged(browse, flags):
    given = {"matching": "project=docs", "do": "add", "type": "simple", "value": "old"}
    browse("admin").post("/flags/tags", given)

    assert list(FlagTag.objects.values_list("flag__name", flat=True)) == ["guide"]


def test_nothing_selected(browse, flags):
    answer = browse("admin").post("/flags/archive", {}, follow=True)
    assert "Select an active flag first." in page_text(answer)


def test_what_a_save_would_break_counts_in_every_project(browse, flags):
    """The form can be asked who changes."""
    answer = browse("admin").get("/flags/archive?name=cart&name=guide")
    assert "Who changes" in page_text(answer)
