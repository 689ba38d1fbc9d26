"""GET /api/admin/projects/:projectId/status: resources, activity, health and lifecycle of a project."""

from datetime import datetime, timedelta

from django.utils import timezone

from projects.models import Flag, LifecycleStage, Segment
from tests.support.cast import make_token
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.records import refused

STATUS = "/api/admin/projects/shop/status"


def enter(flag: Flag, **days_ago: int) -> None:
    """The flag entered each stage (``pre_live``: pre-live) this many days ago."""
    for stage, days in days_ago.items():
        entered_at = timezone.now() - timedelta(days=days)
        LifecycleStage.objects.create(flag=flag, stage=stage.replace("_", "-"), entered_at=entered_at)


def test_a_project_without_anything_and_with_resources_of_its_own_even_archived(api, shop):
    assert api["viewer"].get(STATUS).json() == {
        "resources": {"members": 3, "apiTokens": 0, "segments": 0},
        "activityCountByDate": [],
        "health": {"current": 100},
        "technicalDebt": {"current": 0},
        "lifecycleSummary": {
            "initial": {"averageDays": None, "currentFlags": 0},
            "preLive": {"averageDays": None, "currentFlags": 0},
            "live": {"averageDays": None, "currentFlags": 0},
            "completed": {"averageDays": None, "currentFlags": 0},
            "archived": {"currentFlags": 0, "last30Days": 0},
        },
        "staleFlags": {"total": 0},
    }

    for project in (shop, None):
        Segment.objects.create(name=f"of {project}", project=project)
    make_token("backend", projects=["shop"], environment="development")
    make_token("backend", projects=["shop", "default"], environment="production")
    make_token("backend", environment="production")
    assert api["viewer"].get(STATUS).json()["resources"] == {"members": 3, "apiTokens": 2, "segments": 1}

    shop.archived_at = timezone.now()
    shop.save()
    assert api["reader"].get(STATUS).status_code == 200


def test_events_are_counted_by_day(standing_clock: datetime, api, shop):
    for name in ("first", "second"):
        api["member"].post("/api/admin/projects/shop/features", {"name": name})
    api["editor"].post("/api/admin/projects/default/features", {"name": "elsewhere"})
    today = timezone.now().date().isoformat()
    [day] = api["viewer"].get(STATUS).json()["activityCountByDate"]
    assert day == {"date": today, "count": 2}


def test_flags_are_counted_in_their_current_stage(api, shop):
    enter(make_flag("new"), initial=1)
    enter(make_flag("used"), initial=9, pre_live=4)
    enter(make_flag("busy"), initial=7, pre_live=4, live=1)
    enter(make_flag("done"), initial=5, completed=2)
    enter(make_flag("gone", archived=True), initial=3, archived=0)
    old = make_flag("long-gone", archived=True)
    Flag.objects.filter(pk=old.pk).update(archived_at=timezone.now() - timedelta(days=31))
    enter(make_flag("elsewhere", "default"), initial=100, pre_live=1)
    assert api["viewer"].get(STATUS).json()["lifecycleSummary"] == {
        "initial": {"averageDays": 4, "currentFlags": 1},  # 5, 3, 3 and 3 days
        "preLive": {"averageDays": 3, "currentFlags": 1},
        "live": {"averageDays": None, "currentFlags": 1},
        "completed": {"averageDays": None, "currentFlags": 1},
        "archived": {"currentFlags": 2, "last30Days": 1},
    }


def test_stale_flags_and_flags_beyond_their_lifetime_are_debt(api, shop):
    make_flag("good")
    make_flag("tired", stale=True)
    make_flag("old", type="release", created_at=timezone.now() - timedelta(days=100))
    make_flag("forever", type="kill-switch", created_at=timezone.now() - timedelta(days=1000))
    status = api["viewer"].get(STATUS).json()
    assert (status["health"], status["technicalDebt"]) == ({"current": 50}, {"current": 50})
    assert status["staleFlags"] == {"total": 2}


@for_each("path", [STATUS, "/api/admin/projects/nope/status"])
def test_a_project_that_cannot_be_read_is_not_found(api, shop, path):
    refused(api["outsider"].get(path), 404, "NotFoundError")
