"""The lifecycle stages of flags, and how usage changes them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from projects.models import FlagLastSeen, LifecycleStage, UsageHour
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.records import events, refused

FLAG = "/api/admin/projects/shop/features/cart"


@pytest.fixture
def cart(api, shop):
    api["member"].post("/api/admin/projects/shop/features", {"name": "cart"}, format="json")
    return shop.flags.get(name="cart")


def stages(client):
    return [stage["stage"] for stage in client.get(f"{FLAG}/lifecycle").json()]


def see(flag, environment, at=None):
    FlagLastSeen.objects.update_or_create(
        flag=flag, environment=environment, defaults={"seen_at": at or timezone.now()}
    )


def dates(flag):
    return dict(flag.lifecycle.values_list("stage", "entered_at"))


def test_from_creation_to_the_archive_and_back(api, cart):
    client = api["member"]
    assert stages(client) == ["initial"]
    see(cart, "development")
    assert stages(client) == ["initial", "pre-live"]
    see(cart, "production")
    see(cart, "production")
    assert stages(client) == ["initial", "pre-live", "live"]
    client.delete(FLAG)
    assert stages(client) == ["initial", "pre-live", "live", "archived"]
    client.post("/api/admin/projects/shop/revive", {"features": ["cart"]}, format="json")
    assert stages(client) == ["initial", "pre-live", "live"]
    assert all(stage["enteredStageAt"] for stage in client.get(f"{FLAG}/lifecycle").json())

    refused(api["outsider"].get(f"{FLAG}/lifecycle"), 404, "NotFoundError")
    refused(api["member"].get(f"{FLAG}x/lifecycle"), 404, "NotFoundError")


def test_no_stage_is_dated_before_an_earlier_one(api, cart):
    long_ago = timezone.now() - timedelta(days=365)
    see(cart, "development", long_ago)
    see(cart, "production", long_ago)
    entered = dates(cart)
    assert entered["initial"] <= entered["pre-live"] <= entered["live"]
    assert entered["pre-live"] > long_ago


def test_stages_reached_by_one_report_keep_their_order(api, cart):
    now = timezone.now()
    late = now + timedelta(minutes=5)
    FlagLastSeen.objects.bulk_create(
        FlagLastSeen(flag=cart, environment=environment, seen_at=at)
        for environment, at in (("development", late), ("production", now))
    )
    assert dates(cart)["pre-live"] == dates(cart)["live"] == late


def test_only_environments_of_ours_move_a_flag_and_never_back_to_pre_live(api, cart):
    see(cart, "elsewhere")
    assert stages(api["member"]) == ["initial"]
    see(cart, "production")
    see(cart, "development")
    assert stages(api["member"]) == ["initial", "live"]


@for_each("stage", ["completed", "archived"])
def test_usage_does_not_bring_a_flag_back_from_its_end(api, cart, stage):
    LifecycleStage.objects.create(flag=cart, stage=stage, entered_at=timezone.now())
    see(cart, "development")
    see(cart, "production")
    assert stages(api["member"]) == ["initial", stage]


def test_a_revived_flag_goes_live_with_its_next_usage(api, cart):
    client = api["member"]
    client.delete(FLAG)
    see(cart, "production")
    client.post("/api/admin/projects/shop/revive", {"features": ["cart"]}, format="json")
    assert stages(client) == ["initial"]
    see(cart, "production")
    assert stages(client) == ["initial", "live"]


def test_many_at_once_in_one_statement(api, cart):
    other = make_flag("other")
    now = timezone.now()
    FlagLastSeen.objects.bulk_create(
        FlagLastSeen(flag=flag, environment=environment, seen_at=now)
        for flag in (cart, other)
        for environment in ("development", "production")
    )
    assert stages(api["member"]) == ["initial", "pre-live", "live"]
    assert other.lifecycle.count() == 2


def test_how_often_it_was_asked_for_within_the_hour(api, cart):
    now = timezone.now()
    for application, age, yes in ((1, 5, 3), (2, 10, 4), (1, 90, 100)):
        UsageHour.objects.create(
            flag_id=cart.pk,
            environment="production",
            hour=now - timedelta(minutes=age),
            application_id=application,
            yes=yes,
            no=1,
        )
    development, production = api["reader"].get(FLAG).json()["environments"]
    assert (development["yes"], development["no"]) == (0, 0)
    assert (production["yes"], production["no"]) == (7, 2)
    document = api["reader"].get("/api/admin/search/features").json()["features"][0]
    assert [environment["yes"] for environment in document["environments"]] == [0, 7]
    assert api["reader"].get(f"{FLAG}/environments/production").json()["yes"] == 7


def complete(client, **body):
    return client.post(f"{FLAG}/lifecycle/complete", body, format="json")


def test_completed_with_an_outcome_and_not(api, cart):
    client = api["member"]
    response = complete(client, status="kept", statusValue="blue")
    assert (response.status_code, response.content) == (200, b"")
    stage = client.get(f"{FLAG}/lifecycle").json()[-1]
    assert (stage["stage"], stage["status"]) == ("completed", "kept")
    first = cart.lifecycle.get(stage="completed")
    assert first.status_value == "blue"

    assert complete(client, status="discarded").status_code == 200
    again = cart.lifecycle.get(stage="completed")
    assert (again.status, again.entered_at) == ("discarded", first.entered_at)

    for _ in range(2):
        assert client.post(f"{FLAG}/lifecycle/uncomplete").status_code == 200
    assert stages(client) == ["initial"]
    kinds = [event.type for event in events("feature-completed", "feature-uncompleted")]
    assert kinds == ["feature-completed", "feature-completed", "feature-uncompleted"]

    record = refused(complete(api["member"], status="forgotten"), 400, "ValidationError")
    assert record["details"][0]["path"] == "status"


def test_flags_are_counted_by_their_current_stage(api, shop):
    now = timezone.now()
    for name, project, stages in (
        ("new", "shop", ["initial"]),
        ("used", "shop", ["initial", "pre-live"]),
        ("done", "shop", ["initial", "live", "completed"]),
        ("elsewhere", "default", ["initial", "live"]),
        ("gone", "shop", ["initial", "archived"]),
    ):
        flag = make_flag(name, project, archived=name == "gone")
        for stage in stages:
            LifecycleStage.objects.create(flag=flag, stage=stage, entered_at=now)
    count = "/api/admin/lifecycle/count"
    everywhere = {"initial": 1, "preLive": 1, "live": 1, "completed": 1, "archived": 1}
    assert api["viewer"].get(count).json() == everywhere
    assert api["reader"].get(count).json() == everywhere | {"live": 0}
    assert api["outsider"].get(count).json() == dict.fromkeys(everywhere, 0)
