import csv
import io
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import transaction
from django.utils import timezone

from flagadmin.console import activity
from flagadmin.console.start import FEW_FLAGS
from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.record import Event, record, record_all
from flagadmin.core.http.logs import request_id
from groups.access import Caller
from projects.models import FavoriteFlag, Flag
from tests.support.cast import client as api_client
from tests.support.cast import make_token
from tests.support.flags import make_flag
from tests.support.page_text import page_text


def happened(event_type, **fields):
    with transaction.atomic():
        record(Event(type=event_type, **fields), actor=Caller.system())


def test_a_stranger_is_sent_to_log_in_and_back(client, db):
    response = client.get("/activity/?kind=flags")

    assert response.status_code == 302
    assert response["Location"] == "/login/?next=/activity/%3Fkind%3Dflags"


def test_the_list_shows_readable_projects_only(browse):
    viewer, member = browse("viewer").get("/projects/").text, browse("member").get("/projects/").text

    assert "/projects/default/" in viewer
    assert "/projects/shop/" in viewer
    assert "/projects/shop/" in member
    assert "/projects/default/" not in member


def test_nobody_without_access_is_shown_a_project(browse):
    assert "You have no projects." in browse("outsider").get("/").text


def test_data_fixes_are_for_admins(browse):
    assert 'href="/admin/"' in browse("admin").get("/search/?q=data+fixes").text
    assert 'href="/admin/"' not in browse("editor").get("/search/?q=data+fixes").text


def test_settings_offer_what_one_may_open(browse):
    admin, viewer = browse("admin").get("/settings/").text, browse("viewer").get("/settings/").text

    for address in ("/integrations/", "/relays/", "/installation/", "/admin/", "/move/"):
        assert f'href="{address}"' in admin
        assert f'href="{address}"' not in viewer
    for address in ("/environments/", "/segments/", "/release-templates/", "/import/", "/api/docs/"):
        assert f'href="{address}"' in viewer


def test_the_navigation_leads_to_what_one_may_open(browse):
    admin, member = browse("admin").get("/access/tokens/").text, browse("member").get("/access/tokens/").text

    assert '<a href="/access/people/"' in admin
    assert '<a href="/access/people/"' not in member
    assert '<a href="/access/tokens/" aria-current="page">API tokens</a>' in member
    assert "/access/tokens/" not in browse("viewer").get("/projects/").text


def test_activity_tells_who_did_what(browse):
    happened(EventType.FEATURE_ENVIRONMENT_ENABLED, project="shop", environment="production", feature="cart")

    page = browse("viewer").get("/activity/").text

    assert re.search(r"turned <a href=[^>]*>cart</a> on in production", page)
    assert "<del>Off</del>" in page
    assert "<ins>On</ins>" in page


def test_activity_of_unreadable_projects_is_not_shown(browse):
    happened(EventType.PROJECT_CREATED, project="default")
    happened(EventType.USER_CREATED, subject="somebody")

    page = browse("member").get("/activity/").text

    assert "created project default" not in page
    assert "somebody" not in page


def test_activity_is_filtered_newest_first(browse):
    happened(EventType.FEATURE_CREATED, project="shop", feature="first")
    happened(EventType.FEATURE_CREATED, project="shop", feature="second")
    happened(EventType.GROUP_CREATED, subject="crew")

    page = browse("viewer").get("/activity/?kind=flags").text

    assert page.index(">second</a>") < page.index(">first</a>")
    assert "crew" not in page
    assert "2 events" in page


def test_activity_of_days_in_the_zone_of_the_browser(browse):
    happened(EventType.FEATURE_CREATED, project="shop", feature="late")
    at = AuditEvent.objects.get().created_at
    here, there = at.date(), (at.astimezone(ZoneInfo("Pacific/Kiritimati"))).date()
    viewer = browse("viewer")

    assert ">late</a>" in viewer.get(f"/activity/?from={here}&to={here}").text
    assert "No events match" in viewer.get(f"/activity/?to={here - timedelta(days=1)}").text
    viewer.cookies["zone"] = "Pacific/Kiritimati"
    assert ">late</a>" in viewer.get(f"/activity/?from={there}&to={there}").text
    viewer.cookies["zone"] = "../../etc/passwd"
    assert ">late</a>" in viewer.get(f"/activity/?from={here}&to={here}").text


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("from=2026-11-21T14:30&to=2026-11-21T14:30", ["at-14-30"]),
        ("from=2026-11-21&from-time=14:30&to=2026-11-21&to-time=14:31", ["at-14-31", "at-14-30"]),
        ("to=2026-11-21T14:29:05", []),
        ("to=2026-11-21T14:29:10", ["at-14-29"]),
        ("from=2026-11-21T15:31%2B01:00", ["at-14-31"]),
        ("from=2026-11-21T14:31:00.5Z&to=2026-11-21", ["at-14-31"]),
        ("from=2026-11-21&to=2026-11-21", ["at-14-31", "at-14-30", "at-14-29"]),
    ],
)
def test_activity_of_times(browse, query, shown):
    for minute in (29, 30, 31):
        moment = datetime(2026, 11, 21, 14, minute, 10, 500_000, tzinfo=UTC)
        AuditEvent.objects.create(
            type="feature-created", project="shop", feature=f"at-14-{minute}", created_at=moment
        )
    page = browse("viewer").get(f"/activity/?{query}").text
    assert re.findall(r">(at-14-\d\d)</a>", page) == shown


