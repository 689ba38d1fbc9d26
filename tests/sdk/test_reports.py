"""POST /api/client/register and /metrics: what is stored, and what is refused."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from groups.models import ApiToken
from projects.models import (
    Application,
    ApplicationInstance,
    CountedReport,
    FlagLastSeen,
    FlagUsage,
    UsageHour,
)
from sdk.reports.batcher import forget_reports
from tests.support.cast import client, make_token
from tests.support.flags import make_flag
from tests.support.sdk import Sdk, make_sdk, metrics, registration

pytestmark = pytest.mark.django_db


def test_a_registration_is_stored_with_the_environment_of_the_key(sdk: Sdk) -> None:
    told = {"sdkVersion": "unleash-node-sdk:6.12.1", "platformName": "node", "environment": "production"}
    answer = sdk.register("web", "w-1", **told)
    assert (answer.status_code, answer.content) == (202, b"")
    instance = ApplicationInstance.objects.select_related("application").get()
    assert (instance.application.name, instance.instance_id, instance.environment) == (
        "web",
        "w-1",
        "development",
    )
    assert (instance.sdk_version, instance.platform_name) == ("unleash-node-sdk:6.12.1", "node")
    assert instance.application.strategies == ["default"]


@pytest.mark.parametrize("instance", [None, ""])
def test_an_instance_without_id_is_called_default(sdk: Sdk, instance: str | None) -> None:
    sdk.register("web", instance)
    sdk.count("web", [], instance)
    assert ApplicationInstance.objects.get().instance_id == "default"


def test_the_sdk_version_named_last_is_kept(sdk: Sdk) -> None:
    def version() -> str:
        return ApplicationInstance.objects.get().sdk_version

    sdk.register("web", sdkVersion="unleash-node-sdk:6.12.1")
    sdk.count("web", [])
    sdk.register("web", platformName="node")
    assert version() == "unleash-node-sdk:6.12.1"
    sdk.register("web", sdkVersion="unleash-node-sdk:7.0.0")
    assert version() == "unleash-node-sdk:7.0.0"
    sdk.api.post("/api/client/metrics", metrics("web", []), headers={"unleash-sdk": "unleash-go:1.0.0"})
    assert version() == "unleash-go:1.0.0"


def test_counts_add_up_by_the_hour(sdk: Sdk) -> None:
    flag = make_flag("checkout", "default")
    at = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    for minute in (5, 50):
        answer = sdk.count("web", ["checkout"], yes=2, no=1, at=at + timedelta(minutes=minute))
        assert (answer.status_code, answer.content) == (202, b"")
    row = UsageHour.objects.get()
    assert (row.flag_id, row.environment, row.hour, row.yes, row.no) == (flag.pk, "development", at, 4, 2)


def test_counts_of_variants_add_up(standing_clock: datetime, sdk: Sdk) -> None:
    make_flag("checkout", "default")
    for counts in ({"red": 2, "blue": 1}, {"red": 3}, {}):
        body = metrics("web", ["checkout"])
        body["bucket"]["toggles"]["checkout"]["variants"] = counts
        sdk.api.post("/api/client/metrics", body)
    assert UsageHour.objects.get().variants == {"red": 5, "blue": 1}


def test_usage_and_last_seen_are_noted(sdk: Sdk) -> None:
    flag, at = make_flag("checkout", "default"), timezone.now()
    sdk.count("web", ["checkout"], at=at)
    usage = FlagUsage.objects.get()
    assert (usage.flag_id, usage.environment) == (flag.pk, "development")
    seen = FlagLastSeen.objects.get()
    assert (seen.flag, seen.environment, seen.seen_at) == (flag, "development", at)


def test_last_seen_never_goes_back(sdk: Sdk) -> None:
    make_flag("checkout", "default")
    sdk.count("web", ["checkout"])
    before = FlagUsage.objects.get().last_used_at
    sdk.count("web", ["checkout"], at=timezone.now() - timedelta(hours=3))
    assert FlagUsage.objects.get().last_used_at == before
    assert FlagLastSeen.objects.get().seen_at == before


def test_a_time_to_come_counts_as_now(sdk: Sdk) -> None:
    make_flag("checkout", "default")
    sdk.count("web", ["checkout"], at=timezone.now() + timedelta(days=400))
    assert FlagUsage.objects.get().last_used_at <= timezone.now()
    assert UsageHour.objects.get().hour <= timezone.now()


@pytest.mark.parametrize(
    "at", ["0001-01-01T00:00:00+23:59", "1969-12-31T23:59:59Z", -1, "9999-12-31T23:59:59-23:59"]
)
def test_times_at_the_ends_of_time(sdk: Sdk, at: object) -> None:
    make_flag("checkout", "default")
    body = metrics("web", ["checkout"])
    body["bucket"]["stop"] = body["bucket"]["start"] = at
    for _ in range(2):
        assert sdk.api.post("/api/client/metrics", body).status_code == 202
    assert FlagUsage.objects.get().last_used_at.year >= 2000


def test_a_count_beyond_all_reason_is_refused(sdk: Sdk) -> None:
    answer = sdk.count("web", ["checkout"], yes=2**31)
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "bucket.toggles.checkout.yes")


def test_old_counts_are_usage_without_an_hour(sdk: Sdk) -> None:
    make_flag("checkout", "default")
    sdk.count("web", ["checkout"], at=timezone.now() - timedelta(hours=59))
    assert FlagUsage.objects.count() == 1
    assert UsageHour.objects.count() == 0


def test_unknown_flags_are_accepted_and_not_kept(sdk: Sdk) -> None:
    make_flag("checkout", "default")
    assert sdk.count("web", ["nobody-knows", "checkout"]).status_code == 202
    assert FlagUsage.objects.count() == UsageHour.objects.count() == 1


def test_a_count_of_zero_is_no_usage(sdk: Sdk) -> None:
    make_flag("checkout", "default")
    assert sdk.count("web", ["checkout"], yes=0, no=0).status_code == 202
    assert not FlagUsage.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {"appName": "web"},
        {"appName": "web", "bucket": None},
        {"appName": "web", "impactMetrics": [{"name": "c", "help": "h", "type": "counter", "samples": []}]},
        {"appName": "web", "bucket": {"start": 0, "stop": 1795231693000, "toggles": {}}, "bogus": 1},
        {"appName": "web", "bucket": {"start": "2026-11-21T03:26:33.446450345Z", "stop": 0, "toggles": {}}},
    ],
)
def test_metrics_that_sdks_send(sdk: Sdk, body: dict) -> None:
    assert sdk.api.post("/api/client/metrics", body).status_code == 202
    assert Application.objects.get().name == "web"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"appName": ""}, "appName"),
        ({"appName": None}, "appName"),
        ({"appName": "n" * 256}, "appName"),
        ({"instanceId": "i" * 256}, "instanceId"),
        ({"strategies": "default"}, "strategies"),
        ({"strategies": [{"name": "default"}]}, "strategies[0]"),
        ({"started": None}, "started"),
        ({"started": "yesterday"}, "started"),
        ({"interval": "often"}, "interval"),
    ],
)
def test_a_registration_with_one_fault_is_refused(sdk: Sdk, change: dict, path: str) -> None:
    answer = sdk.api.post("/api/client/register", registration("web") | change)
    assert answer.status_code == 400
    assert [problem["path"] for problem in answer.json()["details"]] == [path]
    assert answer.json()["name"] == "ValidationError"
    assert not Application.objects.exists()


def test_a_registration_takes_numbers_as_text_and_text_as_numbers(sdk: Sdk) -> None:
    body = registration("web") | {
        "interval": "10",
        "started": 0,
        "platformVersion": 22,
        "yggdrasilVersion": None,
    }
    assert sdk.api.post("/api/client/register", body).status_code == 202


def test_every_fault_of_metrics_is_named(sdk: Sdk) -> None:
    body = metrics("web", ["a", "b"])
    del body["appName"]
    body["bucket"]["stop"] = "x"
    body["bucket"]["toggles"]["a"]["yes"] = -1
    body["bucket"]["toggles"]["b"] = {"yes": "2", "no": "x"}
    answer = sdk.api.post("/api/client/metrics", body)
    assert answer.status_code == 400
    paths = {problem["path"] for problem in answer.json()["details"]}
    assert paths == {"appName", "bucket.stop", "bucket.toggles.a.yes", "bucket.toggles.b.no"}


@pytest.mark.parametrize("body", [[], "x", 1, None])
@pytest.mark.parametrize("path", ["register", "metrics", "metrics/bulk"])
def test_a_body_that_is_no_object_is_refused(sdk: Sdk, path: str, body: object) -> None:
    answer = sdk.api.post(f"/api/client/{path}", body)
    assert (answer.status_code, answer.json()["name"]) == (400, "ValidationError")


def test_known_things_are_not_written_again_within_a_minute(
    standing_clock: datetime, sdk: Sdk, django_assert_num_queries
) -> None:
    sdk.register("web", "w-1", sdkVersion="unleash-node-sdk:6.12.1")
    # The key, then what is known of the application and of the instance.
    with django_assert_num_queries(3) as queries:
        sdk.register("web", "w-1", sdkVersion="unleash-node-sdk:6.12.1")
    assert not any("INSERT" in query["sql"] or "UPDATE" in query["sql"] for query in queries)


def test_bulk_stores_what_an_edge_proxy_gathered(sdk: Sdk) -> None:
    make_flag("checkout", "default")
    now = timezone.now().isoformat()
    applications = [
        {
            "appName": "web",
            "instanceId": "w-1",
            "sdkVersion": "unleash-swift:2.0.0",
            "environment": "development",
        },
        {"appName": "browser", "instanceId": "b-1", "sdkType": "frontend", "projects": ["default"]},
        {"appName": "elsewhere", "instanceId": "e-1", "environment": "production"},
    ]
    counts = [
        {
            "featureName": "checkout",
            "appName": "web",
            "environment": "development",
            "timestamp": now,
            "yes": 2,
        },
        {
            "featureName": "checkout",
            "appName": "else",
            "environment": "production",
            "timestamp": now,
            "yes": 2,
        },
    ]
    answer = sdk.api.post("/api/client/metrics/bulk", {"applications": applications, "metrics": counts})
    assert (answer.status_code, answer.content) == (202, b"")
    instances = ApplicationInstance.objects.order_by("application__name")
    names = instances.values_list("application__name", "sdk_type", "environment")
    assert list(names) == [("browser", "frontend", "development"), ("web", "backend", "development")]
    assert UsageHour.objects.get().yes == 2


def test_a_bad_entry_of_a_bulk_spoils_no_other(sdk: Sdk) -> None:
    make_flag("checkout", "default")
    body = {
        "applications": [{"appName": "x" * 300, "instanceId": "x"}, {"appName": "web", "instanceId": "w-1"}],
        "metrics": [
            {"featureName": "checkout", "appName": "web", "timestamp": timezone.now().isoformat(), "yes": 2},
            {"featureName": "checkout"},
        ],
    }
    answer = sdk.api.post("/api/client/metrics/bulk", body)
    assert answer.status_code == 400
    paths = [problem["path"] for problem in answer.json()["details"]]
    assert paths == ["applications[0].appName", "metrics[1].appName", "metrics[1].timestamp"]
    assert Application.objects.get().name == "web"
    assert UsageHour.objects.get().yes == 2


@pytest.mark.parametrize("body", [{}, {"applications": []}, {"applications": "x", "metrics": []}])
def test_bulk_needs_both_lists(sdk: Sdk, body: dict) -> None:
    assert sdk.api.post("/api/client/metrics/bulk", body).status_code == 400


def test_usage_is_of_the_flag_whatever_projects_the_key_has(shop, sdk: Sdk) -> None:
    flag = make_flag("basket")
    sdk.count("web", ["basket"])
    make_sdk("production").count("web", ["basket"])
    assert set(FlagUsage.objects.values_list("flag_id", "environment")) == {
        (flag.pk, "development"),
        (flag.pk, "production"),
    }


def test_the_flavor_of_an_sdk_is_kept_and_shown(sdk: Sdk) -> None:
    sdk.register("web", sdkFlavor="fastapi", sdkFlavorVersion="1.2.0")
    sdk.count("web", [])
    assert ApplicationInstance.objects.get().sdk_flavor == "fastapi:1.2.0"
    told = client(make_token("admin")).get("/api/admin/metrics/applications/web").json()
    assert told["instances"][0]["sdkFlavor"] == "fastapi:1.2.0"
    sdk.register("plain", sdkFlavorVersion="1.2.0")
    assert ApplicationInstance.objects.get(application__name="plain").sdk_flavor == ""


def bulk(**more: object) -> dict:
    return {"applications": [], "metrics": []} | more


def test_tokens_that_were_used_at_an_edge_proxy_count_as_used(sdk: Sdk) -> None:
    used = [make_token(kind, environment="development", name=kind) for kind in ("frontend", "backend")]
    expired = make_token("admin", expires_at=timezone.now() - timedelta(days=1), name="expired")
    make_token("admin", name="unused")
    answer = sdk.api.post(
        "/api/client/metrics/bulk", bulk(seenTokens=[*used, expired, "*:development.unknown"])
    )
    assert answer.status_code == 202
    seen = ApiToken.objects.filter(
        name__in=["frontend", "backend", "expired", "unused"], seen_at__isnull=False
    )
    assert set(seen.values_list("name", flat=True)) == {"frontend", "backend"}


@pytest.mark.parametrize("tokens", ["x", [{}], ["x" * 1001], ["x"] * 1001])
def test_seen_tokens_that_are_refused(sdk: Sdk, tokens: object) -> None:
    answer = sdk.api.post("/api/client/metrics/bulk", bulk(seenTokens=tokens))
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"].startswith("seenTokens")


def test_a_report_with_an_id_counts_once(sdk: Sdk) -> None:
    make_flag("a", "default")
    metric = {
        "featureName": "a",
        "appName": "web",
        "timestamp": timezone.now().isoformat(),
        "yes": 2,
        "no": 1,
    }
    body = {"applications": [], "metrics": [metric]}

    def send(identifier: str, **headers: str) -> None:
        headers |= {"Flagadmin-Report-Id": identifier} if identifier else {}
        answer = sdk.api.post("/api/client/metrics/bulk", body, headers=headers)
        assert answer.status_code == 202

    for identifier in ("x-0", "x-0", "x-1", "", "", "x-0"):
        send(identifier)
    assert UsageHour.objects.get().yes == 2 * 4
    CountedReport.objects.update(counted_at=timezone.now() - timedelta(days=31))
    forget_reports()
    assert not CountedReport.objects.exists()
