"""Adds release plans to flags: from a template, or a strategy in steps."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import QuerySet

from flagadmin.core.audit.events import EventType
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.errors import Conflict, ValidationError, check_problems
from groups.access import Caller
from groups.permissions import Permission
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT
from projects.flags.queries import read_strategy_documents
from projects.models import Flag
from projects.strategies.access import access_strategy
from releases.models import ReleasePlan, ReleaseTemplate
from releases.plans.access import FlagPath, access_flag_in
from releases.plans.documents import plan_document
from releases.plans.queries import UNFINISHED, find_plan, read_plans
from releases.plans.rules import check_rollouts
from releases.plans.steps import record_plan
from releases.templates.actions import insert_milestones
from releases.templates.documents import template_document
from releases.templates.queries import readable_templates
from releases.templates.rules import plan_milestones

CREATE = Permission.CREATE_FEATURE_STRATEGY


@transactional
def add_plan(flag_path: FlagPath, template_key: str, *, caller: Caller) -> ReleasePlan:
    """Adds a plan from a template. None of its milestones is started.

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
    """The one of these with this id, if plans of the project can be made from it. Raises ValidationError."""
    template = templates.filter(pk=key).first()
    if template is None or template.project_id not in (None, project_id):
        raise ValidationError.at("templateId", f"release template {key} not found")
    if template.archived_at is not None:
        raise ValidationError.at("templateId", f"release template {template.name} is archived")
    return template


class Steps(NamedTuple):
    """A strategy in steps: the share of users at each, in per cent, and what each waits for."""

    strategy: Mapping[str, Any]
    rollouts: Sequence[int]
    transition: Mapping[str, Any] | None
    pause_if_broken: bool = False


@transactional
def add_steps(flag_path: FlagPath, strategy_id: str, steps: Steps, *, caller: Caller) -> ReleasePlan:
    """Adds a plan that raises the share of a strategy. With "" as its id, the first step adds it.

    The strategy keeps its id, group and stickiness: nobody who has the flag loses it. None of the steps is started.

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
