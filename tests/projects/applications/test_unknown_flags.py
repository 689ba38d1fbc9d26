"""Flags that SDKs report though they do not exist: what is stored, for how long, and who sees them."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from projects.applications import store_report
from projects.applications.cleanup import clean_usage
from projects.applications.sdk_versions import quota
from projects.models import Flag, IgnoredReport, UnknownFlag
from tests.support.flags import make_flag
from tests.support.page_text import page_text
from tests.support.sdk import Sdk, make_sdk

UNKNOWN = "/api/admin/metrics/unknown-flags"


@pytest.fixture(autouse=True)
def flags(standing_clock: datetime, shop) -> None:
    quota.forget()
    make_flag("checkout", "default")
    make_flag("basket")


def iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def names(api, caller: str = "viewer") -> list[str]:
    return [flag["name"] for flag in api[caller].get(UNKNOWN).json()["unknownFlags"]]


def test_what_is_unknown_until_it_is_created(api, sdk: Sdk) -> None:
    sdk.count("web", ["checkout"])
    assert api["viewer"].get(UNKNOWN).json() == {"unknownFlags": []}

    metric = {"featureName": "bulk", "appName": "edge-app", "yes": 1, "no": 0}
    body = {"applications": [], "metrics": [metric | {"timestamp": timezone.now().isoformat()}]}
    assert sdk.api.post("/api/client/metrics/bulk", body, format="json").status_code == 202
    assert names(api) == ["bulk"]

    sdk.count("web", ["late", "later"])
    make_flag("late")
    assert names(api) == ["bulk", "later"]


def test_where_an_unknown_flag_was_asked_for(api, sdk: Sdk) -> None:
    now = timezone.now()
    sdk.count("web", ["chekout", "checkout"], at=now - timedelta(hours=2))
    sdk.count("web", ["chekout"], at=now - timedelta(hours=1))
    make_sdk("production").count("web", ["chekout"], at=now)
    sdk.count("jobs", ["chekout", "archive"], at=now)
    assert api["viewer"].get(UNKNOWN).json()["unknownFlags"] == [
        {
            "name": "archive",
            "lastSeenAt": iso(now),
            "lastEventAt": None,
            "reports": [
                {"appName": "jobs", "environments": [{"environment": "development", "seenAt": iso(now)}]}
            ],
        },
        {
            "name": "chekout",
            "lastSeenAt": iso(now),
            "lastEventAt": None,
            "reports": [
                {"appName": "jobs", "environments": [{"environment": "development", "seenAt": iso(now)}]},
                {
                    "appName": "web",
                    "environments": [
                        {"environment": "development", "seenAt": iso(now - timedelta(hours=1))},
                        {"environment": "production", "seenAt": iso(now)},
                    ],
                },
            ],
        },
    ]


def test_a_deleted_flag_was_known_until_then(api, sdk: Sdk) -> None:
    flags = "/api/admin/projects/shop/features"
    api["owner"].post(flags, {"name": "old"})
    api["owner"].delete(f"{flags}/old")
    sdk.count("web", ["old"])
    assert names(api) == []  # it is archived
    Flag.objects.filter(name="old").delete()
    sdk.count("web", ["old"])
    [flag] = api["viewer"].get(UNKNOWN).json()["unknownFlags"]
    assert (flag["name"], flag["lastEventAt"]) == ("old", iso(timezone.now()))


def test_who_reads_one_project_sees_what_its_applications_asked_for(api, sdk: Sdk) -> None:
    sdk.count("web", ["checkout", "of-web"])
    make_sdk().count("till", ["basket", "of-till"])
    sdk.count("jobs", ["of-jobs"])
    assert names(api) == ["of-jobs", "of-till", "of-web"]
    assert names(api, "reader") == ["of-till"]
    assert names(api, "outsider") == []


def test_what_an_application_misses(api, sdk: Sdk) -> None:
    sdk.register("web")
    sdk.count("web", ["checkout", "chekout", "basquet"])
    overview = api["viewer"].get("/api/admin/metrics/applications/web/overview").json()
    [development] = overview["environments"]
    assert development["issues"]["missingFeatures"] == ["basquet", "chekout"]


def test_a_deleted_application_takes_its_unknown_flags_with_it(api, sdk: Sdk) -> None:
    sdk.count("web", ["chekout"])
    sdk.count("jobs", ["chekout"])
    api["admin"].delete("/api/admin/metrics/applications/web")
    [flag] = api["viewer"].get(UNKNOWN).json()["unknownFlags"]
    assert [report["appName"] for report in flag["reports"]] == ["jobs"]
    assert UnknownFlag.objects.count() == 1


def test_they_are_kept_for_two_days(api, sdk: Sdk) -> None:
    sdk.count("web", ["old", "new"])
    UnknownFlag.objects.filter(name="old").update(seen_at=timezone.now() - timedelta(hours=49))
    assert names(api) == ["new"]
    clean_usage()
    assert UnknownFlag.objects.get().name == "new"


def test_an_application_adds_some_names_in_an_hour(api, sdk: Sdk, monkeypatch) -> None:
    monkeypatch.setattr(store_report, "MAX_NEW_IN_AN_HOUR", 2)
    sdk.count("web", ["a", "b", "c"])
    sdk.count("web", ["a", "d"])
    sdk.count("jobs", ["e"])
    assert names(api) == ["a", "b", "e"]
    assert IgnoredReport.objects.get().number == 2
    application = api["viewer"].get("/api/admin/metrics/applications/web").json()
    assert application["ignored"] == {"unknown flag": 2}


def test_all_applications_together_add_some_names(api, sdk: Sdk, monkeypatch) -> None:
    monkeypatch.setattr(store_report, "MAX_UNKNOWN_FLAGS", 3)
    sdk.count("web", ["a", "b"])
    sdk.count("jobs", ["c", "d"])
    sdk.count("till", ["e"])
    assert names(api) == ["a", "b", "c"]
    later = timezone.now() - timedelta(seconds=1)
    UnknownFlag.objects.update(seen_at=later - timedelta(hours=1))
    sdk.count("web", ["a"])
    assert UnknownFlag.objects.get(name="a").seen_at > later


def test_a_name_that_no_flag_can_have_is_not_stored(api, sdk: Sdk) -> None:
    assert sdk.count("web", ["x" * 101, "y" * 100]).status_code == 202
    assert names(api) == ["y" * 100]


def test_only_reports_with_unknown_flags_look_them_up(sdk: Sdk) -> None:
    sdk.count("web", ["checkout", "chekout"])
    with CaptureQueriesContext(connection) as queries:
        sdk.count("web", ["checkout"])
    assert not [query for query in queries if "unknownflag" in query["sql"]]
    with CaptureQueriesContext(connection) as queries:
        sdk.count("web", ["checkout", "chekout"])
    assert len([query for query in queries if "unknownflag" in query["sql"]]) == 1


# Pages ------------------------------------------------------------------------------------------------------


def test_pages_list_missing_flags_and_offer_to_create_them(browse, people, sdk: Sdk) -> None:
    sdk.count("web", ["chekout", "basket"])
    sdk.count("jobs", ["archive"])
    admin = browse("admin")

    every = admin.get("/applications/")
    assert "Asked for, but there is no such flag" in page_text(every)
    assert "chekout" in page_text(every)
    # web uses a flag of the project shop; of jobs, nothing is known.
    assert "/projects/shop/features/new?name=chekout" in every.text
    assert "/projects/default/features/new?name=archive" in every.text

    own = page_text(admin.get("/applications/web/"))
    assert "chekout" in own
    assert "archive" not in own

    overview = page_text(admin.get("/"))
    assert "2 flags asked for do not exist" in overview
    assert "archive by jobs · chekout by web" in overview


def test_one_missing_flag_can_be_created_from_the_start_page(browse, people, sdk: Sdk) -> None:
    sdk.count("web", ["chekout", "basket"])
    admin = browse("admin")
    assert "1 flag asked for does not exist" in page_text(admin.get("/"))
    assert 'href="/projects/shop/features/new?name=chekout"' in admin.get("/").text
    assert 'value="chekout"' in admin.get("/projects/shop/features/new?name=chekout").text

    make_flag("chekout")
    assert "asked for" not in page_text(admin.get("/"))
    assert "chekout" not in admin.get("/applications/").text


def test_missing_flags_of_unreadable_applications_are_not_named(browse, people, sdk: Sdk) -> None:
    sdk.count("secret-app", ["chekout", "checkout"])
    assert "chekout" not in browse("reader").get("/applications/").text
    assert "chekout" not in browse("reader").get("/").text
    assert "chekout" in browse("viewer").get("/applications/").text


def test_a_viewer_is_not_offered_to_create_them_and_odd_names_are_escaped(browse, people, sdk: Sdk) -> None:
    sdk.count("web", ["chekout", "basket"])
    assert "Create it" not in browse("viewer").get("/applications/").text

    sdk.count("web", ["<b>&x=1#", "basket"])
    page = browse("admin").get("/applications/").text
    assert "<b>&x" not in page
    assert "features/new?name=%3Cb%3E%26x%3D1%23" in page
