"""Bulk operations on flags: the check before archiving, and toggling."""

import pytest

from projects.models import Flag, FlagEnvironment
from tests.support.cast import make_project
from tests.support.flags import add_strategy, depend, make_flag
from tests.support.records import events, refused

SHOP = "/api/admin/projects/shop"
DEVELOPMENT = f"{SHOP}/bulk_features/environments/development"


def post(client, path, *names):
    return client.post(path, {"features": list(names)}, format="json")


def switched_on(environment="development"):
    rows = FlagEnvironment.objects.filter(environment=environment, enabled=True)
    return sorted(rows.values_list("flag__name", flat=True))


@pytest.fixture
def family(shop):
    """``child`` needs ``parent``."""
    depend(make_flag("child"), make_flag("parent"))


def check(client, *names):
    response = post(client, f"{SHOP}/archive/validate", *names)
    assert response.status_code == 200
    return response.json()


def test_a_parent_is_archived_with_its_child_only(api, family):
    assert check(api["member"], "parent") == {
        "parentsWithChildFeatures": ["parent"],
        "hasDeletedDependencies": False,
    }

    assert check(api["member"], "parent", "child", "nope") == {
        "parentsWithChildFeatures": [],
        "hasDeletedDependencies": True,
    }
    assert not Flag.objects.archived().exists()


@pytest.fixture
def flags(shop):
    a, b = make_flag("a"), make_flag("b")
    add_strategy(a)
    make_flag("gone", archived=True)
    make_flag("far", make_project("other"))
    return a, b


def test_switching_many_on_and_off(api, flags):
    response = post(api["member"], f"{DEVELOPMENT}/on", "a", "b")
    assert (response.status_code, response.content) == (200, b"")
    assert switched_on() == ["a", "b"]
    assert [event.feature for event in events("feature-environment-enabled")] == ["a", "b"]
    assert [event.feature for event in events("feature-strategy-add")] == ["b"]

    assert post(api["member"], f"{DEVELOPMENT}/off", "a").status_code == 200
    assert switched_on() == ["b"]
    assert [event.feature for event in events("feature-environment-disabled")] == ["a"]
    refused(post(api["member"], f"{SHOP}/bulk_features/environments/nope/on", "a"), 404, "NotFoundError")


def test_switching_on_with_the_disabled_strategies(api, flags):
    _, b = flags
    add_strategy(b, disabled=True)
    post(api["member"], f"{DEVELOPMENT}/on?shouldActivateDisabledStrategies=true", "b")
    assert [strategy.disabled for strategy in b.strategies.all()] == [False]


@pytest.mark.django_db(transaction=True)
def test_one_that_cannot_be_switched_on_leaves_all_off(api, flags, settings):
    settings.FLAG_ENVIRONMENT_STRATEGIES_LIMIT = 1
    _, b = flags
    add_strategy(b, disabled=True)
    refused(post(api["member"], f"{DEVELOPMENT}/on", "a", "b"), 400, "ValidationError")
    assert switched_on() == []


def test_reviving_and_deleting_one_by_its_name(api, flags):
    assert api["member"].post("/api/admin/archive/revive/gone").status_code == 200
    assert not Flag.objects.get(name="gone").is_archived
    assert post(api["member"], f"{SHOP}/archive", "gone").status_code == 202
    assert api["member"].delete("/api/admin/archive/gone").status_code == 200
    assert not Flag.objects.filter(name="gone").exists()
    assert [event.feature for event in events("feature-revived", "feature-deleted")] == ["gone", "gone"]
    refused(api["member"].delete("/api/admin/archive/nope"), 404, "NotFoundError")
