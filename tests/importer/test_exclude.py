"""Which parts of an import body are removed with an excluded flag, and which stay."""

import pytest

from importer.body.schemas import read_body
from importer.plan.build import plan_import
from importer.plan.entries import exclude_flags
from projects.models import Segment
from tests.support.import_bodies import body, strategy, switch

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("place", ["features", "featureEnvironments"])
def test_a_missing_segment_goes_with_the_flag_whose_older_place_uses_it(place, callers):
    used = [{"name": "default", "segments": [7]}]
    document = body("plain", "old", segments=[{"id": 7, "name": "vip"}], featureEnvironments=[switch("old")])
    (document["data"]["features"][1] if place == "features" else document["data"]["featureEnvironments"][0])[
        "strategies"
    ] = used

    plan = plan_import(read_body(document), caller=callers("member"))
    assert plan.flags["old"].action == "refuse"
    assert plan.flags["plain"].action == "create"
    [issue] = plan.issues
    assert "Used by: old." in issue.message

    rest = plan_import(exclude_flags(read_body(document), ["old"]), caller=callers("member"))
    assert rest.can_be_applied
    assert list(rest.flags) == ["plain"]


def test_a_segment_that_another_flag_uses_too_stays(callers):
    Segment.objects.create(name="vip")
    document = body(
        "one",
        "two",
        segments=[{"id": 7, "name": "vip"}],
        featureStrategies=[strategy("one", segments=[7]), strategy("two", segments=[7])],
    )
    plan = plan_import(exclude_flags(read_body(document), ["two"]), caller=callers("member"))
    assert plan.can_be_applied
    assert len(plan.flags["one"].after["strategies"][0]["segments"]) == 1


def test_a_flag_named_like_an_environment_takes_no_other_flags_switch_with_it(callers):
    document = body("development", "one")
    document["data"]["featureEnvironments"] = [
        {"name": "development", "featureName": "one", "enabled": True},
        {"name": "development", "enabled": True},
    ]
    plan = plan_import(exclude_flags(read_body(document), ["development"]), caller=callers("member"))
    assert list(plan.flags) == ["one"]
    assert plan.flags["one"].after["enabled"]
