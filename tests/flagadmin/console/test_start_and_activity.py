import csv
import io

import pytest
from django.db import transaction
from django.utils import timezone

from flagadmin.audit.events import EventType
from flagadmin.audit.record import Event, record
from groups.access import Caller
from projects.models import Flag


def happened(event_type, **fields):
    with transaction.atomic():
        record(Event(type=event_type, **fields), actor=Caller.system())


def test_a_stranger_is_sent_to_log_in_and_back(client, db):
    response = client.get("/activity/?kind=flags")

    assert response.status_code == 302
    assert response["Location"] == "/login/?next=/activity/%3Fkind%3Dflags"


def test_the_start_page_shows_readable_projects_only(browse):
    viewer, member = browse("viewer").get("/").text, browse("member").get("/").text

    assert "/projects/default/" in viewer
    assert "/projects/shop/" in viewer
    assert "/projects/shop/" in member
    assert "/projects/default/" not in member


def test_nobody_without_access_is_shown_a_project(browse):
    assert "You have no projects." in browse("outsider").get("/").text


def test_data_fixes_are_for_admins(browse):
    assert "Data fixes" in browse("admin").get("/").text
    assert "Data fixes" not in browse("editor").get("/").text


def test_the_navigation_leads_to_what_one_may_open(browse):
    admin, member = browse("admin").get("/access/tokens/").text, browse("member").get("/access/tokens/").text

    assert '<a href="/access/people/"' in admin
    assert '<a href="/access/people/"' not in member
    assert '<a href="/access/tokens/" aria-current="true">Access</a>' in member


def test_activity_tells_who_did_what(browse):
    happened(EventType.FEATURE_ENVIRONMENT_ENABLED, project="shop", environment="production", feature="cart")

    page = browse("viewer").get("/activity/").text

    assert "switched on cart in production" in page


def test_activity_of_unreadable_projects_is_not_told(browse):
    happened(EventType.PROJECT_CREATED, project="default")
    happened(EventType.USER_CREATED, subject="somebody")

    page = browse("member").get("/activity/").text

    assert "created project default" not in page
    assert "somebody" not in page


def test_activity_can_be_filtered_and_sorted(browse):
    happened(EventType.FEATURE_CREATED, project="shop", feature="first")
    happened(EventType.FEATURE_CREATED, project="shop", feature="second")
    happened(EventType.GROUP_CREATED, subject="crew")

    page = browse("viewer").get("/activity/?kind=flags&sort=when").text

    assert page.index("created flag first") < page.index("created flag second")
    assert "created group crew" not in page


def test_a_filter_that_is_not_there_is_refused(browse):
    response = browse("viewer").get("/activity/?kind=weather")

    assert response.status_code == 400
    assert "weather not found. Available: access, flags" in response.text


def test_activity_as_csv_runs_no_formula(browse):
    happened(EventType.FEATURE_CREATED, project="=cmd()", feature="x")

    response = browse("viewer").get("/activity/?format=csv")

    rows = list(csv.reader(io.StringIO(b"".join(response.streaming_content).decode())))
    assert response["Content-Disposition"] == 'attachment; filename="activity.csv"'
    assert rows[0] == ["When", "Who", "What", "Project"]
    assert rows[1][2:] == ["created flag x", "'=cmd()"]


def test_an_unknown_page_says_so_in_words(browse):
    response = browse("viewer").get("/nowhere/")

    assert response.status_code == 404
    assert "/nowhere/ not found." in response.text
    assert 'href="/playground/"' in response.text


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_is_kept_in_a_cookie(client, db, theme):
    response = client.post("/theme/", {"theme": theme, "next": "/activity/"})

    assert (response.status_code, response["Location"]) == (302, "/activity/")
    assert f'data-theme="{theme}"' in client.get("/nowhere/").text


def test_the_theme_form_leads_to_no_other_host(client, db):
    assert client.post("/theme/", {"theme": "dark", "next": "//evil.example/"})["Location"] == "/"


def test_without_flags_one_starts_with_the_first(browse, people, shop):
    admin, reader = browse("admin"), browse("reader")
    assert '/features/new"' in admin.get("/").text
    assert "No flags yet." not in reader.get("/").text

    Flag.objects.create(project=shop, name="a", created_at=timezone.now())
    assert "No flags yet." not in admin.get("/").text
    assert "Open the playground" in admin.get("/").text
