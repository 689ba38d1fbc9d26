"""Nobody's edit slips in between comparing what was approved and writing it, through any door, on two connections."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from flagadmin.core.change_checks import Refusal
from flagadmin.core.db.transactions import run_and_roll_back
from flagadmin.core.errors import AppError
from groups.access import Caller
from groups.models import User
from projects.flags.dependencies.actions import add_dependency
from projects.flags.environments.actions import set_variants
from projects.models import Dependency, Flag, ProjectEnvironment, Segment, Strategy
from projects.projects.environments import set_default_strategy
from projects.segments.actions import update_segment
from projects.strategies.actions import update_strategy
from releases.models import ReleasePlan, Schedule
from releases.plans.due import take_step
from releases.requests.revert import revert_request
from releases.requests.states import set_state
from releases.schedules.actions import schedule_request
from releases.schedules.due import apply_scheduled
from tests.support.change_requests import enter, guarded, sent, turn
from tests.support.plain_features import client_features
from tests.support.plans import PLACE, planned, strategy_of
from tests.support.playground import live_flag
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, race

pytestmark = pytest.mark.django_db(transaction=True)
ONE = [{"contextName": "userId", "operator": "IN", "values": ["1"]}]
EDITOR, ADMIN = Caller.system("An editor"), Caller.system()
Work = Callable[[], Any]


def tried(work: Work) -> Work:
    def run() -> bool:
        try:
            work()
        except (AppError, Refusal):
            return False
        return True

    return run


@pytest.fixture
def cart(shop: Any) -> Flag:
    """Off, with a segment, variants and a parent."""
    segment = Segment.objects.create(name="few", constraints=ONE)
    flag = live_flag("cart", enabled=False, strategies=[{"name": "default", "segments": [segment]}])
    live_flag("base", enabled=True, strategies=[{"name": "default"}])
    Dependency.objects.create(flag=flag, parent=Flag.objects.get(name="base"))
    guarded(1)
    return flag


def variants(name: str) -> None:
    made = [{"name": name, "weight": 1000, "weightType": "variable", "stickiness": "default"}]
    set_variants("shop", "cart", "production", made, caller=EDITOR)


EDITS: dict[str, Work] = {
    "segment": lambda: update_segment(Segment.objects.get().pk, {"constraints": []}, caller=EDITOR),
    "strategy": lambda: update_strategy(*PLACE, str(strategy_of().pk), {"segments": []}, caller=EDITOR),
    "variants": lambda: variants("evil"),
    "parent": lambda: add_dependency(
        "shop", "cart", {"feature": "base", "enabled": True, "variants": ["never"]}, caller=EDITOR
    ),
    "default strategy": lambda: set_default_strategy(
        "shop", "production", {"name": "default", "disabled": False}, caller=EDITOR
    ),
}


def by_hand(api: Any) -> Work:
    made = sent(api["owner"], turn(True))
    assert enter(api["admin"], made, "Approved").status_code == 200
    return partial(set_state, "shop", made["id"], "Applied", caller=ADMIN)


def by_revert(api: Any) -> Work:
    ProjectEnvironment.objects.update(required_approvals=None)
    api["admin"].post("/api/admin/projects/shop/features/cart/environments/production/on")
    guarded(1)
    made = sent(api["owner"], turn(False))
    for state in ("Approved", "Applied"):
        assert enter(api["admin"], made, state).status_code == 200
    request = revert_request("shop", made["id"], caller=ADMIN)
    assert enter(api["admin"], {"id": request.pk}, "Approved").status_code == 200
    return partial(set_state, "shop", request.pk, "Applied", caller=ADMIN)


def by_schedule(api: Any) -> Work:
    made = sent(api["owner"], turn(True))
    assert enter(api["admin"], made, "Approved").status_code == 200
    at = timezone.now() + timedelta(hours=1)
    schedule_request("shop", made["id"], at, caller=Caller(user=User.objects.get(username="admin")))
    Schedule.objects.update(at=timezone.now())
    return partial(apply_scheduled, Schedule.objects.get().pk)


def by_step(api: Any) -> Work:
    """The second milestone has the segment; the first has not, so nothing uses it yet."""
    row = strategy_of()
    Strategy.objects.update(
        name="flexibleRollout", parameters={"rollout": "5", "stickiness": "default", "groupId": "cart"}
    )
    segments = list(row.segments.all())
    row.segments.clear()
    ProjectEnvironment.objects.update(required_approvals=None)
    plan = planned(5, 100)
    second = plan.milestones.all()[1]
    second.strategies = [each | {"segments": [segments[0].pk]} for each in second.strategies]
    second.save()
    guarded(1)
    start = {"planId": plan.pk, "milestoneId": plan.milestones.all()[0].pk}
    made = sent(api["owner"], {"feature": "cart", "action": "startMilestone", "payload": start}, turn(True))
    for state in ("Approved", "Applied"):
        assert enter(api["admin"], made, state).status_code == 200
    ReleasePlan.objects.update(since=timezone.now() - timedelta(days=2))
    return partial(take_step, ReleasePlan.objects.select_related("flag", "active", "by").get())


def read_payload() -> Any:
    """The flags that are on, as SDKs get them, with the constraints of their segments."""
    features, segments = client_features(["shop"], "production", inline_segments=False)
    on = [feature for feature in features if feature["enabled"]]
    used = {key for feature in on for each in feature["strategies"] for key in each.get("segments") or ()}
    return on, [segment for segment in segments if segment["id"] in used]


def read_after(work: Work) -> Any:
    work()
    return read_payload()


DOORS = {"hand": by_hand, "revert": by_revert, "schedule": by_schedule, "step": by_step}


@pytest.mark.exhaustive
@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
@pytest.mark.parametrize("first", ["edit", "door"])
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("door", DOORS)
def test_no_edit_slips_in(api, people, cart, door, edit, first, stop):
    work = DOORS[door](api)
    before, approved = read_payload(), run_and_roll_back(partial(read_after, work))
    assert approved != before
    works = [tried(EDITS[edit]), tried(work)]
    race(*(works if first == "edit" else works[::-1]), stop=stop)
    assert read_payload() in (before, approved)
