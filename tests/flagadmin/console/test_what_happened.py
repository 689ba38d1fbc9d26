"""/what-happened/: changes by how many users noticed them, a picked stretch of time, and a metric beside them."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.http import QueryDict
from django.utils import timezone

from flagadmin.console.what_happened import HappenedPage, make_axis, make_ticks
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.http.responses import iso
from flagadmin.core.lists.filters import DateRange
from flagadmin.core.lists.pages import Listing
from groups.access import Caller
from playground.comparison import versions
from playground.comparison.versions import count_recent_changes
from projects.flags.actions import update_flag
from projects.flags.archive.actions import archive_flags
from projects.flags.environments.actions import disable_flag, enable_flag
from projects.models import FlagEnvironment, Project
from projects.segments.actions import create_segment, update_segment
from projects.strategies.actions import update_strategy
from releases.models import MetricChart, Safeguard
from tests.support.cast import make_project
from tests.support.flags import make_flag
from tests.support.impact_metrics import report, sdk
from tests.support.page_text import page_text
from tests.support.plans import cart, strategy_of

pytestmark = pytest.mark.django_db
__all__ = ["sdk"]
PAGE = "/what-happened/"
WHO = Caller.system()


@pytest.fixture
def changed(shop: Project) -> list[AuditEvent]:
    """cart is set from 5 % to 50 %, described, and turned off; another flag is turned off in development."""
    cart(5)
    make_flag("hat", "shop", environment="development", enabled=True, strategies=[{"name": "default"}])
    strategy = strategy_of()
    half = {"parameters": strategy.parameters | {"rollout": "50"}}
    update_strategy("shop", "cart", "production", str(strategy.pk), half, caller=WHO)
    update_flag("shop", "cart", {"description": "New"}, caller=WHO)
    disable_flag("shop", "cart", "production", caller=WHO)
    disable_flag("shop", "hat", "development", caller=WHO)
    count_recent_changes()
    return list(AuditEvent.objects.filter(feature="cart").order_by("pk"))


def rows(text: str) -> list[str]:
    articles = re.findall(r"<article.*?</article>", text, re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]+>", " ", each)).split()) for each in articles]


def test_changes_have_the_size_of_their_users(browse: Any, changed: list[AuditEvent]) -> None:
    page = browse("viewer").get(PAGE)
    off, more = rows(page.text)
    assert re.search(r"turned cart off in production.* [45],\d\d\d of 10,000 users", off)
    assert re.search(r"from 5 % to 50 %.* 4,\d\d\d of 10,000 users", more)
    heights = [
        float(each) for each in re.findall(r'<rect class="bar-\w+" x=[^>]*height="([\d.]+)" rx', page.text)
    ]
    assert max(heights) == 108
    assert 80 < min(heights) < 108
    assert re.findall(r'<rect class="bar-(\w+)" x=', page.text) == ["off", "on"]
    assert "2 of 3 changes" in page_text(page)
    everything = browse("viewer").get(f"{PAGE}?all=yes").text
    assert len(rows(everything)) == 3
    assert "No users" in rows(everything)[1]


def test_another_environment_is_chosen(browse: Any, changed: list[AuditEvent]) -> None:
    page = browse("viewer").get(f"{PAGE}?environment=development")
    [row] = rows(page.text)
    assert "turned hat off in development" in row
    assert "10,000 of 10,000 users" in row
    assert "Changes of development" in page_text(page)
    assert browse("viewer").get(f"{PAGE}?environment=nowhere").status_code == 400


def test_what_is_not_counted_is_shown_as_that(browse: Any, shop: Project) -> None:
    segment = create_segment({"name": "pro", "constraints": []}, caller=WHO)
    update_segment(segment.pk, {"description": "Pays"}, caller=WHO)
    cart(5)
    enable = AuditEvent.objects.count()
    disable_flag("shop", "cart", "production", caller=WHO)
    assert AuditEvent.objects.count() == enable + 1
    assert [row.endswith("Not counted Turn back…") for row in rows(browse("admin").get(PAGE).text)] == [
        True
    ] * 2


def test_archiving_a_flag_that_was_on_is_noticed(browse: Any, shop: Project) -> None:
    cart(100)
    archive_flags("shop", ["cart"], caller=WHO)
    count_recent_changes()
    [row] = rows(browse("viewer").get(PAGE).text)
    assert "archived cart" in row
    assert "10,000 of 10,000 users" in row


def test_what_was_not_compared_or_measured_is_not_counted(
    browse: Any, shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes are compared in MAX_PLACES environments, production first."""
    monkeypatch.setattr(versions, "MAX_PLACES", 1)
    cart(100)
    FlagEnvironment.objects.filter(flag__name="cart", environment="development").update(enabled=True)
    archive_flags("shop", ["cart"], caller=WHO)
    make_flag("hat", "shop", environment="production", strategies=[{"name": "hostGroup"}])
    enable_flag("shop", "hat", "production", caller=WHO)
    count_recent_changes()
    hat, archived = rows(browse("viewer").get(PAGE).text)
    assert ("turned hat on" in hat, "Not counted" in hat) == (True, True)
    assert "10,000 of 10,000 users" in archived
    [elsewhere] = rows(browse("viewer").get(f"{PAGE}?environment=development").text)
    assert ("archived cart" in elsewhere, "Not counted" in elsewhere) == (True, True)


