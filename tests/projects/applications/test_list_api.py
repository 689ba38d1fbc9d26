"""GET /api/admin/projects/:projectId/applications: content, order and refusals."""

from datetime import timedelta

import pytest
from django.utils import timezone

from projects.models import ApplicationInstance, Environment, Flag, FlagUsage, ProjectApplication
from tests.support.applications import listing, names
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.sdk import Sdk, make_sdk

pytestmark = pytest.mark.django_db


def make_app(sdk: Sdk, name: str, *, instances: int = 1, sdk_version: str = "unleash-go:1.0.0") -> None:
    """An application that asks for flag ``checkout``."""
    for number in range(instances):
        sdk.register(name, f"{name}-{number}", sdkVersion=sdk_version)
    sdk.count(name, ["checkout"], f"{name}-0")


@pytest.fixture
def checkout(db: None) -> Flag:
    return make_flag("checkout", "default")


@pytest.fixture
def production(db: None) -> Sdk:
    return make_sdk("production", projects=["default"])


def test_a_record(api, checkout: Flag, sdk: Sdk, production: Sdk) -> None:
    for instance, version in (("i-2", "node:5.10.0"), ("i-10", "node:5.9.0"), ("i-1", "go:4.1.0")):
        sdk.register("web", instance, sdkVersion=version)
    sdk.count("web", ["checkout"], "i-1")
    production.count("web", ["checkout"], "p-1")
    answer = listing(api)
    assert list(answer) == ["total", "applications"]
    record = answer["applications"][0]
    assert list(record)[:4] == ["name", "environments", "instances", "sdks"]
    last_seen = record.pop("lastSeen")
    assert last_seen.endswith("Z")
    assert record == {
        "name": "web",
        "environments": ["development", "production"],
        "instances": ["i-1", "i-10", "i-2", "p-1"],
        "sdks": [
            {"name": "go", "versions": ["4.1.0"]},
            {"name": "node", "versions": ["5.9.0", "5.10.0"]},
        ],
        "instanceCount": 4,
    }
    assert answer["total"] == 1


def test_metrics_alone_are_usage(api, checkout: Flag, sdk: Sdk) -> None:
    assert listing(api) == {"total": 0, "applications": []}

    sdk.register("web")
    assert names(api) == []
    sdk.count("web", ["checkout"], "i-1")
    assert listing(api)["applications"][0]["sdks"] == []


# Who belongs ----------------------------------------------------------------------------------------------


def test_only_environments_that_asked_for_flags_count(api, checkout: Flag, sdk: Sdk, production: Sdk) -> None:
    sdk.register("web", "d-1", sdkVersion="java:9.2.0")
    production.count("web", ["checkout"], "d-2")
    record = listing(api)["applications"][0]
    assert (record["environments"], record["instances"], record["sdks"]) == (["production"], ["d-2"], [])


def test_the_project_is_that_of_the_flag_not_of_the_key(api, shop, checkout: Flag, sdk: Sdk) -> None:
    make_flag("basket")
    sdk.count("web", ["basket"])
    assert names(api) == []
    assert names(api, project="shop") == ["web"]


def test_usage_moves_with_its_flag_and_leaves_what_others_give(api, shop, checkout: Flag, sdk: Sdk) -> None:
    make_app(sdk, "web")
    Flag.objects.filter(name="checkout").update(project="shop")
    assert names(api) == []
    assert names(api, project="shop") == ["web"]
    assert listing(api, project="shop")["applications"][0]["sdks"] == [
        {"name": "unleash-go", "versions": ["1.0.0"]}
    ]

    Flag.objects.filter(name="checkout").update(project="default")
    make_flag("other", "default")
    sdk.count("web", ["other"])
    Flag.objects.filter(name="checkout").update(project="shop")
    assert names(api) == names(api, project="shop") == ["web"]


