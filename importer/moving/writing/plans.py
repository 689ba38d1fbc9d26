"""Moves the release plans of flags, after the flags, which have the strategies of their active milestones."""

from collections.abc import Iterator
from functools import partial

from flagadmin.core.db.transactions import run_and_roll_back
from flagadmin.core.errors import ValidationError
from importer.moving.reading.installation import Installation
from importer.moving.reading.release_shapes import SourcePlan
from importer.moving.report import Kind, Line
from importer.moving.writing.edits import Edits
from importer.moving.writing.keeping import DELETED, EDITED, SYSTEM, change_line, describe_changes, try_alone
from importer.moving.writing.shared import SegmentIds
from importer.moving.writing.templates import read_milestones
from projects.models import Flag, ProjectEnvironment
from releases.models import ReleasePlan, ReleaseTemplate
from releases.plans.access import FlagPath
from releases.plans.adopt import BegunPlan, adopt_plan
from releases.plans.documents import plan_document
from releases.plans.queries import find_plan

MAX_KEY = 26  # characters of a ULID
PAUSED = (
    "Moved here, where its next milestone would start automatically. Resume it once the plan there has ended."
)
UNNAMED = ("createdAt", "createdByUserId", "reason")
"""Members whose values are new here with each move."""


def move_plans(installation: Installation, edits: Edits) -> Iterator[Line]:
    ids, moved = SegmentIds(installation), installation.flag_names
    flags = Flag.objects.active().filter(name__in={plan.feature_name for plan in installation.plans} & moved)
    projects = dict(flags.values_list("name", "project"))
    used = {*ProjectEnvironment.objects.values_list("project", "environment")}
    templates = _find_templates(installation)
    for plan in installation.plans:
        subject = f"release plan {plan.name} of {plan.feature_name} in {plan.environment}"
        project = projects.get(plan.feature_name, "")
        if (project, plan.environment) not in used:
            if plan.feature_name in moved:
                yield Line(
                    Kind.CANNOT, subject, "its flag is archived or not used there", project, plan.feature_name
                )
        elif len(plan.id) > MAX_KEY:
            yield Line(
                Kind.CANNOT, subject, f"its id has more than {MAX_KEY} characters", project, plan.feature_name
            )
        else:
            place = FlagPath(project, plan.feature_name, plan.environment)
            work = partial(
                _move, plan, place, ids, templates.get(plan.release_plan_template_id, ""), edits, subject
            )
            yield from try_alone(subject, work, project)


def _find_templates(installation: Installation) -> dict[str, str]:
    """Keys here by ids there."""
    rows = ReleaseTemplate.objects.filter(archived_at=None).values_list("project", "name", "pk")
    here: dict[tuple[str | None, str], str] = {(project, name): key for project, name, key in rows}
    return {each.id: here.get((each.project, each.name), "") for each in installation.templates}


def _move(
    plan: SourcePlan, place: FlagPath, ids: SegmentIds, template: str, edits: Edits, subject: str
) -> Iterator[Line]:
    present = ReleasePlan.objects.filter(pk=plan.id, flag__name=plan.feature_name).first()
    is_edited = edits.has_flag(plan.feature_name, plan.environment)
    if present is None and is_edited:
        yield Line(Kind.CONFLICT, subject, DELETED, place.project, plan.feature_name)
        return
    begun = _read(plan, ids, template)
    before = _make_document(present) if present else {}
    try:
        after = run_and_roll_back(lambda: _make_document(adopt_plan(place, begun, caller=SYSTEM)))
    except ValidationError:
        if not is_edited:
            raise
        yield Line(Kind.CONFLICT, subject, EDITED, place.project, plan.feature_name)
        return
    if before == after:
        return
    if not is_edited:
        adopt_plan(place, begun, caller=SYSTEM)
    if present is None:
        yield Line(Kind.CREATE, subject, begun.pause and PAUSED, place.project)
    else:
        changes = describe_changes(before, after)
        yield change_line(subject, changes, place.project, is_edited=is_edited, flag=plan.feature_name)


def _read(plan: SourcePlan, ids: SegmentIds, template: str) -> BegunPlan:
    milestones = sorted(plan.milestones, key=lambda each: each.sort_order)
    keys = [milestone.id for milestone in milestones]
    active = keys.index(plan.active_milestone_id) if plan.active_milestone_id in keys else None
    goes_on = active is not None and milestones[active].transition is not None
    return BegunPlan(
        key=plan.id,
        name=plan.name,
        description=plan.description,
        template_key=template,
        milestones=read_milestones(milestones, ids),
        active=active,
        started=[milestone.started_at for milestone in milestones],
        pause=PAUSED if goes_on else "",
    )


def _make_document(plan: ReleasePlan) -> dict[str, object]:
    """Returns what is the same after a move that changes nothing: the strategies that the active milestone has, too."""
    document = plan_document(find_plan(plan.flag, plan.environment_id, plan.pk))
    milestones = [{**milestone, "pausedAt": None} for milestone in document["milestones"]]
    kept = {member: value for member, value in document.items() if member not in UNNAMED}
    return kept | {"milestones": milestones, "strategies": plan.strategy_ids}
