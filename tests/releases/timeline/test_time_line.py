"""The line of time on the page of a flag: what was set, what was measured, and what comes."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.http.responses import iso
from groups.access import Caller
from playground.comparison.versions import count_recent_changes
from projects.flags.archive.actions import archive_flags
from projects.flags.environments.actions import disable_flag
from projects.models import Flag, Project, Segment, UsageDay, UsageHour
from projects.models.versions import VersionsSince
from releases.derive import ProposedChange
from releases.plans.actions import pause_plan
from releases.requests.propose import send_changes
from releases.timeline.draw import Span, read_spans
from tests.support.flags import depend
from tests.support.page_text import page_text
from tests.support.plans import PLACE, WHO, cart, move_all, set_since, started
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db
FLAG = "/projects/shop/features/cart/"
SYSTEM = Caller.system()
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PLACES = ["production", "development"]


def since(days: int) -> datetime:
    return NOW - timedelta(days=days)


def shares(spans: list[Span]) -> list[tuple[int, float | None]]:
    """The days before now at which each share began, and the share."""
    return [((NOW - span.begin).days, span.people and round(span.people.on, 1)) for span in spans]


def read(flag: Flag, days: int = 30) -> dict[str, list[Span]]:
    return read_spans(flag, PLACES, since(days), NOW)


def test_the_past_has_the_share_of_each_time(shop: Project) -> None:
    flag = cart(5)
    move_all(since(20))
    set_since(10, since(12))
    set_since(50, since(4))
    spans = read(flag)
    assert shares(spans["production"]) == [(30, None), (20, 5), (12, 10), (4, 50)]
    assert shares(spans["development"]) == [(30, None), (20, 0)]
    assert spans["production"][-1].end == NOW
    assert shares(read(flag, 8)["production"]) == [(8, 10), (4, 50)]


def test_conditions_parents_and_segments_count(shop: Project) -> None:
    segment = Segment.objects.create(
        name="pro", constraints=[{"contextName": "plan", "operator": "IN", "values": ["pro"]}]
    )
    flag = live_flag("cart", strategies=[{"name": "default", "segments": [segment]}])
    parent = live_flag("parent", strategies=[{"name": "flexibleRollout", "parameters": {"rollout": "10"}}])
    move_all(since(20))
    assert shares(read(flag)["production"]) == [(30, None), (20, 33.3)]
    segment.constraints = []
    segment.save()
    depend(flag, parent)
    move_all(since(10))
    [*_, last] = read(flag)["production"]
    assert last.people
    assert round(last.people.on) == 10
    assert len(read(flag)["development"]) == 2  # unknown, and off all the time


def test_an_archived_flag_is_off_and_versions_that_are_missing_are_unknown(shop: Project) -> None:
    flag = cart(50)
    move_all(since(20))
    archive_flags("shop", ["cart"], caller=SYSTEM)
    flag.refresh_from_db()
    later = timezone.now() + timedelta(days=1)
    [*_, last] = read_spans(flag, PLACES, since(30), later)["production"]
    assert last.people
    assert last.people.on == 0
    VersionsSince.objects.create(since=since(15), kept_since=since(15))
    assert shares(read(flag)["production"])[0] == (15, 50)


def test_only_the_latest_of_many_changes_are_measured(shop: Project) -> None:
    flag = cart(1)
    move_all(since(29))
    for number in range(2, 60):
        set_since(number, since(29) + timedelta(hours=number))
    many = read_spans(flag, [f"e{number}" for number in range(20)] + PLACES, since(30), NOW)
    assert len(many["production"]) == 8
    assert many["production"][-1].people


def test_reading_takes_the_same_queries_for_any_number_of_changes(
    shop: Project, django_assert_max_num_queries: Any
) -> None:
    flag = cart(1)
    move_all(since(29))
    for number in range(2, 20):
        set_since(number, since(29) + timedelta(hours=number))
    with django_assert_max_num_queries(7):
        read(flag)


def test_the_page_draws_past_ahead_and_requests_with_a_table(browse, shop: Project) -> None:
    flag = cart(5)
    started(5, 25, 50)
    where = {"flag_id": flag.pk, "environment": "production"}
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    UsageDay.objects.create(**where, day=now.date(), yes=0, no=96)
    UsageHour.objects.create(**where, hour=now, application_id=1, yes=1, no=3)
    request = send_changes("shop", "production", [turn_off()], caller=SYSTEM)
    page = browse("viewer").get(FLAG)
    text = page_text(page)
    lanes = text.partition("Where it is on")[2]
    assert lanes.index("Plan 5 → 25 → 50 %, step 1") < lanes.index("development")
    assert "25 % measured" in text
    for drawn in ('class="set"', 'class="ahead-of"', 'class="mark-dot wait"', '<line class="now"'):
        assert drawn in page.text
    assert f'aria-label="Request {request.pk}: Turn cart off"' in page.text
    assert re.search(r"; planned 25 % on \d+ \w+, 50 % on \d+ \w+\"", page.text)
    assert "style=" not in page.text.partition('id="time"')[2].partition("</section>")[0]


def turn_off() -> ProposedChange:
    return ProposedChange("cart", "updateEnabled", {"enabled": False})


def test_marks_say_who_changed_what_and_why_and_take_it_back(browse, shop: Project) -> None:
    cart(50)
    move_all(timezone.now() - timedelta(days=3))
    Flag.objects.update(created_at=timezone.now() - timedelta(days=3))
    page = browse("owner").post(
        f"{FLAG}switch",
        {"environment": "production", "enabled": "off", "confirmed": "yes", "comment": "Too slow"},
        follow=True,
    )
    assert "50 % → Off, “Too slow” Turn back…" not in page_text(page)
    [table] = re.findall(r'href="([^"]+)">As a table', page.text)
    assert table == "?table=yes#time"
    page = browse("owner").get(f"{FLAG}?table=yes")
    assert "50 % → Off, “Too slow” Turn back…" in page_text(page)
    assert 'href="?#time">Hide table' in page.text
    browse("owner").get(f"{FLAG}versions/?event={AuditEvent.objects.latest('pk').pk}")
    count_recent_changes()
    assert re.search(
        r"50 % → Off, [\d,]+ of 10,000 users, “Too slow”", page_text(browse("owner").get(f"{FLAG}?table=yes"))
    )
    assert re.search(r'href="/activity/\d+/revert\?flag=cart&amp;next=', page.text)


def test_another_moment_is_shown_without_a_script(browse, shop: Project) -> None:
    cart(5)
    disable_flag("shop", "cart", "production", caller=SYSTEM)
    move_all(timezone.now() - timedelta(days=9))
    Flag.objects.update(created_at=timezone.now() - timedelta(days=9))
    viewer = browse("viewer")
    links = re.findall(r'<a href="(\?at=[^"]+)#time" aria-label="As of', viewer.get(FLAG).text)
    assert links
    then = page_text(viewer.get(FLAG + links[0]))
    assert "As of" in then
    assert "Back to now" in then
    for unreadable in ("yesterday", quote(iso(timezone.now() - timedelta(days=400)) or "")):
        assert "Back to now" not in page_text(viewer.get(f"{FLAG}?at={unreadable}"))
    assert "All" in page_text(viewer.get(f"{FLAG}?span=all"))


def test_cards_below_say_what_comes_next_and_what_the_lens_gets(browse, shop: Project) -> None:
    cart(5)
    started(5, 50)
    text = page_text(browse("owner").get(FLAG, {"as": "42"}))
    assert text.index("Next: 50 %") < text.index("Before 50 %") < text.index("Step 1 of 2 in production")
    assert text.count("Before 50 %") == 1
    assert re.search(
        r"userId 42 Off\s?Why\? Switched on in production\s?Bucket \d+ of 100: the rollout by userId", text
    )
    viewed = page_text(browse("viewer").get(FLAG))
    assert "Next: 50 %" in viewed
    assert "Start 50 %" not in viewed
    assert "Switched on in production" not in viewed


def test_a_paused_plan_foresees_nothing(browse, shop: Project) -> None:
    cart(5)
    plan = started(5, 25)
    pause_plan(PLACE, plan.pk, caller=WHO)
    page = browse("viewer").get(FLAG)
    assert "Plan 5 → 25 %, step 1, paused" in page_text(page)
    assert '<div class="lane main held">' in page.text