def test_times_of_activity_are_those_of_the_browser_and_stay_in_the_form(browse):
    viewer = browse("viewer")
    viewer.cookies["zone"] = "Europe/Berlin"
    page = viewer.get("/activity/?from=2026-11-21T15:30&person=x").text
    assert 'name="from" value="2026-11-21"' in page
    assert 'name="from-time" value="15:30"' in page
    assert "Since 21 Nov 2026 15:30" in page
    # The offered ranges and "Any date" take the time with them.
    assert 'href="?person=x"' in page
    assert "from-time=" not in page

    happened(EventType.FEATURE_CREATED, project="shop", feature="late")
    today = viewer.get("/activity/?from-time=00:00&to-time=23:59").text
    assert ">late</a>" in today


@pytest.mark.parametrize(
    "query",
    [
        "from=yesterday",
        "to=2026-02-30",
        "from=9999-12-31",
        "from=2026-11-21T25:00",
        "to-time=noon",
        "to=0001-01-01T00:00%2B14:00",
        "before=x",
        "change=-1",
    ],
)
def test_activity_refuses_what_is_no_date_or_number(browse, query):
    assert browse("viewer").get(f"/activity/?{query}").status_code == 400


def test_activity_is_paged_by_a_cursor(browse, monkeypatch):
    monkeypatch.setattr(activity, "PER_PAGE", 2)
    for number in range(3):
        happened(EventType.FEATURE_CREATED, project="shop", feature=f"flag-{number}")
    viewer = browse("viewer")

    first = viewer.get("/activity/?kind=flags").text
    older = re.search(r'href="(\?[^"]*before=[^"]*)" rel="next"', first)

    assert [name for name in ("flag-0", "flag-1", "flag-2") if f">{name}</a>" in first] == [
        "flag-1",
        "flag-2",
    ]
    assert older is not None
    second = viewer.get("/activity/" + older[1].replace("&amp;", "&")).text
    assert [name for name in ("flag-0", "flag-1", "flag-2") if f">{name}</a>" in second] == ["flag-0"]
    assert "Newest" in second


def test_a_change_of_many_events_is_one_entry_with_a_page_of_its_own(browse):
    events = [Event(type=EventType.FEATURE_ARCHIVED, project="shop", feature=f"flag-{n}") for n in range(30)]
    token = request_id.set("one-request")
    with transaction.atomic():
        record_all(events, actor=Caller.system())
    request_id.reset(token)
    viewer = browse("viewer")

    page = viewer.get("/activity/").text
    assert page.count("<article") == 1
    assert "30 flags" in page
    change = f"/activity/?change={AuditEvent.objects.latest('pk').pk}"
    assert [viewer.get(f"{change}&page={n}").text.count("archived <a") for n in (1, 2)] == [20, 10]


def test_the_page_of_a_change_says_who_did_what_with_links(browse, people):
    people["editor"].name = "Kari Nordmann"
    people["editor"].save()
    with transaction.atomic():
        record(
            Event(type=EventType.FEATURE_ARCHIVED, project="shop", feature="cart"),
            actor=Caller(user=people["editor"]),
        )
    page = browse("viewer").get(f"/activity/?change={AuditEvent.objects.get().pk}")
    assert "Kari Nordmann archived cart · 1 event ·" in page_text(page)
    assert 'href="/projects/shop/features/cart/"' in page.text


def test_times_are_in_the_zone_of_the_days_that_they_are_listed_by(browse):
    happened(EventType.FEATURE_CREATED, project="shop", feature="cart")
    viewer = browse("viewer")
    assert 'data-zone="UTC"' in viewer.get("/activity/").text  # no cookie yet: the script leaves times in UTC
    viewer.cookies["zone"] = "America/New_York"
    assert "data-zone" not in viewer.get("/activity/").text


@pytest.mark.parametrize("zone", ["Etc/Unknown", "undefined", "../../etc/passwd", "é"])
def test_a_zone_that_the_server_does_not_know_is_utc(browse, zone):
    """Browsers name zones that are newer than the server's list, or none."""
    happened(EventType.FEATURE_CREATED, project="shop", feature="cart")
    viewer = browse("viewer")
    viewer.cookies["zone"] = zone
    assert 'data-zone="UTC"' in viewer.get("/activity/").text


def test_activity_finds_a_person_by_the_name_that_it_shows(browse, people):
    people["editor"].name = "Kari Nordmann"
    people["editor"].save()
    with transaction.atomic():
        record(
            Event(type=EventType.FEATURE_CREATED, project="shop", feature="hers"),
            actor=Caller(user=people["editor"]),
        )
    happened(EventType.FEATURE_CREATED, project="shop", feature="another")

    page = browse("viewer").get("/activity/?person=nordmann").text

    assert "<b>Kari Nordmann</b>" in page
    assert ">another</a>" not in page


