"""Writes the data of another installation, everything in one transaction, or nothing.

A plan is the same work, rolled back, so it shows exactly what would happen.

Moves release templates, and the release plans of flags.

Moves plans after the flags, which have the strategies of their active milestones.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

from django.db import transaction

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.change_checks import Refusal
from flagadmin.core.change_checks.comments import tidy_comment
from flagadmin.core.change_options import changing
from flagadmin.core.db.transactions import run_and_roll_back, run_with_retries, transactional
from flagadmin.core.errors import AppError, Problem, ValidationError
from flagadmin.core.http.logs import request_id
from importer.moving.leave_out import Choice
from importer.moving.reading.installation import Installation
from importer.moving.reading.shapes import MilestoneStrategy, SourceMilestone, SourcePlan, SourceTemplate
from importer.moving.report import Kind, Line, Report
from importer.moving.writing.keeping import (
    DELETED,
    EDITED,
    SYSTEM,
    Edits,
    Refused,
    change_line,
    comment_on_move,
    describe_changes,
    keep,
    read_edits,
    try_alone,
)
from importer.moving.writing.people import (
    find_roles,
    move_access,
    move_groups,
    move_own_things,
    move_people,
    move_roles,
)
from importer.moving.writing.projects import ProjectMove
from importer.moving.writing.settings import move_settings, move_tokens
from importer.moving.writing.shared import SegmentIds, move_shared, move_tags
from importer.moving.writing.traces import move_listed_dates, move_traces
from projects.access import lock_projects
from projects.models import Flag, Project, ProjectEnvironment
from releases.models import ReleasePlan, ReleaseTemplate
from releases.plans.actions import plan_document
from releases.plans.add import BegunPlan, adopt_plan
from releases.plans.queries import FlagPath, find_plan
from releases.templates.actions import create_template, read_document, update_template

Tell = Callable[[str], None]
"""Called with each step that begins."""


def move(
    installation: Installation,
    *,
    write: bool,
    overwrite: bool = False,
    by: str = "",
    tell: Tell = lambda doing: None,
) -> Report:
    """Writes everything new or changed, or only reports it. Objects that exist only here stay unchanged.

    If anything is refused, nothing is written. Edits made here since the last move stay, unless ``overwrite``.
    """
    with _in_one_change(comment_on_move(installation.address, by)):
        work = partial(_move_in_transaction, installation, tell, write=write, overwrite=overwrite)
        return run_with_retries(work)


@contextmanager
def _in_one_change(comment: str) -> Iterator[None]:
    """Groups all events of the move, like those of a request."""
    token = request_id.set(request_id.get() or uuid4().hex)
    try:
        with changing(comment=tidy_comment(comment)):
            yield
    finally:
        request_id.reset(token)


def _move_in_transaction(installation: Installation, tell: Tell, *, write: bool, overwrite: bool) -> Report:
    installation.refused.clear()  # left by an attempt that is repeated
    report = Report(lines=list(installation.left))
    unreadable: list[Problem] = []
    with changing(comes_from_elsewhere=True, keeps_unreadable=True, unreadable=unreadable):
        _move(installation, report, tell, write=write, overwrite=overwrite)
    report.lines += [Line(Kind.NOTE, "value that SDKs cannot read", each.message) for each in unreadable]
    return report


def _move(installation: Installation, report: Report, tell: Tell, *, write: bool, overwrite: bool) -> None:
    # Before the first event: all events have its time, which must not precede another user's change.
    lock_projects(SYSTEM, [project.id for project in installation.projects])
    edits = Edits() if overwrite else read_edits(installation.address)
    _move_all(installation, edits, report, tell)
    if not write or report.is_refused:
        transaction.set_rollback(True)
    elif report.has_work:
        after = {"version": installation.version, "counts": report.counts}
        moved = Event(type=EventType.INSTALLATION_MOVED, subject=installation.address, after=after)
        record(moved, actor=SYSTEM)


def _move_all(installation: Installation, edits: Edits, report: Report, tell: Tell) -> None:
    tell("Comparing what projects share with what is here")
    _attempt("", report, lambda: move_shared(installation, edits))
    _attempt("", report, lambda: _move_people(installation, edits))
    for project in sorted(installation.projects, key=lambda each: each.id):
        tell(f"Comparing {len(project.listed):,} flags of project {project.id} with what is here")
        moving = ProjectMove(installation, project, edits)
        if _attempt(project.id, report, moving.move):
            report.same += moving.same
        else:
            installation.refused.add(project.id)
    _attempt("", report, lambda: move_tags(installation, edits))
    _attempt("", report, lambda: move_templates(installation, edits))
    _attempt("", report, lambda: move_plans(installation, edits))
    _attempt("", report, lambda: move_settings(installation, edits))
    _attempt("", report, lambda: move_listed_dates(installation))
    _attempt("", report, lambda: move_tokens(installation))
    if (hidden := installation.hidden) is not None:
        tell("Copying access, usage and history")
        _attempt("", report, lambda: move_access(installation, hidden, edits))
        _attempt("", report, lambda: move_own_things(installation, hidden))
        _attempt("", report, lambda: move_traces(installation, hidden.database))


def _move_people(installation: Installation, edits: Edits) -> Iterator[Line]:
    """Moves roles before the people who hold them, and groups after their members."""
    hidden = installation.hidden
    if hidden is None:
        yield from move_people(installation, edits, {})
        return
    yield from move_roles(hidden, edits)
    roles = find_roles(hidden)
    yield from move_people(installation, edits, roles)
    yield from move_groups(hidden, edits, roles)


def _attempt(project: str, report: Report, work: Callable[[], Iterable[Line]]) -> bool:
    """Does all of the work or none, and reports it, because later steps may be refused too."""
    subject = f"project {project}" if project else "what projects share"
    choice = str(Choice("project", project)) if project else ""
    try:
        with transaction.atomic():
            lines = transactional(lambda: list(work()))()
    except Refused as refused:
        report.lines += refused.lines
    except Refusal as error:
        detail = error.message
        report.lines.append(Line(Kind.REFUSE, subject, detail, project, choice=choice))
    except AppError as error:
        details = list(map(str, error.details)) or [error.message]
        report.lines += [Line(Kind.REFUSE, subject, detail, project, choice=choice) for detail in details]
    else:
        report.lines += lines
        return True
    return False


MEMBERS = ("id", "title", "parameters", "constraints", "variants")
"""Members of a strategy that are copied unchanged."""
FLAG_NAME = "{{featureName}}"
"""The placeholder for the flag's name in a template, equivalent to a group without a name here."""


