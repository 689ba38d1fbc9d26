"""Lists of flags: small pictures of the last 14 days, what comes next, and who changed a flag last."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import JSONField
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from projects import flag_versions
from projects.flag_versions import FlagVersions
from projects.flags.lists.cells import make_flag_rows
from projects.models import Flag, Project, Segment, UsageDay, UsageHour
from projects.models.versions import NEVER, SegmentVersion
from releases.timeline import draw as pictures
from releases.timeline.draw import Picture, draw_pictures
from tests.support.plans import WHO, cart, move_all, set_since, started
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def draw(flags: list[Flag]) -> dict[str, dict[str, Picture]]:
    return draw_pictures(make_flag_rows(flags, ["production", "development"], caller=WHO), NOW)


def test_a_picture_has_a_step_for_each_share_and_ends_with_the_present_one(shop: Project) -> None:
    flag = cart(10)
    move_all(NOW - timedelta(days=30))
    set_since(50, NOW - timedelta(days=7))
    set_since(100, NOW - timedelta(days=3.5))
    drawn = draw([flag])["cart"]
    assert [(part.x, part.width, part.height) for part in drawn["production"].parts] == [
        ("0.0", "42.0", "2.2"),
        ("42.0", "21.0", "11.0"),
        ("63.0", "21.0", "22.0"),
    ]
    assert drawn["development"] == ([], "")  # off all the time


def test_what_sdks_measured_is_a_line_with_gaps(shop: Project) -> None:
    flag, now = cart(50), datetime(2026, 3, 15, 12, tzinfo=UTC)
    for ago, yes, no in ((20, 1, 0), (3, 1, 3), (2, 3, 1), (1, 0, 0)):
        UsageDay.objects.create(
            flag_id=flag.pk, environment="production", day=now.date() - timedelta(days=ago), yes=yes, no=no
        )
    UsageHour.objects.create(
        flag_id=flag.pk, environment="production", hour=now, application_id=1, yes=2, no=2
    )
    rows = make_flag_rows([flag], ["production", "development"], caller=WHO)
    drawn = draw_pictures(rows, now)["cart"]
    assert drawn["production"].line == "M63.0 16.0H69.0V6.0H75.0M81.0 11.0H84.0"
    assert drawn["development"].line == ""


def test_a_page_takes_the_same_queries_for_any_number_of_flags(shop: Project) -> None:
    def count(number: int) -> int:
        flags = list(Flag.objects.order_by("name")[:number])
        rows = make_flag_rows(flags, ["production", "development"], caller=WHO)
        with CaptureQueriesContext(connection) as queries:
            draw_pictures(rows, NOW)
        return len(queries)

    half = {"rollout": "50", "stickiness": "userId", "groupId": "x"}
    for number in range(8):
        live_flag(f"flag-{number}", strategies=[{"name": "flexibleRollout", "parameters": half}])
    assert count(1) == count(8) <= 8


def test_rows_say_what_comes_next_and_who_changed_a_flag_last(browse: Any, shop: Project) -> None:
    cart(5)
    started()
    owner = browse("owner")
    owner.post("/projects/shop/features/cart/stale", {"stale": "yes"})
    for address in ("/flags/", "/projects/shop/"):
        page = owner.get(address).text
        [following] = re.findall(r'<td data-label="Next"[^>]*>(.*?)</td>', page, re.DOTALL)
        assert re.sub(r"<[^>]+>", "", following).startswith("25 %")
        [last] = re.findall(r'<td data-label="Last change"[^>]*>(.*?)</td>', page, re.DOTALL)
        assert last.startswith("owner, ")


def test_of_changes_in_one_pixel_the_last_state_is_drawn(shop: Project) -> None:
    flag = cart(10)
    move_all(NOW - timedelta(days=30))
    for number, share in enumerate((90, 20, 40)):
        set_since(share, NOW - timedelta(days=7, hours=-1, minutes=-number))
    [before, after] = draw([flag])["cart"]["production"].parts
    assert (before.height, after.height) == ("2.2", "8.8")


def edit_segment_daily(segment: Segment, days: int) -> None:
    """The segment gets other values of the same length each day."""
    for day in range(days, 0, -1):
        segment.constraints = [
            {"contextName": "userId", "operator": "IN", "values": [f"{day:02}{n:04}" for n in range(1_000)]}
        ]
        segment.save()
        current = SegmentVersion.objects.order_by("-valid_to").first()
        SegmentVersion.objects.filter(valid_to__gt=NOW - timedelta(days=day), valid_to__lt=NEVER).update(
            valid_to=NOW - timedelta(days=day)
        )
        SegmentVersion.objects.filter(valid_to=current.valid_to).update(valid_from=NOW - timedelta(days=day))


def test_conditions_of_segments_are_read_only_for_evaluated_states(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = Segment.objects.create(name="many", constraints=[])
    flag = live_flag("cart", strategies=[{"name": "default", "segments": [segment]}])
    move_all(NOW - timedelta(days=30))
    edit_segment_daily(segment, 13)
    rows = make_flag_rows([flag], ["production"], caller=WHO)
    read: list[str] = []
    decode = JSONField.from_db_value

    def count(*args: Any) -> Any:
        read.append(str(args[1]))
        return decode(*args)

    monkeypatch.setattr(JSONField, "from_db_value", count)

    monkeypatch.setattr(pictures, "MAX_EVALUATIONS", 2)
    draw_pictures(rows, NOW)
    assert len([text for text in read if len(text) > 9_000]) == 2

    monkeypatch.setattr(flag_versions, "MAX_SEGMENT_VERSIONS", 4)
    versions = FlagVersions([flag.pk], NOW - pictures.LENGTH)
    assert versions.known_since == NOW - timedelta(days=4)
    [use] = versions.read([flag.pk], "production", NOW - timedelta(days=3)).segments.values()
    assert use["constraints"][0]["values"][0] == "030000"