def test_usage_goes_with_a_deleted_flag_and_is_not_that_of_a_new_one(api, checkout: Flag, sdk: Sdk) -> None:
    make_app(sdk, "web")
    Flag.objects.update(archived_at=timezone.now())
    assert names(api) == ["web"]

    checkout.delete()
    assert names(api) == []
    assert not FlagUsage.objects.exists()
    make_flag("checkout", "default")
    assert names(api) == []


def test_usage_goes_with_its_environment(api, checkout: Flag, sdk: Sdk) -> None:
    Environment.objects.create(name="staging")
    staging = make_sdk("staging")
    staging.count("web", ["checkout"], "s-1")
    staging.count("only-there", ["checkout"], "s-2")
    sdk.count("web", ["checkout"], "d-1")
    Environment.objects.get(name="staging").delete()
    [record] = listing(api)["applications"]
    assert (record["name"], record["environments"], record["instances"]) == ("web", ["development"], ["d-1"])


# Instances ------------------------------------------------------------------------------------------------


def test_an_sdk_that_runs_nowhere_any_more_is_not_found(api, checkout: Flag, sdk: Sdk) -> None:
    make_app(sdk, "web")
    sdk.register("web", "old", sdkVersion="unleash-php:1.0.0")
    age("old", days=8)
    assert names(api, "?query=php") == []
    assert [s["name"] for s in listing(api)["applications"][0]["sdks"]] == ["unleash-go"]

    sdk.register("web", "web-0", sdkVersion="unleash-node-sdk:6.12.1")
    assert names(api, "?query=unleash-go") == []
    assert names(api, "?query=NODE-SDK:6.12") == ["web"]


def test_instances_are_those_of_the_last_seven_days(api, checkout: Flag, sdk: Sdk) -> None:
    make_app(sdk, "web", instances=3)
    age("web-1", days=8)
    record = listing(api)["applications"][0]
    assert (record["instances"], record["instanceCount"]) == (["web-0", "web-2"], 2)
    sdk.count("web", [], "web-1")
    assert listing(api)["applications"][0]["instances"] == ["web-0", "web-1", "web-2"]


def age(instance: str, *, days: int) -> None:
    """As if that instance had not been heard of since."""
    seen_at = timezone.now() - timedelta(days=days)
    ApplicationInstance.objects.filter(instance_id=instance).update(seen_at=seen_at)
    ProjectApplication.objects.update(oldest_seen_at=seen_at)


def test_a_large_fleet_is_counted_and_cut(api, checkout: Flag, sdk: Sdk, settings) -> None:
    settings.APPLICATION_INSTANCES_LISTED = 2
    make_app(sdk, "web", instances=5)
    record = listing(api)["applications"][0]
    assert (record["instances"], record["instanceCount"]) == (["web-0", "web-1"], 5)


def test_one_instance_in_two_environments_is_one(api, checkout: Flag, sdk: Sdk, production: Sdk) -> None:
    for each in (sdk, production):
        each.count("web", ["checkout"], "same")
    record = listing(api)["applications"][0]
    assert (record["instances"], record["instanceCount"]) == (["same"], 1)


# Pages and sorting ----------------------------------------------------------------------------------------

NAMES = ["10-app", "App", "_under", "app", "äpple"]


@pytest.fixture
def five(checkout: Flag, sdk: Sdk, production: Sdk) -> None:
    """Names of odd characters, with 1 to 5 instances."""
    for count, name in enumerate(NAMES, start=1):
        make_app(sdk, name, instances=count, sdk_version=f"unleash-go:1.{count}.0")
    production.count("App", ["checkout"], "App-0")
    sdk.register("app", "other", sdkVersion="unleash-java:1.0.0")


@for_each(
    ("query", "first"),
    [
        ("", NAMES),  # in the order of code points
        ("?sortBy=appName&sortOrder=desc", NAMES[::-1]),
        # Lists by their length, and then by name in both orders.
        ("?sortBy=environments&sortOrder=desc", ["App"]),
        ("?sortBy=instances", ["10-app"]),
        ("?sortBy=sdks", ["10-app", "App", "_under", "äpple", "app"]),
        ("?sortBy=sdks&sortOrder=desc", ["app", "10-app", "App", "_under", "äpple"]),
        *((f"?sortBy={key}&sortOrder=desc", NAMES[::-1]) for key in ("createdAt", "name", "bogus")),
    ],
)
def test_order(api, five: None, query: str, first: list[str]) -> None:
    assert names(api, query)[: len(first)] == first