def move_templates(installation: Installation, edits: Edits) -> Iterator[Line]:
    ids = SegmentIds(installation)
    moved: set[tuple[str | None, str]] = set()
    projects = {*Project.objects.values_list("id", flat=True)}
    for template in installation.templates:
        if template.project in installation.refused - projects:
            continue
        key, subject = (template.project, template.name), f"release template {template.name}"
        project = template.project or ""
        if template.archived_at is not None:
            yield Line(Kind.NOTE, subject, "is archived and stays there", project)
        elif project and project not in projects:
            yield Line(Kind.CANNOT, subject, f"project {project} is not here", project)
        elif key in moved:
            yield Line(Kind.CANNOT, subject, "another one there has the same name", project)
        else:
            moved.add(key)
            yield from try_alone(subject, partial(_move_template, template, ids, edits), project)


def _move_template(template: SourceTemplate, ids: SegmentIds, edits: Edits) -> Iterator[Line]:
    present = ReleaseTemplate.objects.filter(
        name=template.name, archived_at=None, project=template.project
    ).first()
    values = {
        "name": template.name,
        "description": template.description,
        "milestones": read_milestones(template.milestones, ids),
    }
    return keep(
        f"release template {template.name}",
        present,
        read_document,
        create=partial(create_template, values, project_id=template.project, caller=SYSTEM),
        update=partial(
            update_template, present.pk if present else "", values, project_id=template.project, caller=SYSTEM
        ),
        is_edited=edits.has("release-plan-template-", template.name),
        project=template.project or "",
    )


def read_milestones(
    milestones: Iterable[SourceMilestone], ids: SegmentIds, *, flag: str = ""
) -> list[dict[str, Any]]:
    """Milestones in the form for actions: of a flag's plan or, without a flag, of a template.

    Raises ValidationError if a segment does not exist here.
    """
    return [
        {
            "id": each.id,
            "name": each.name,
            "strategies": [
                _read_strategy(strategy, ids, flag)
                for strategy in sorted(each.strategies, key=lambda each: each.sort_order)
            ],
            "transitionCondition": each.transition and {"intervalMinutes": each.transition.minutes},
        }
        for each in sorted(milestones, key=lambda each: each.sort_order)
    ]


def _read_strategy(strategy: MilestoneStrategy, ids: SegmentIds, flag: str) -> dict[str, Any]:
    document = strategy.model_dump(include={*MEMBERS}, exclude_unset=True)
    document["name"] = strategy.strategy_name
    document["segments"] = ids.translate(strategy.segments)
    if strategy.parameters.get("groupId") == FLAG_NAME:
        document["parameters"] = {**strategy.parameters, "groupId": flag}
    return document


MAX_KEY = 26  # characters of a ULID
PAUSED = (
    "Moved here, where its next milestone would start automatically. Resume it once the plan there has ended."
)
UNNAMED = ("createdAt", "createdByUserId", "reason")
"""Members whose values change here with each move."""


def move_plans(installation: Installation, edits: Edits) -> Iterator[Line]:
    ids, moved = SegmentIds(installation), _list_moved_flags(installation)
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
                _move_plan, plan, place, ids, templates.get(plan.release_plan_template_id, ""), edits, subject
            )
            yield from try_alone(subject, work, project)


def _list_moved_flags(installation: Installation) -> set[str]:
    projects = (each for each in installation.projects if each.id not in installation.refused)
    return {flag.name for project in projects for flag in project.listed}


def _find_templates(installation: Installation) -> dict[str, str]:
    """Keys here by ids there."""
    rows = ReleaseTemplate.objects.filter(archived_at=None).values_list("project", "name", "pk")
    here: dict[tuple[str | None, str], str] = {(project, name): key for project, name, key in rows}
    return {each.id: here.get((each.project, each.name), "") for each in installation.templates}


def _move_plan(
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
        milestones=read_milestones(milestones, ids, flag=plan.feature_name),
        active=active,
        started=[milestone.started_at for milestone in milestones],
        pause=PAUSED if goes_on else "",
    )


def _make_document(plan: ReleasePlan) -> dict[str, object]:
    """The parts that a move without changes preserves, including the active milestone's strategies."""
    document = plan_document(find_plan(plan.flag, plan.environment_id, plan.pk))
    milestones = [{**milestone, "pausedAt": None} for milestone in document["milestones"]]
    kept = {member: value for member, value in document.items() if member not in UNNAMED}
    return kept | {"milestones": milestones, "strategies": plan.strategy_ids}
