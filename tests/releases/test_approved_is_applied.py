"""What is applied answers as what was approved, or is refused: random requests, and random edits in between.

Each edit is an API call of the weakest person who may make it: a member of the project, where that is enough. Requests are
applied by hand, at their time or as the revert of another one, and approved release plans take their steps.

The answers are those of Yggdrasil, the engine of most of Unleash's SDKs, on the payload that SDKs get.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction
from django.utils import timezone
from yggdrasil_engine.engine import UnleashEngine

from flagadmin.core.change_checks import Refusal
from flagadmin.core.db.transactions import run_and_roll_back
from flagadmin.core.errors import AppError, Conflict
from groups.access import Caller
from projects.models import Dependency, FlagEnvironment, ProjectEnvironment, Segment, Strategy
from releases.changes import KINDS
from releases.derive import ProposedChange
from releases.models import ChangeRequest, ReleasePlan, ReleaseTemplate, Schedule
from releases.plans.due import take_step
from releases.requests.apply import make_changes
from releases.requests.propose import add_changes
from releases.requests.revert import revert_request
from releases.requests.states import set_state
from releases.schedules.actions import schedule_request
from releases.schedules.due import apply_scheduled
from tests.support import import_bodies
from tests.support.cast import make_user
from tests.support.change_requests import SHOP, reviewer
from tests.support.examples import examples
from tests.support.plain_features import client_features
from tests.support.random_proposals import FLAGS, Proposals, flags

__all__ = ["flags"]  # a fixture
CONTEXTS = [
    {"userId": user, "sessionId": "s", "properties": {"country": country}}
    for user in ("1", "2", "3", "77", "901")
    for country in ("NO", "DE")
]
NOT_POSSIBLE = (AppError, Refusal, IndexError, ObjectDoesNotExist)
AUTHOR = Caller.system()
DOORS = ("hand", "schedule", "step", "revert")
Door = Callable[[], Any]


class Edits(Proposals):
    """Random API calls about production of the shop, which the gate lets through or refuses."""

    focus: Sequence[str] = FLAGS
    """The flags that most edits are of."""
    aim = ""
    """A part of the paths of most edits."""

    def __init__(self, seed: int, api: Any) -> None:
        super().__init__(seed)
        permissions = "PROJECT_SETTINGS_WRITE", "PROJECT_DEFAULT_STRATEGY_WRITE"
        settings = reviewer("settings", *permissions, environment=None)
        self.clients = {"member": api["member"], "editor": api["editor"], "settings": settings}

    def variants(self) -> list[dict[str, Any]]:
        return [variant | {"stickiness": "default"} for variant in super().variants()]

    def name(self) -> str:
        return self.random.choice(self.focus if self.random.random() < 0.7 else FLAGS)

    def edit(self) -> str:
        name = self.name()
        edits = self.list_edits(name)
        aimed = [edit for edit in edits if self.aim in edit[2]] if self.random.random() < 0.8 else []
        who, method, path, body = self.random.choice(aimed or edits)
        with transaction.atomic():  # actions inside a transaction leave it to their callers to roll back
            answer = getattr(self.clients[who], method)(path, body, format="json")
            transaction.set_rollback(answer.status_code >= 300)
        assert answer.status_code < 500, (path, body, answer.content)
        return f"{method} {path}" if answer.status_code < 300 else ""

    def list_edits(self, name: str) -> list[tuple[str, str, str, Any]]:
        flag, parent, on = f"{SHOP}/features/{name}", self.random.choice(FLAGS), self.random.random() < 0.5
        place = f"{flag}/environments/production"
        rows = Strategy.objects.filter(flag__name=name, environment="production").order_by("sort_order", "pk")
        keys = [str(key) for key in rows.values_list("pk", flat=True)]
        above = Dependency.objects.filter(flag__name=name).values_list("parent__name", flat=True)
        new = {key: value for key, value in self.strategy().items() if value is not None}
        switch, to = f"bulk_features/environments/production/{'on' if on else 'off'}", "production"
        member = [
            ("post", f"{place}/strategies", new),
            *(("put", f"{place}/strategies/{key}", new) for key in keys),
            *(("delete", f"{place}/strategies/{key}", None) for key in keys[:1]),
            (
                "post",
                f"{place}/strategies/set-sort-order",
                [{"id": k, "sortOrder": n} for n, k in enumerate(keys[::-1])],
            ),
            ("put", f"{place}/variants", self.variants()),
            ("patch", f"{place}/variants", [{"op": "remove", "path": "/0"}]),
            ("post", f"{SHOP}/{switch}", {"features": [name]}),
            ("post", f"{flag}/dependencies", {"feature": parent, "enabled": on}),
            *(("delete", f"{flag}/dependencies/{each}", None) for each in above),
            ("patch", flag, [{"op": "replace", "path": "/impressionData", "value": on}]),
            ("post", f"{SHOP}/archive", {"features": [name]}),
            ("post", f"{SHOP}/revive", {"features": FLAGS}),
            ("post", f"{flag}/clone", {"name": f"{name}-copy-{self.random.random()}"}),
            ("post", f"{SHOP}/environments/promote", {"from": "development", "to": to, "features": [name]}),
            ("post", "/api/admin/features-batch/import", self.imported(name, parent, "production")),
            ("post", "/api/admin/features-batch/import", self.imported(name, parent, "development")),
        ]
        segment = {"name": f"segment-{self.random.randrange(4)}", "constraints": self.constraints()}
        field = {"name": "userId", "stickiness": on, "legalValues": [{"value": "1"}]}
        milestones = [{"name": "a", "strategies": [new | {"disabled": False}]}]
        template = ReleaseTemplate.objects.earliest("name").pk
        others = [
            ("editor", "put", f"/api/admin/segments/{self.segment()}", segment),
            (
                "editor",
                "put",
                f"/api/admin/release-plan-templates/{template}",
                {"name": "T", "milestones": milestones},
            ),
            ("editor", "put", "/api/admin/context/userId", field),
            (
                "settings",
                "post",
                f"{SHOP}/environments/production/default-strategy",
                new | {"disabled": False},
            ),
            ("settings", "put", f"{SHOP}/settings", {"defaultStickiness": "random" if on else "default"}),
        ]
        return [*(("member", *call) for call in member), *others]

    def imported(self, name: str, parent: str, environment: str) -> Any:
        listed = [import_bodies.strategy(name, parameters={"rollout": str(self.random.randrange(101))})]
        above = [{"feature": name, "dependencies": [{"feature": parent}]}]
        return import_bodies.body(name, environment=environment, featureStrategies=listed, dependencies=above)

    def aim_at_switch(self, enabled: bool) -> ProposedChange:
        """Switches a flag that is not so yet. Most edits are of what it answers while it is on."""
        places = FlagEnvironment.objects.filter(flag__name__in=FLAGS, environment="production")
        names = places.exclude(enabled=enabled).order_by("flag__name").values_list("flag__name", flat=True)
        name = self.random.choice(names)
        self.aim = f"{name}/environments/production/"
        return ProposedChange(name, "updateEnabled", {"enabled": enabled})

    def send(self, *changes: ProposedChange) -> ChangeRequest:
        actions = self.random.choices(list(KINDS), k=self.random.randrange(1, 4))
        proposed = changes or [self.propose(action) for action in actions]
        request = add_changes("shop", "production", proposed, caller=AUTHOR)
        return set_state("shop", request.pk, "In review", caller=AUTHOR)


def read_answers() -> dict[str, Any]:
    """Whether each flag is on, its variant with its payload, and whether SDKs report it, for each context.

    One that is gone is off.
    """
    features, segments = client_features(["shop"], "production", inline_segments=False)
    engine = UnleashEngine()
    engine.take_state(json.dumps({"version": 2, "features": features, "segments": segments}))
    reported = {feature["name"]: feature["impressionData"] for feature in features}
    found = {}
    for name in FLAGS:
        for number, context in enumerate(CONTEXTS):
            is_on = bool(engine._do_is_enabled(name, context))
            found[f"{name} {number}"] = (
                f"{engine._do_get_variant(name, context)} {reported[name]}" if is_on else ""
            )
    return found


def foresee_answers(act: Door) -> dict[str, Any]:
    def act_and_read() -> dict[str, Any]:
        act()
        return read_answers()

    answers: dict[str, Any] = run_and_roll_back(act_and_read)
    return answers


def enter_door(door: str, chance: Edits, admin: Caller, *, is_aimed: bool) -> tuple[Door, Door]:
    """Has something approved. Returns what makes it whatever was approved, and what applies it.

    If it is aimed, the flag is off until it is applied: edits of it are let through, and change what was approved.
    """
    chance.aim = ""
    if door == "step":
        return enter_plan(chance, admin, is_aimed=is_aimed)
    request = chance.send(*([chance.aim_at_switch(door != "revert")] if is_aimed else []))
    set_state("shop", request.pk, "Approved", caller=admin)
    if door == "revert":
        set_state("shop", request.pk, "Applied", caller=admin)
        request = revert_request("shop", request.pk, caller=AUTHOR)
        set_state("shop", request.pk, "Approved", caller=admin)
    chance.focus = [change.feature for change in request.changes.all() if change.feature] or FLAGS
    apply: Door = partial(set_state, "shop", request.pk, "Applied", caller=admin)
    if door == "schedule":
        at = timezone.now() + timedelta(hours=1)
        schedule = schedule_request("shop", request.pk, at, caller=admin).schedule
        apply = partial(apply_due_schedule, schedule)
    return partial(make_changes, request, AUTHOR), apply


def apply_due_schedule(schedule: Schedule) -> None:
    Schedule.objects.filter(pk=schedule.pk).update(at=timezone.now())
    apply_scheduled(schedule.pk)


def enter_plan(chance: Edits, admin: Caller, *, is_aimed: bool) -> tuple[Door, Door]:
    name = FLAGS[1]
    plan = ReleasePlan.objects.get(flag__name=name)
    first, second = plan.milestones.all()
    transition = {"sourceMilestone": first.pk, "transitionCondition": {"intervalMinutes": 1}}
    start = {"planId": plan.pk, "milestoneId": first.pk}
    changes = [
        ProposedChange(name, "changeMilestoneProgression", transition),
        ProposedChange(name, "startMilestone", start),
    ]
    if is_aimed:  # at a segment that only the next milestone uses
        later = {"planId": plan.pk, "milestoneId": second.pk, "id": second.strategies[0]["id"]}
        segments = [Segment.objects.get(name="segment-1").pk]
        changes.append(ProposedChange(name, "updateMilestoneStrategy", {**later, "segments": segments}))
        chance.aim = f"/segments/{segments[0]}"
    request = chance.send(*changes)
    for state in ("Approved", "Applied"):
        set_state("shop", request.pk, state, caller=admin)
    chance.focus = [name]
    path = (
        f"{SHOP}/features/{name}/environments/production/release-plans/{plan.pk}/milestones/{second.pk}/start"
    )
    by_hand = chance.random.random() < 0.3

    def step() -> None:
        ReleasePlan.objects.filter(pk=plan.pk).update(since=timezone.now() - timedelta(hours=1))
        if by_hand:
            chance.clients["member"].post(path)  # refused if it is not as approved
        else:
            take_step(ReleasePlan.objects.get(pk=plan.pk))

    return step, step


def play(door: str, chance: Edits, admin: Caller, *, is_aimed: bool) -> str:
    """Something is approved, then edited up to five times, then applied. Returns how it ended."""
    make, apply = enter_door(door, chance, admin, is_aimed=is_aimed)
    approved, before = foresee_answers(make), read_answers()
    edits = [
        path for path in (chance.edit() for _ in range(chance.random.randrange(2 * is_aimed, 6))) if path
    ]
    assert read_answers() == before, f"the gate let {edits} through"
    try:
        apply()
    except Conflict:
        assert edits, "what nobody has edited is refused"
    now = read_answers()
    if now == before != approved:
        return f"{door} refused"
    unlike = {key: (approved[key], now[key]) for key in approved if approved[key] != now[key]}
    assert not unlike, f"{door} after {edits}"
    return f"{door} applied after edits" if edits else f"{door} applied"


def play_rounds(seed: int, rounds: int, api: Any) -> Counter[str]:
    ProjectEnvironment.objects.filter(environment="production").update(required_approvals=1)
    admin, chance, ends = Caller(user=make_user("rita", root_role=1)), Edits(seed, api), Counter[str]()
    for number in range(rounds):
        with transaction.atomic():
            try:
                ends[play(DOORS[number % 4], chance, admin, is_aimed=number % 8 >= 4)] += 1
            except NOT_POSSIBLE:
                ends["not possible"] += 1
            transaction.set_rollback(True)
    return ends


def test_what_is_applied_answers_as_what_was_approved(flags: None, api: Any) -> None:
    ends = play_rounds(3, 16, api)
    assert any(end.endswith("refused") for end in ends), ends
    assert any("applied" in end for end in ends), ends


@pytest.mark.exhaustive
@pytest.mark.parametrize(("seed", "rounds"), [(100 + n, examples(320)) for n in range(3)])
def test_so_it_does_for_many_requests(flags: None, api: Any, seed: int, rounds: int) -> None:
    ends = play_rounds(seed, rounds, api)
    assert sum(ends.values()) - ends["not possible"] > ends["not possible"] / 4, ends
    for end in ("refused", "applied", "applied after edits"):
        assert any(each.endswith(f" {end}") for each in ends), ends
