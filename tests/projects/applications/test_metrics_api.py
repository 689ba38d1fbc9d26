"""Applications and usage across projects: who uses a flag, what an application uses, deleting one."""

from datetime import datetime, timedelta
from urllib.parse import quote

import pytest

from flagadmin.core.audit.models import AuditEvent
from projects.models import Application, ApplicationInstance, FlagUsage, ProjectApplication
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.sdk import Sdk, make_sdk

pytestmark = pytest.mark.django_db


@pytest.fixture
def usage(standing_clock: datetime, shop, sdk: Sdk) -> None:
    make_flag("checkout", "default")
    make_flag("basket")
    sdk.register("web", "w-1", sdkVersion="unleash-go:1.0.0")
    sdk.count("web", ["checkout", "basket"], "w-1", yes=3, no=1)
    sdk.count("jobs", ["checkout"], "j-1", yes=2, no=0)
    make_sdk("production").count("web", ["checkout"], "w-1", at=standing_clock - timedelta(hours=5))


def test_who_uses_a_flag_and_how_often_by_the_hour(api, usage: None) -> None:
    body = api["viewer"].get("/api/admin/client-metrics/features/checkout").json()
    assert body["seenApplications"] == ["jobs", "web"]
    places = [(user["appName"], user["environment"]) for user in body["usage"]]
    assert places[-1] == ("web", "production")
    assert set(places) == {("jobs", "development"), ("web", "development"), ("web", "production")}
    assert [(u["environment"], u["yes"], u["no"]) for u in body["lastHourUsage"]] == [("development", 5, 1)]

    url = "/api/admin/client-metrics/features/checkout/raw"
    data = api["viewer"].get(url).json()["data"]
    assert [(row["appName"], row["environment"], row["yes"]) for row in data] == [
        ("web", "production", 3),
        ("jobs", "development", 2),
        ("web", "development", 3),
    ]
    assert len(api["viewer"].get(f"{url}?hoursBack=2").json()["data"]) == 2

    for caller, flag in (("reader", "checkout"), ("admin", "nope")):
        answer = api[caller].get(f"/api/admin/client-metrics/features/{flag}")
        assert (answer.status_code, answer.json()["name"]) == (404, "NotFoundError")
    assert api["reader"].get("/api/admin/client-metrics/features/basket").status_code == 200


@for_each("hours", ["0", "49", "x", "-1", "1.5", "9999999999"])
def test_hours_that_are_not_kept(api, usage: None, hours: str) -> None:
    answer = api["viewer"].get(f"/api/admin/client-metrics/features/checkout/raw?hoursBack={hours}")
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "hoursBack")


@for_each("name", ["team/web", "team\nweb"])
def test_an_application_of_any_name(api, sdk: Sdk, shop, name: str) -> None:
    make_flag("checkout")
    sdk.count(name, ["checkout"], "i-1")
    url = f"/api/admin/metrics/applications/{quote(name, safe='')}"
    assert api["viewer"].get(f"{url}/overview").json()["featureCount"] == 1
    instances = api["viewer"].get(
        f"/api/admin/metrics/instances/{quote(name, safe='')}/environment/development"
    )
    assert [instance["instanceId"] for instance in instances.json()["instances"]] == ["i-1"]
    assert api["admin"].delete(url).status_code == 200
    assert not Application.objects.exists()


def test_applications_their_instances_and_who_sees_them(api, usage: None) -> None:
    body = api["viewer"].get("/api/admin/metrics/applications").json()
    assert body["total"] == 2
    assert [application["appName"] for application in body["applications"]] == ["jobs", "web"]
    assert body["applications"][1]["usage"] == [
        {"project": "default", "environments": ["development", "production"]},
        {"project": "shop", "environments": ["development"]},
    ]

    body = api["reader"].get("/api/admin/metrics/applications").json()
    assert [a["appName"] for a in body["applications"]] == ["web"]
    assert body["applications"][0]["usage"] == [{"project": "shop", "environments": ["development"]}]
    assert api["reader"].get("/api/admin/metrics/applications/jobs").status_code == 404
    assert api["outsider"].get("/api/admin/metrics/applications").json()["total"] == 0

    body = api["viewer"].get("/api/admin/metrics/applications/web").json()
    assert [(i["instanceId"], i["environment"], i["sdkVersion"]) for i in body["instances"]] == [
        ("w-1", "development", "unleash-go:1.0.0"),
        ("w-1", "production", None),
    ]
    assert [flag["name"] for flag in body["seenToggles"]] == ["basket", "checkout"]
    assert [strategy["name"] for strategy in body["strategies"]] == ["default"]
    assert [
        f["name"] for f in api["reader"].get("/api/admin/metrics/applications/web").json()["seenToggles"]
    ] == ["basket"]

    body = api["viewer"].get("/api/admin/metrics/instances/web/environment/production").json()
    assert [instance["instanceId"] for instance in body["instances"]] == ["w-1"]


@for_each(
    ("query", "expected"),
    [
        ("?query=WE", ["web"]),
        ("?query=x,job", ["jobs"]),
        ("?sortOrder=desc&limit=1", ["web"]),
        ("?offset=2", []),
    ],
)
def test_all_applications_are_searched_and_paged(api, usage: None, query: str, expected: list[str]) -> None:
    body = api["viewer"].get(f"/api/admin/metrics/applications{query}").json()
    assert [application["appName"] for application in body["applications"]] == expected


def test_forgetting_an_application(api, usage: None, sdk: Sdk) -> None:
    answer = api["admin"].delete("/api/admin/metrics/applications/nope")
    assert (answer.status_code, answer.content) == (200, b"")
    assert Application.objects.count() == 2
    assert not AuditEvent.objects.filter(type="application-deleted").exists()

    answer = api["editor"].delete("/api/admin/metrics/applications/web")
    assert (answer.status_code, answer.content) == (200, b"")
    left = Application.objects.get()
    assert left.name == "jobs"
    for rows in (ApplicationInstance, FlagUsage, ProjectApplication):
        assert set(rows.objects.values_list("application_id", flat=True)) == {left.pk}
    event = AuditEvent.objects.get(type="application-deleted")
    assert (event.subject, event.actor_name) == ("web", "editor")
    sdk.count("web", ["checkout"])
    assert Application.objects.count() == 2
