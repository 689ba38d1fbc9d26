"""Adds release plans to flags: from a template, or one strategy in steps.

The form of a strategy saved in steps becomes a plan whose first step is taken at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from django.db.models import QuerySet
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.change_checks import Refusal
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.errors import Conflict, ValidationError, check_problems
from groups.access import Caller, Permission
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT
from projects.access import access_strategy
from projects.flags.queries import read_strategy_documents
from projects.models import Flag, Strategy
from projects.states import get_content
from projects.strategies.actions import add_strategy
from releases.derive import EnvironmentChanges, ProposedChange
from releases.models import Milestone, ReleasePlan, ReleaseTemplate
from releases.plans.actions import Steps, check_rollouts, plan_document, start_milestone
from releases.plans.forms import read_pause, read_steps
from releases.plans.queries import UNFINISHED, FlagPath, access_flag_in, find_plan, get_flag_path, read_plans
from releases.plans.steps import finish_if_over, record_plan, save_plan
from releases.safeguards.actions import set_safeguard
from releases.templates.actions import insert_milestones, plan_milestones
from releases.templates.queries import readable_templates, template_document

CREATE = Permission.CREATE_FEATURE_STRATEGY


@transactional
def add_plan(flag_path: FlagPath, template_key: str, *, caller: Caller) -> ReleasePlan:
    """Adds a plan from a template, without starting a milestone.

    Raises NotFound, NoAccess, Conflict if there is an unfinished one, ValidationError.
    """
    flag = access_flag_in(flag_path, CREATE, caller)
    template = find_usable_template(readable_templates(caller), template_key, flag_path.project)
    document = template_document(template)
    for milestone in document["milestones"]:
        milestone["id"] = ""
        for strategy in milestone["strategies"]:
            strategy["id"] = ""
    plan = ReleasePlan(name=template.name, description=template.description, template_key=template.pk)
    return _insert(plan, flag, flag_path, document["milestones"], caller)


def find_usable_template(templates: QuerySet[ReleaseTemplate], key: str, project_id: str) -> ReleaseTemplate:
    """The template with this id, if the project can use it. Raises ValidationError."""
    template = templates.filter(pk=key).first()
    if template is None or template.project_id not in (None, project_id):
        raise ValidationError.at("templateId", f"release template {key} not found")
    if template.archived_at is not None:
        raise ValidationError.at("templateId", f"release template {template.name} is archived")
    return template


@transactional
def add_steps(flag_path: FlagPath, strategy_id: str, steps: Steps, *, caller: Caller) -> ReleasePlan:
    """Adds a plan that raises the percentage of a strategy. With "" as its id, the first step adds it.

    The strategy keeps its id, group and stickiness, so that no user loses the flag. No step is started.

    Raises NotFound, NoAccess, Conflict if there is an unfinished plan, ValidationError.
    """
    flag = access_flag_in(flag_path, CREATE, caller)
    check_rollouts(steps.rollouts)
    stored: Mapping[str, Any] = {}
    if strategy_id:
        [stored] = read_strategy_documents([access_strategy(flag, flag_path.environment, strategy_id)])
    values: Document = {**stored, **steps.strategy, "id": "", "disabled": False}
    parameters = {**(stored.get("parameters") or {}), **(steps.strategy.get("parameters") or {})}
    if values.get("name") != FLEXIBLE_ROLLOUT:
        raise ValidationError.at("strategy.name", f"must be {FLEXIBLE_ROLLOUT}, which has a share of users")
    milestones = [
        {
            "name": f"{rollout} %",
            "strategies": [{**values, "parameters": {**parameters, "rollout": str(rollout)}}],
            "transitionCondition": steps.transition,
        }
        for rollout in steps.rollouts
    ]
    name = " → ".join(map(str, steps.rollouts)) + " %"
    plan = ReleasePlan(name=name, strategy_ids=[strategy_id] if strategy_id else [])
    plan.pause_if_broken = steps.pause_if_broken
    return _insert(plan, flag, flag_path, milestones, caller)


def _insert(
    plan: ReleasePlan, flag: Flag, flag_path: FlagPath, milestones: Sequence[Document], caller: Caller
) -> ReleasePlan:
    if read_plans(flag, flag_path.environment).filter(state__in=UNFINISHED).exists():
        raise Conflict(
            f"{flag.name} has a release plan in {flag_path.environment} that is not done. Remove it first."
        )
    planned, problems = plan_milestones(milestones, project_id=flag_path.project, flag=flag)
    check_problems(problems)
    plan.flag, plan.environment_id, plan.author = flag, flag_path.environment, caller.user
    plan.save(force_insert=True)
    insert_milestones({"plan": plan}, planned)
    plan = find_plan(flag, flag_path.environment, plan.pk)
    record_plan(EventType.RELEASE_PLAN_ADDED, plan, caller, after=plan_document(plan))
    return plan


# In steps ---------------------------------------------------------------------------------------------------

NOT_IN_STEPS = "Only one strategy with a share of users can be rolled out in steps. Nothing was saved."


@transactional
def save_in_steps(
    places: Sequence[EnvironmentChanges], form: Mapping[str, str], *, caller: Caller
) -> ReleasePlan:
    """Adds a plan and starts it, or does nothing. Raises ValidationError, and the errors of both."""
    plan, others = add_in_steps(places, form, caller=caller)
    first = plan.milestones.all()[0]
    try:
        for change in others:
            add_strategy(*get_flag_path(plan), change.payload, caller=caller)
        return start_milestone(get_flag_path(plan), plan.pk, first.pk, caller=caller)
    except Refusal as error:
        raise ValidationError(f"Nothing was saved. {error.message}") from error


def add_in_steps(
    places: Sequence[EnvironmentChanges], form: Mapping[str, str], *, caller: Caller
) -> tuple[ReleasePlan, Sequence[ProposedChange]]:
    """A plan for the form's changes, not started, and the changes to make with its first step: a form that narrows a
    strategy may keep the old one for everyone else. Raises ValidationError, and the errors of adding a plan.
    """
    moves = "reorderStrategy"  # the kept one gets the place of the other, after it
    changes = [(place, change) for place in places for change in place.changes if change.action != moves]
    updates = [each for each in changes if each[1].action == "updateStrategy"]
    [(changed, change)] = updates if len(updates) == 1 else changes if len(changes) == 1 else _refuse_steps()
    others = [other for _, other in changes if other is not change]
    if change.action not in ("addStrategy", "updateStrategy") or any(
        (other.action, other.feature) != ("addStrategy", change.feature) for other in others
    ):
        _refuse_steps()
    flag_path = FlagPath(changed.project, change.feature, changed.environment)
    values = get_content(change.payload)
    strategy = str(change.payload.get("id", ""))
    if strategy:
        place = Strategy.objects.values_list("sort_order", flat=True).get(pk=strategy)
        others = [other._replace(payload={**other.payload, "sortOrder": place}) for other in others]
    steps, safeguard = read_steps(form, values), read_pause(form)
    plan = add_steps(flag_path, strategy, steps, caller=caller)
    if safeguard is not None:
        plan = set_safeguard(flag_path, plan.pk, safeguard, caller=caller)
    return plan, others


def _refuse_steps() -> NoReturn:
    raise ValidationError(NOT_IN_STEPS)


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
    document = get_content(strategy)
    return document | {"title": "", "segments": sorted(document["segments"])}


def _stand_at(plan: ReleasePlan, milestone: Milestone, pause: str, caller: Caller) -> None:
    now = timezone.now()
    plan.active, plan.since, plan.numbers_from = milestone, milestone.started_at or now, now
    plan.state, plan.by, plan.by_name = State.RUNNING, caller.user, caller.name
    finish_if_over(plan)
    if plan.state == State.RUNNING and pause:
        plan.state, plan.reason, plan.paused_at = State.PAUSED, pause, now
    save_plan(plan, now)
