"""Hourly limits on what usage reports may create: the excess is not stored, but counted and shown."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from projects.applications.cleanup import clean_usage
from projects.applications.sdk_versions import quota
from projects.models import Application, ApplicationInstance, FlagUsage, IgnoredReport, UsageHour
from tests.support.cast import client, make_token
from tests.support.flags import make_flag
from tests.support.sdk import Sdk, make_sdk, metrics

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def limits(standing_clock: datetime, settings) -> None:
    quota.forget()
    settings.REPORT_APPLICATIONS_LIMIT = settings.REPORT_INSTANCES_LIMIT = 2
    settings.REPORT_VARIANTS_LIMIT = 3


def ignored() -> dict[tuple[str, str], int]:
    return {(row.kind, row.application): row.number for row in IgnoredReport.objects.all()}


def ask(path: str) -> dict:
    return client(make_token("admin")).get(f"/api/admin/metrics/{path}").json()


def count_variants(sdk: Sdk, *names: str) -> None:
    body = metrics("web", ["checkout"])
    body["bucket"]["toggles"]["checkout"]["variants"] = dict.fromkeys(names, 1)
    assert sdk.api.post("/api/client/metrics", body).status_code == 202


def test_a_token_creates_some_applications(sdk: Sdk, caplog: pytest.LogCaptureFixture) -> None:
    make_flag("checkout", "default")
    for name in ("a", "b", "c", "d"):
        assert sdk.count(name, ["checkout"]).status_code == 202
    assert set(Application.objects.values_list("name", flat=True)) == {"a", "b"}
    assert FlagUsage.objects.count() == 2
    assert ignored() == {("application", ""): 2}
    (row,) = ask("ignored")["ignored"]
    assert (row["kind"], row["count"], row["appName"]) == ("application", 2, None)
    assert row["tokenName"] == "backend of nobody"
    assert [record.levelname for record in caplog.records if "exceeded a limit" in record.message] == [
        "WARNING"
    ]


def test_known_applications_go_on_being_counted(sdk: Sdk) -> None:
    make_flag("checkout", "default")
    for name in ("a", "b", "c", "a", "b"):
        sdk.count(name, ["checkout"], yes=1, no=0)
    assert sorted(UsageHour.objects.values_list("yes", flat=True)) == [2, 2]


def test_each_token_has_its_own_allowance_anew_each_hour(
    sdk: Sdk, standing_clock: datetime, monkeypatch
) -> None:
    for name in ("a", "b", "c"):
        sdk.register(name)
    make_sdk().register("d")
    assert set(Application.objects.values_list("name", flat=True)) == {"a", "b", "d"}

    monkeypatch.setattr(timezone, "now", lambda: standing_clock + timedelta(hours=1))
    sdk.register("c")
    assert Application.objects.filter(name="c").exists()


def test_an_application_gets_some_instances(sdk: Sdk) -> None:
    make_flag("checkout", "default")
    for instance in ("i-1", "i-2", "i-3", "i-1"):
        sdk.register("web", instance)
    sdk.count("web", ["checkout"], "i-4")
    assert set(ApplicationInstance.objects.values_list("instance_id", flat=True)) == {"i-1", "i-2"}
    assert UsageHour.objects.get().yes == 3
    assert ignored() == {("instance", "web"): 2}
    assert ask("applications/web")["ignored"] == {"instance": 2}


def test_a_flag_counts_some_variants(sdk: Sdk) -> None:
    make_flag("checkout", "default")
    count_variants(sdk, "red", "blue")
    count_variants(sdk, "a", "b", "red")
    count_variants(sdk, "c", "blue")
    assert UsageHour.objects.get().variants == {"red": 2, "blue": 2, "a": 1}
    assert ignored() == {("variant", "web"): 2}


def test_many_variants_at_once(sdk: Sdk) -> None:
    make_flag("checkout", "default")
    count_variants(sdk, *(f"v-{n}" for n in range(500)))
    assert len(UsageHour.objects.get().variants) == 3
    assert ignored() == {("variant", "web"): 497}

    body = metrics("web", ["checkout"])
    body["bucket"]["toggles"]["checkout"]["variants"] = {"x" * 256: 1}
    assert sdk.api.post("/api/client/metrics", body).status_code == 400


def test_an_application_tells_what_was_ignored(sdk: Sdk, people, browse) -> None:
    make_flag("checkout", "default")
    count_variants(sdk, "a", "b", "c", "d")
    assert "Not stored: 1 new variant." in browse("admin").get("/applications/web/").text


def test_counts_are_told_to_who_reads_all_and_forgotten_after_two_days(
    sdk: Sdk, api, standing_clock: datetime
) -> None:
    for name in ("a", "b", "c"):
        sdk.register(name)
    assert api["reader"].get("/api/admin/metrics/ignored").json() == {"ignored": []}
    assert len(api["viewer"].get("/api/admin/metrics/ignored").json()["ignored"]) == 1

    clean_usage(now=standing_clock + timedelta(hours=47))
    assert IgnoredReport.objects.exists()
    clean_usage(now=standing_clock + timedelta(hours=49))
    assert not IgnoredReport.objects.exists()