def test_last_seen_sorts(api, five: None) -> None:
    ProjectApplication.objects.filter(name="_under").update(last_seen_at=timezone.now() - timedelta(days=1))
    assert names(api, "?sortBy=lastSeen")[0] == "_under"
    assert names(api, "?sortBy=lastSeen&sortOrder=desc")[-1] == "_under"


@for_each(
    ("query", "expected"),
    [
        ("?limit=2", ["10-app", "App"]),
        ("?limit=2&offset=3", ["app", "äpple"]),
        ("?offset=4&limit=1000", ["äpple"]),
        ("?offset=5", []),
        ("?offset=99999999999999999999", []),
        ("?limit=&offset=&sortBy=&sortOrder=&query=", NAMES),
    ],
)
def test_pages_and_their_total(api, five: None, query: str, expected: list[str]) -> None:
    answer = listing(api, query)
    assert [application["name"] for application in answer["applications"]] == expected
    assert answer["total"] == 5


def test_fifty_make_a_page(api, checkout: Flag, sdk: Sdk) -> None:
    for number in range(53):
        sdk.count(f"app-{number:02}", ["checkout"])
    answer = listing(api)
    assert (len(answer["applications"]), answer["total"]) == (50, 53)


def test_the_number_of_statements_does_not_grow(api, five: None, django_assert_num_queries) -> None:
    # Key with rights, project, stale lines, page with its total, instances.
    client = api["viewer"]
    client.get("/api/admin/projects/default/applications")
    with django_assert_num_queries(5):
        client.get("/api/admin/projects/default/applications")


# Refusals -------------------------------------------------------------------------------------------------


@for_each(
    ("query", "path", "text"),
    [
        ("limit=0", "limit", "1 to 1000"),
        ("limit=-1", "limit", "1 to 1000"),
        ("limit=1001", "limit", "1 to 1000"),
        ("limit=2.5", "limit", "1 to 1000"),
        ("limit=abc", "limit", "1 to 1000"),
        ("limit=1_0", "limit", "1 to 1000"),
        ("limit=٣", "limit", "1 to 1000"),
        ("offset=-1", "offset", "0 or greater"),
        ("offset=1.5", "offset", "0 or greater"),
        ("offset=Infinity", "offset", "0 or greater"),
        ("sortOrder=DESC", "sortOrder", "asc, desc"),
        ("sortOrder=desc&sortOrder=asc", "sortOrder", "once"),
        ("query[a]=b", "query[a]", "limit, offset, query, sortBy, sortOrder"),
        ("query=" + ",".join("x" * 101), "query", "100"),
    ],
)
def test_anything_else_is_refused(api, shop, query: str, path: str, text: str) -> None:
    answer = api["viewer"].get(f"/api/admin/projects/default/applications?{query}")
    assert answer.status_code == 400
    assert answer.json()["name"] == "ValidationError"
    assert [problem["path"] for problem in answer.json()["details"]] == [path]
    assert text in answer.json()["details"][0]["message"]


def test_every_problem_is_named_at_once(api, shop) -> None:
    answer = api["viewer"].get("/api/admin/projects/default/applications?limit=0&sortOrder=x&bogus=1")
    assert {problem["path"] for problem in answer.json()["details"]} == {"limit", "sortOrder", "bogus"}


@for_each("project", ["nope", "*", "DEFAULT", "a%2Fb"])
def test_an_unknown_project(api, project: str) -> None:
    answer = api["admin"].get(f"/api/admin/projects/{project}/applications")
    assert (answer.status_code, answer.json()["name"]) == (404, "NotFoundError")