def test_an_unknown_filter_value_is_refused(browse):
    response = browse("viewer").get("/activity/?kind=weather")

    assert response.status_code == 400
    assert "weather not found. Available: access, flags" in response.text


@pytest.mark.parametrize(("query", "project"), [("", "=cmd()"), ("&spreadsheet=true", "'=cmd()")])
def test_activity_can_be_downloaded_as_csv(browse, query, project):
    happened(EventType.FEATURE_CREATED, project="=cmd()", feature="x")

    response = browse("viewer").get(f"/activity/?format=csv{query}")

    rows = list(csv.reader(io.StringIO(b"".join(response.streaming_content).decode())))
    assert response["Content-Disposition"] == 'attachment; filename="activity.csv"'
    assert rows[0] == ["When", "Who", "What", "Project", "Why"]
    assert rows[1][2:] == ["created flag x", project, ""]


def test_an_unknown_page_says_so_in_words(browse):
    response = browse("viewer").get("/nowhere/")

    assert response.status_code == 404
    assert "Page not found. No page at /nowhere/." in response.text
    assert 'href="/flags/"' in response.text


def test_the_theme_form_leads_to_no_other_host(client, db):
    assert client.post("/theme/", {"theme": "dark", "next": "//evil.example/"})["Location"] == "/"


def test_without_flags_one_starts_with_the_first(browse, people, shop):
    admin, reader = browse("admin"), browse("reader")
    assert '/features/new"' in admin.get("/").text
    assert '/features/new"' not in reader.get("/").text

    Flag.objects.create(project=shop, name="a", created_at=timezone.now())
    assert "Created: a." in admin.get("/").text


def test_what_is_done_of_the_first_steps_is_said(browse, people, shop):
    admin = browse("admin")
    assert "Three steps, about five minutes." in page_text(admin.get("/"))
    assert "/connect/" in admin.get("/").text

    secret = make_token("backend", environment="production")
    registration = {
        "appName": "my-app",
        "instanceId": "i",
        "strategies": [],
        "started": "2026-11-21T03:26:33Z",
    }
    api_client(secret).post("/api/client/register", registration | {"interval": 60000})
    assert "1 is done." in page_text(admin.get("/"))
    assert "Connected: my-app, just now." in page_text(admin.get("/"))

    flag = make_flag("refunds", shop)
    assert "2 are done." in page_text(admin.get("/"))
    assert "Open refunds" in page_text(admin.get("/"))

    flag.environments.filter(environment="production").update(enabled=True)
    assert "Three steps" not in page_text(admin.get("/"))
    assert "Open the playground" in page_text(admin.get("/"))


def test_with_several_flags_nobody_is_told_how_to_begin(browse, people, shop):
    for number in range(FEW_FLAGS):
        make_flag(f"flag-{number}", shop)
    assert "Three steps" not in page_text(browse("admin").get("/"))


@pytest.mark.parametrize(
    ("event_type", "before", "after", "sentence"),
    [
        (EventType.FEATURE_STRATEGY_UPDATE, {"name": "default"}, {"name": "default", "title": "Now"}, "Now"),
        (
            EventType.FEATURE_STRATEGY_UPDATE,
            {"parameters": {"rollout": "1"}},
            {"parameters": None},
            "rollout",
        ),
        (EventType.FEATURE_STRATEGY_ADD, None, {"odd": 1}, "added"),
        (EventType.FEATURE_IMPORTED, {"strategies": None}, {"strategies": [1]}, "cart"),
        (EventType.FEATURE_ENVIRONMENT_VARIANTS_UPDATED, {"variants": [1]}, {"variants": 2}, "2"),
        (EventType.FEATURES_IMPORTED, None, {"features": "many"}, "imported"),
    ],
)
def test_events_of_earlier_versions_are_shown(browse, event_type, before, after, sentence):
    happened(event_type, project="shop", environment="production", feature="cart", before=before, after=after)

    response = browse("viewer").get("/activity/")

    assert response.status_code == 200
    assert sentence in response.text
    assert "cart" in browse("viewer").get("/").text or event_type == EventType.FEATURES_IMPORTED


def test_favorites_switch_in_production_environments_only(browse, people, shop):
    flag = make_flag("cart", shop)
    FavoriteFlag.objects.create(user=people["admin"], flag=flag)
    FavoriteFlag.objects.create(user=people["viewer"], flag=flag)

    admin, viewer = browse("admin").get("/").text, browse("viewer").get("/").text

    assert admin.count('role="switch"') == 1
    assert "cart in production" in admin
    assert "cart in development" not in admin
    assert 'role="switch"' not in viewer
    assert ">cart</a>" in viewer


@pytest.mark.django_db
def test_whoever_arrives_from_unleash_finds_the_move(browse, people):
    pages = {who: browse(who).get("/").content.decode() for who in ("admin", "owner")}
    assert 'href="/move/"' in pages["admin"]
    assert "Move from Unleash" not in pages["owner"]
    assert "Import a file" in pages["owner"]