def test_a_stretch_of_time_is_picked_with_links_and_a_form(browse: Any, changed: list[AuditEvent]) -> None:
    more, _, off = changed
    between = iso(more.created_at + (off.created_at - more.created_at) / 2)
    viewer = browse("viewer")
    query = f"since={iso(timezone.now() - timedelta(seconds=30))}&until={between}"
    page = viewer.get(f"{PAGE}?from={more.created_at:%Y-%m-%d}T00:00&{query}")
    picked, others = page.text.partition(">Picked<")[2].split('<h2 class="day">')
    assert len(rows(picked)) == len(rows(others)) == 1
    assert "from 5 % to 50 %" in rows(picked)[0]
    assert "1 change, the largest noticed by 4," in page_text(page)
    [link] = re.findall(r'href="(/playground/incidents/[^"]+)"', page.text)
    form = viewer.get(link.replace("&amp;", "&")).text
    assert f'value="{between[:19]}"' in form
    inputs = re.findall(
        r'<input type="datetime-local"[^>]* name="(since|until)"[^>]* value="([^"]+)"', page.text
    )
    assert [name for name, _ in inputs] == ["since", "until"]
    assert dict(inputs)["until"] == between[:19]
    for unreadable in ("since=now&until=then", f"since={between}&until={between}", f"since={between}"):
        assert ">Picked<" not in viewer.get(f"{PAGE}?{unreadable}").text


def test_other_projects_stay_hidden(browse: Any, changed: list[AuditEvent]) -> None:
    assert rows(browse("outsider").get(PAGE).text) == []
    assert "Nothing changed in this time" in page_text(browse("outsider").get(PAGE))
    assert browse("outsider").get(f"{PAGE}?project=shop").status_code == 400
    make_project("other")
    assert rows(browse("viewer").get(f"{PAGE}?project=other").text) == []
    assert len(rows(browse("viewer").get(f"{PAGE}?project=shop&person={WHO.name}").text)) == 2


def test_the_list_is_a_file(browse: Any, changed: list[AuditEvent]) -> None:
    answer = browse("viewer").get(f"{PAGE}?format=csv")
    header, off, more = b"".join(answer.streaming_content).decode().splitlines()
    assert header == "When,Who,What,Project,Users,Of"
    assert re.search(r"turned cart off in production,shop,[45]\d\d\d,10000$", off)
    assert re.search(r",shop,4\d\d\d,10000$", more)


def test_a_safeguards_metric_is_beside_them(browse: Any, sdk: Any, changed: list[AuditEvent]) -> None:
    assert 'class="measured"' not in browse("viewer").get(PAGE).text
    place = {"flag": changed[0] and strategy_of().flag, "environment_id": "production"}
    watched = {"metric": "errors", "aggregation": "avg", "time_range": "hour", "threshold": 5}
    Safeguard.objects.create(title="Failed payments", **watched, **place)
    Safeguard.objects.create(
        title="Pager", source="alert", metric="pager", firing_since=timezone.now(), **place
    )
    MetricChart.objects.create(title="All errors", metric="errors", aggregation="avg", time_range="hour")
    report(sdk, 3)
    page = browse("viewer").get(PAGE)
    text = page_text(page)
    assert "Failed payments" in text
    assert "limit 5" in text
    assert 'aria-label="Pager since ' in page.text
    [chart] = MetricChart.objects.all()
    assert "limit" not in page_text(browse("viewer").get(f"{PAGE}?metric={chart.pk}"))
    assert "Failed payments" not in browse("outsider").get(PAGE).text


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("from=2026-11-21T12:00&to=2026-11-21T12:59", ["12:10", "12:20", "12:30", "12:40", "12:50"]),
        ("from=2026-11-21&to=2026-11-21", ["03:00", "06:00", "09:00", "12:00", "15:00", "18:00", "21:00"]),
        ("from=2026-11-01&to=2026-11-20", ["3 Nov", "5 Nov", "7 Nov", "9 Nov", "11 Nov", "13 Nov", "15 Nov", "17 Nov", "19 Nov"]),
    ],
)  # fmt: skip
def test_the_axis_has_even_times_of_the_readers_zone(query: str, texts: list[str]) -> None:
    zone = ZoneInfo("Europe/Oslo")
    dates = DateRange.of(QueryDict(query), zone)
    axis = make_axis(dates, datetime(2026, 11, 28, tzinfo=UTC))
    ticks = list(make_ticks(axis, zone, Listing(QueryDict(query), [], columns=HappenedPage.columns)))
    assert [tick.text for tick in ticks] == texts
    assert all("since=2026-11-" in tick.url for tick in ticks)


def test_a_day_on_which_clocks_change_is_longer() -> None:
    dates = DateRange.of(QueryDict("from=2026-10-25&to=2026-10-25"), ZoneInfo("Europe/Oslo"))
    axis = make_axis(dates, datetime(2026, 11, 28, tzinfo=UTC))
    assert axis.end - axis.begin == timedelta(hours=25)


def test_any_time_can_be_asked_for(browse: Any, changed: list[AuditEvent]) -> None:
    for query in ("from=1970-01-01", "to=2020-01-01", "from=8000-01-01", "from=2026-05-02&to=2026-05-01"):
        assert browse("viewer").get(f"{PAGE}?{query}").status_code == 200, query
    assert len(rows(browse("viewer").get(f"{PAGE}?from=1970-01-01").text)) == 2


def test_many_changes_take_no_more_queries(
    browse: Any, changed: list[AuditEvent], django_assert_max_num_queries: Any
) -> None:
    for _ in range(3):
        enable_flag("shop", "cart", "production", caller=WHO)
        disable_flag("shop", "cart", "production", caller=WHO)
    count_recent_changes()
    viewer = browse("viewer")
    assert len(rows(viewer.get(PAGE).text)) == 8
    with django_assert_max_num_queries(40):
        viewer.get(PAGE)
