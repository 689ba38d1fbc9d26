"""Takes over a flag's release plan that was begun in another installation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.errors import Conflict, ValidationError, check_problems
from groups.access import Caller
from groups.permissions import Permission
from projects.flags.queries import read_strategy_documents
from projects.models import Flag, Strategy
from releases.models import Milestone, ReleasePlan
from releases.plans.access import FlagPath, access_flag_in
from releases.plans.documents import plan_document
from releases.plans.drafts import without_identity
from releases.plans.queries import UNFINISHED, find_plan, read_plans
from releases.plans.steps import finish_if_over, record_plan, save_plan
from releases.templates.actions import insert_milestones
from releases.templates.rules import plan_milestones

State = ReleasePlan.State


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunPlan:
    """`key`: a ULID. `active`: the position of the active milestone, None if none was started.

    `started`: the start times of milestones by position. `pause`: why it does not continue automatically here.
    """

    key: str
    name: str
    description: str
    template_key: str
    milestones: Sequence[Mapping[str, Any]]
    active: int | None
    started: Sequence[datetime | None]
    pause: str


@transactional
def adopt_plan(flag_path: FlagPath, begun: BegunPlan, *, caller: Caller) -> ReleasePlan:
    """Replaces the plan with this key, if there is one. The flag's strategies do not change.

    Raises NotFound, NoAccess, Conflict if the flag has another unfinished one, and ValidationError, also if the flag
    lacks the strategies of the active milestone.
    """
    flag = access_flag_in(flag_path, Permission.CREATE_FEATURE_STRATEGY, caller)
    others = read_plans(flag, flag_path.environment).filter(state__in=UNFINISHED)
    if others.exclude(pk=begun.key).exists():
        raise Conflict(f"{flag.name} has another release plan in {flag_path.environment}.")
    planned, problems = plan_milestones(begun.milestones, project_id=flag_path.project, flag=flag)
    check_problems(problems)
    plan = ReleasePlan(id=begun.key, flag=flag, environment_id=flag_path.environment, author=caller.user)
    plan.name, plan.description, plan.template_key = begun.name, begun.description, begun.template_key
    if begun.active is not None:
        plan.strategy_ids = _find_own(flag, flag_path, planned[begun.active]["strategies"])
    ReleasePlan.objects.filter(pk=begun.key, flag=flag).delete()
    plan.save(force_insert=True)
    rows = insert_milestones({"plan": plan}, planned)
    for row, started_at in zip(rows, begun.started, strict=True):
        row.started_at = started_at
    Milestone.objects.bulk_update(rows, ["started_at"])
    if begun.active is not None:
        _stand_at(plan, rows[begun.active], begun.pause, caller)
    plan = find_plan(flag, flag_path.environment, plan.pk)
    record_plan(EventType.RELEASE_PLAN_ADDED, plan, caller, after=plan_document(plan))
    return plan


def _find_own(flag: Flag, flag_path: FlagPath, strategies: list[Document]) -> list[str]:
    """The ids of the flag's strategies that equal these, which get the flag's titles."""
    rows = Strategy.objects.filter(flag=flag, environment=flag_path.environment)
    free = read_strategy_documents(rows.order_by("sort_order", "created_at", "pk"))
    ids = []
    for number, strategy in enumerate(strategies):
        own = next((each for each in free if _what_it_does(each) == _what_it_does(strategy)), None)
        if own is None:
            message = f"{flag.name} does not have the strategies of the active milestone"
            raise ValidationError.at("milestones", message)
        free.remove(own)
        ids.append(str(own["id"]))
        strategies[number] = {**own, "id": strategy["id"], "sortOrder": strategy["sortOrder"]}
    return ids


def _what_it_does(strategy: Mapping[str, Any]) -> Document:
    document = without_identity(strategy)
    return document | {"title": "", "segments": sorted(document["segments"])}


def _stand_at(plan: ReleasePlan, milestone: Milestone, pause: str, caller: Caller) -> None:
    now = timezone.now()
    plan.active, plan.since, plan.numbers_from = milestone, milestone.started_at or now, now
    plan.state, plan.by, plan.by_name = State.RUNNING, caller.user, caller.name
    finish_if_over(plan)
    if plan.state == State.RUNNING and pause:
        plan.state, plan.reason, plan.paused_at = State.PAUSED, pause, now
    save_plan(plan, now)
