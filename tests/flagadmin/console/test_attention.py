"""What the start page says needs attention, to whom, and how urgently."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from flagadmin.console.attention import list_attention
from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from groups.access import Caller
from groups.models import ApiToken
from importer.models import ImportRun
from projects.applications import sdk_versions as adoption_module
from projects.applications.queries import list_outdated_applications
from projects.applications.sdk_versions import (
    MAX_SDKS,
    MAX_VERSIONS,
    OTHERS,
    read_application_adoption,
    read_sdk_adoption,
)
from projects.models import Application, Flag, FlagLastSeen
from tests.support.cast import make_token
from tests.support.flags import make_flag
from tests.support.page_text import page_text
from tests.support.sdk import make_sdk

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def items(caller: Caller, kind: str):
    return [item for item in list_attention(caller) if item.kind == kind]


def seen(flag: Flag, ago: timedelta, environment: str = "production") -> None:
    FlagLastSeen.objects.create(flag=flag, environment=environment, seen_at=timezone.now() - ago)


def test_nothing_needs_attention_at_first(callers) -> None:
    assert list_attention(callers("admin")) == []
    assert list_attention(callers("outsider")) == []


def test_stale_flags_have_reasons(callers, shop) -> None:
    make_flag("first", stale=True, enabled=True, environment="production")
    quiet = make_flag("second", stale=True)
    make_flag("third", stale=True)
    make_flag("archived", stale=True, archived=True)
    Flag.objects.filter(name="first").update(created_at=timezone.now() - 30 * DAY)
    seen(Flag.objects.get(name="first"), DAY)
    seen(quiet, 41 * DAY)

    (item,) = items(callers("member"), "stale")

    assert (item.level, item.title) == ("amber", "3 flags in Shop can go")
    assert item.detail == "first: at 100 % for 30 days; second: not evaluated for 41 days"
    assert (item.action, item.url) == ("Review", "/flags/?state=removable")


def test_a_change_restarts_the_days_at_100_percent_but_marking_it_stale_does_not(callers, shop) -> None:
    flag = make_flag("first", stale=True, enabled=True, environment="production")
    Flag.objects.filter(pk=flag.pk).update(created_at=timezone.now() - 30 * DAY)
    seen(flag, DAY)
    with transaction.atomic():
        record(Event(type=EventType.FEATURE_STALE_ON, feature="first"), actor=Caller.system())
    assert "100 % for 30 days" in items(callers("member"), "stale")[0].detail
    with transaction.atomic():
        record(Event(type=EventType.FEATURE_STRATEGY_ADD, feature="first"), actor=Caller.system())
    assert "100 % for 1 day" in items(callers("member"), "stale")[0].detail


def test_flags_past_their_lifetime_are_counted(callers, shop) -> None:
    for name, age, kind in (("old", 41, "release"), ("young", 39, "release"), ("switch", 999, "kill-switch")):
        flag = make_flag(name, type=kind)
        Flag.objects.filter(pk=flag.pk).update(created_at=timezone.now() - age * DAY)
    (item,) = items(callers("member"), "stale")
    assert (item.level, item.title) == ("gray", "1 flag in Shop can go")
    assert item.url == "/flags/?state=removable"


def test_flags_of_several_projects_are_one_item(callers, shop) -> None:
    for name, project in (("a", "shop"), ("b", "default"), ("c", "default")):
        make_flag(name, project, stale=True)
        old = make_flag(f"{name}-old", project)
        Flag.objects.filter(pk=old.pk).update(created_at=timezone.now() - 41 * DAY)

    (item,) = items(callers("admin"), "stale")
    assert item.title == "6 flags in 2 projects can go"


def test_flags_of_unreadable_projects_are_not_shown(callers, shop) -> None:
    make_flag("secret", "default", stale=True)
    assert items(callers("member"), "stale") == []
    assert len(items(callers("viewer"), "stale")) == 1


def pending(caller: Caller, **fields: object) -> ImportRun:
    return ImportRun.objects.create(
        source="console",
        state="pending",
        caller_id=caller.id,
        caller_name=caller.name,
        project="shop",
        environment="production",
        file_name="flags.json",
        expires_at=timezone.now() + DAY,
        **fields,
    )


def test_imports_that_wait_and_imports_that_are_blocked(callers) -> None:
    member = callers("member")
    waiting = pending(member, counts={"create": 2}, preview={"problemCount": 0, "refusal": ""})
    blocked = pending(member, preview={"problemCount": 3, "refusal": ""})
    refused = pending(member, preview={"problemCount": 0, "refusal": "You need more."})

    items_by_url = {item.url: item for item in items(member, "import")}

    first, second, third = (items_by_url[f"/import/{run.id}/"] for run in (waiting, blocked, refused))
    assert (first.level, first.title) == ("amber", "Import into shop / production awaits review")
    assert first.detail == "2 new · flags.json"
    assert (second.level, second.title) == ("red", "Import into shop / production is blocked")
    assert second.detail.startswith("3 problems")
    assert third.detail.startswith("You need more.")
    assert items(callers("admin"), "import") == []


@pytest.mark.parametrize(
    ("days", "level", "title"),
    [(1.5, "red", "expires in 1 day"), (6.5, "amber", "expires in 6 days"), (0.5, "red", "within a day")],
)
def test_tokens_that_expire_soon_are_shown(callers, shop, days: float, level: str, title: str) -> None:
    make_token("backend", environment="production", expires_at=timezone.now() + days * DAY, name="web&co")
    (item,) = items(callers("admin"), "token")
    assert item.level == level
    assert item.title.startswith("API token web&co ")
    assert item.title.endswith(title)
    assert item.detail == "all projects · production · never used"
    assert item.url == "/access/tokens/?q=web%26co"
    assert items(callers("member"), "token") == []


@pytest.mark.parametrize("days", [-1, 15])
def test_tokens_that_have_expired_or_expire_later_are_left_alone(callers, shop, days: int) -> None:
    make_token("backend", environment="production", expires_at=timezone.now() + days * DAY)
    assert items(callers("admin"), "token") == []


def test_only_ones_own_personal_tokens_are_shown(callers, people) -> None:
    make_token("personal", user=people["member"], name="laptop")
    ApiToken.objects.filter(name="laptop").update(expires_at=timezone.now() + 3.5 * DAY)
    (item,) = items(callers("member"), "token")
    assert (item.title, item.url) == ("Personal token laptop expires in 3 days", "/account/")
    assert items(callers("admin"), "token") == []


def test_applications_with_the_oldest_sdk_are_shown(callers, shop) -> None:
    make_flag("known")
    sdk = make_sdk(projects=["shop"])
    for name, version in (("web", "6.1.2"), ("old web", "3.9.0"), ("other", "6.0.0")):
        sdk.register(name, f"of {name}", sdkVersion=f"unleash-node-sdk:{version}")
        sdk.count(name, ["known"], f"of {name}")

    (item,) = items(callers("member"), "sdk")

    assert (item.level, item.title) == ("gray", "old web uses an old SDK")
    assert item.detail == "unleash-node-sdk 3.9.0 → 6.1.2"
    assert item.url == "/applications/old%20web/"
    assert list_outdated_applications(["default"]) == []
    assert read_sdk_adoption("shop") == {
        "unleash-node-sdk": [("6.1.2", 1, False), ("6.0.0", 1, False), ("3.9.0", 1, True)]
    }
    assert read_sdk_adoption("default") == {}


def test_pre_releases_make_no_sdk_old(callers, shop) -> None:
    make_flag("known")
    sdk = make_sdk(projects=["shop"])
    for name, version in (("web", "6.1.2"), ("beta", "7.0.0-beta.1")):
        sdk.register(name, f"of {name}", sdkVersion=f"unleash-node-sdk:{version}")
        sdk.count(name, ["known"], f"of {name}")
    assert items(callers("member"), "sdk") == []


def test_several_applications_with_old_sdks_are_one_item(callers, shop) -> None:
    make_flag("known")
    sdk = make_sdk(projects=["shop"])
    for name, version in (("web", "6.1.2"), ("one", "3.9.0"), ("two", "3.9.0"), ("three", "3.9.0")):
        sdk.register(name, f"of {name}", sdkVersion=f"unleash-node-sdk:{version}")
        sdk.count(name, ["known"], f"of {name}")

    (item,) = items(callers("member"), "sdk")
    assert (item.title, item.url) == ("3 applications use old SDKs", "/applications/")
    assert item.detail.startswith("one: unleash-node-sdk 3.9.0 → 6.1.2 · ")
    assert item.detail.endswith(" · and 1 more")


def test_what_was_dismissed_comes_back_when_it_changes(browse, shop) -> None:
    make_flag("first", stale=True)
    admin = browse("admin")

    def key(page: str) -> str:
        return page.partition('name="key" value="')[2].partition('"')[0]

    page = admin.get("/").text
    admin.post("/dismiss/", {"key": key(page)})
    page = admin.get("/").text
    assert "Nothing needs attention." in page
    assert "1 dismissed" in page

    admin.post("/dismiss/", {"key": key(page), "do": "show"})
    assert "Needs attention 1" in page_text(admin.get("/"))
    admin.post("/dismiss/", {"key": key(page)})
    make_flag("second", stale=True)
    page = page_text(admin.get("/"))
    assert "Needs attention 1" in page
    assert "dismissed" not in page


def test_the_start_page_groups_what_needs_attention_by_project(browse, shop) -> None:
    make_flag("first", stale=True)
    make_token("backend", environment="production", expires_at=timezone.now() + DAY, name="t")
    make_token("backend", environment="production", expires_at=timezone.now() + 5 * DAY, name="u")
    page = page_text(browse("admin").get("/"))
    assert "Shop 1 1 flag in Shop can go" in page
    assert "Across projects 2" in page


def test_the_most_urgent_comes_first_and_a_source_is_bounded(callers, shop) -> None:
    make_flag("stale", stale=True)
    for number in range(7):
        make_token(
            "backend", environment="production", expires_at=timezone.now() + (number + 1) * DAY, name="t"
        )
    levels = [item.level for item in list_attention(callers("admin"))]
    assert levels == ["red", "red", "amber", "amber", "amber", "amber"]


def test_the_number_of_queries_does_not_grow(callers, django_assert_max_num_queries, shop) -> None:
    for number in range(6):
        make_flag(f"f{number}", stale=True)
        make_token("backend", environment="production", expires_at=timezone.now() + DAY, name=f"t{number}")
    with django_assert_max_num_queries(23):
        list_attention(callers("admin"))


def test_adoption_shows_the_most_used_versions_the_oldest_and_the_others_as_a_number(shop) -> None:
    make_flag("known")
    sdk = make_sdk(projects=["shop"])
    for number in range(MAX_VERSIONS + 3):
        for copy in range(2 if number > 2 else 1):
            sdk.register(f"app-{number}-{copy}", f"{number}-{copy}", sdkVersion=f"node:1.{number}.0")
            sdk.count(f"app-{number}-{copy}", ["known"], f"{number}-{copy}")
    for number in range(MAX_SDKS):
        sdk.register(f"one-{number}", f"i{number}", sdkVersion=f"sdk-{number}:1.0.0")
        sdk.count(f"one-{number}", ["known"], f"i{number}")

    adoption = read_sdk_adoption("shop")

    assert [line[0] for line in adoption["node"]] == [
        *(f"1.{number}.0" for number in range(MAX_VERSIONS + 2, 2, -1)), "1.0.0", "2 more"
    ]  # fmt: skip
    assert adoption["node"][-2:] == [("1.0.0", 1, True), ("2 more", 2, False)]
    assert len(adoption) == MAX_SDKS + 1
    assert adoption[OTHERS] == [("1 more", 1, False)]
    assert sum(number for lines in adoption.values() for _, number, _ in lines) == 2 * MAX_VERSIONS + 3 + 8


def test_of_very_many_instances_the_same_part_of_each_application_is_counted(shop, monkeypatch) -> None:
    monkeypatch.setattr(adoption_module, "MAX_INSTANCES", 4)
    make_flag("known")
    sdk = make_sdk(projects=["shop"])
    for name, version, instances in (("web", "6.1.2", 6), ("cron", "3.9.0", 2)):
        for number in range(instances):
            sdk.register(name, f"{name}-{number}", sdkVersion=f"node:{version}")
            sdk.count(name, ["known"], f"{name}-{number}")

    adoption = read_sdk_adoption("shop")
    assert (adoption, adoption.sampled) == ({"node": [("6.1.2", 3, False), ("3.9.0", 1, True)]}, 4)

    adoption = read_application_adoption(Application.objects.get(name="web").pk)
    assert (adoption, adoption.sampled) == ({"node": [("6.1.2", 4, False)]}, 4)

    monkeypatch.setattr(adoption_module, "MAX_INSTANCES", 8)
    assert read_sdk_adoption("shop").sampled == 0
