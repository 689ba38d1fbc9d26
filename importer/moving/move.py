"""Writes what was read from another installation: what projects share, then each project in a transaction of its own.

A plan is the same work, undone at its end: it says exactly what would happen.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from django.db import transaction

from flagadmin.core.change_checks import Refusal
from flagadmin.core.change_checks.comments import commenting
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import AppError
from groups.access import Caller
from groups.models import ApiToken, StartUpKey
from groups.tokens import hash_secret
from importer.apply.execute import import_body
from importer.body.schemas import read_body
from importer.models import ImportRun
from importer.moving.reading import (
    Installation,
    SourceField,
    SourceProject,
    SourceSegment,
)
from importer.moving.report import Kind, Line, Report
from importer.moving.tokens import Malformed, read_secrets
from importer.plan.build import plan_import
from importer.plan.import_plan import Action, Plan
from importer.report.document import plan_document
from projects.context_fields.actions import create_context_field, update_context_field
from projects.context_fields.documents import context_field_document
from projects.environments.actions import create_environment, update_environment
from projects.models import (
    ContextField,
    Environment,
    Project,
    ProjectEnvironment,
    Segment,
    StrategyType,
    TagType,
)
from projects.projects.actions import create_project, update_project
from projects.projects.environments import add_environment, checked_strategy, set_default_strategy
from projects.projects.queries import environment_document, settings_document
from projects.segments.actions import create_segment, update_segment
from projects.segments.documents import segment_document
from projects.strategies.strategy_type_documents import strategy_type_document
from projects.strategies.strategy_types import create_strategy_type, update_strategy_type
from projects.tag_types.actions import create_tag_type, update_tag_type
from projects.tag_types.documents import tag_type_document
from projects.tokens.actions import declared_scope, store_token
from projects.tokens.pending import Places

Lines = list[Line]
MAX_PROBLEMS = 100
MAX_SHOWN = 120  # characters of a value
SYSTEM = Caller.system()


class _Refused(Exception):
    """Nothing of this is written. Its lines say why."""

    def __init__(self, lines: Lines) -> None:
        super().__init__(lines)
        self.lines = lines


def move(installation: Installation, *, write: bool) -> Report:
    """Writes what is new or changed, or only says what that would be. What exists here only stays as it is."""
    report = Report(lines=list(installation.left))
    with commenting(f"Moved from {installation.address}"):
        if write:
            _move_all(installation, report)
        else:
            with transaction.atomic():
                _move_all(installation, report)
                transaction.set_rollback(True)
    return report


def _move_all(installation: Installation, report: Report) -> None:
    if not _attempt("", report, partial(_move_shared, installation)):
        return
    for project in installation.projects:
        _attempt(project.id, report, partial(_move_project, installation, project, report))
    _attempt("", report, partial(_move_tokens, installation))


def _attempt(project: str, report: Report, work: Callable[[], Lines]) -> bool:
    """Does all of the work, or nothing, and reports it."""
    subject = f"project {project}" if project else "what projects share"
    try:
        if transaction.get_connection().in_atomic_block:
            with transaction.atomic():  # a plan: what is refused leaves nothing for the next project
                lines = work()
        else:
            lines = work()
    except _Refused as refused:
        report.lines += refused.lines
    except Refusal as error:
        report.lines.append(Line(Kind.REFUSE, subject, error.as_app_error().message, project))
    except AppError as error:
        details = [f"{problem.path}: {problem.message}" for problem in error.details] or [error.message]
        report.lines += [Line(Kind.REFUSE, subject, detail, project) for detail in details]
    else:
        report.lines += lines
        return True
    return False


# What projects share ---------------------------------------------------------------------------------------


@transactional
def _move_shared(installation: Installation) -> Lines:
    lines: Lines = []
    for environment in installation.environments:
        name = environment.name
        values = {
            "type": environment.type,
            "enabled": environment.enabled,
            "sort_order": environment.sort_order,
        }
        lines += _keep(
            f"environment {name}",
            Environment.objects.filter(name=name).first(),
            environment_document,
            create=partial(create_environment, values | {"name": name}, caller=SYSTEM),
            update=partial(update_environment, name, values, caller=SYSTEM),
        )
    for tag_type in installation.tag_types:
        name = tag_type.name
        values = {"description": tag_type.description or "", "icon": tag_type.icon, "color": tag_type.color}
        lines += _keep(
            f"tag type {name}",
            TagType.objects.filter(name=name).first(),
            tag_type_document,
            create=partial(create_tag_type, values | {"name": name}, caller=SYSTEM),
            update=partial(update_tag_type, name, values, caller=SYSTEM),
        )
    lines += _move_strategy_types(installation)
    for field in installation.fields:
        lines += _move_field(field, None)
    for segment in installation.segments:
        if segment.project is None:
            lines += _move_segment(segment)
    return lines


def _move_strategy_types(installation: Installation) -> Iterator[Line]:
    for kind in installation.strategy_types:
        present = StrategyType.objects.filter(name=kind.name).first()
        if present is not None and present.built_in:
            continue
        if not kind.editable:
            yield Line(Kind.CANNOT, f"strategy type {kind.name}", "is built in there and unknown here")
            continue
        values = {
            "title": kind.title or "",
            "description": kind.description or "",
            "parameters": kind.parameters,
            "deprecated": kind.deprecated,
        }
        yield from _keep(
            f"strategy type {kind.name}",
            present,
            strategy_type_document,
            create=partial(create_strategy_type, values | {"name": kind.name}, caller=SYSTEM),
            update=partial(update_strategy_type, kind.name, values, caller=SYSTEM),
        )


def _move_field(field: SourceField, project: str | None) -> Iterator[Line]:
    present = ContextField.objects.filter(name=field.name).first()
    subject = f"context field {field.name}"
    if present is not None and present.project_id != project:
        owner = f"project {present.project_id}" if present.project_id else "all projects"
        raise _Refused([Line(Kind.REFUSE, subject, f"belongs to {owner} here", project or "")])
    values: dict[str, Any] = {
        "description": field.description,
        "stickiness": field.stickiness,
        "sort_order": field.sort_order,
        "legal_values": field.legal_values,
    }
    return _keep(
        subject,
        present,
        context_field_document,
        create=partial(
            create_context_field, values | {"name": field.name, "project_id": project}, caller=SYSTEM
        ),
        update=partial(update_context_field, field.name, values, caller=SYSTEM, project=project),
        project=project or "",
    )


def _move_segment(segment: SourceSegment) -> Iterator[Line]:
    present = Segment.objects.filter(name=segment.name).first()
    values: dict[str, Any] = {
        "description": segment.description,
        "constraints": [each.model_dump(exclude_unset=True) for each in segment.constraints],
    }
    # One that all projects may use here is not taken away from them.
    if present is None or present.project_id:
        values["project_id"] = segment.project
    return _keep(
        f"segment {segment.name}",
        present,
        segment_document,
        create=partial(create_segment, values | {"name": segment.name}, caller=SYSTEM),
        update=partial(update_segment, present.pk if present else 0, values, caller=SYSTEM),
        project=segment.project or "",
    )


def _keep(
    subject: str,
    present: Any,
    document: Callable[[Any], Mapping[str, Any]],
    *,
    create: Callable[[], Any],
    update: Callable[[], Any],
    project: str = "",
) -> Iterator[Line]:
    """Creates the row or updates it, and yields what has become of it."""
    if present is None:
        create()
        yield Line(Kind.CREATE, subject, project=project)
        return
    if changes := _changes(document(present), document(update())):
        yield Line(Kind.CHANGE, subject, changes, project)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{member} {_shown(before.get(member))} → {_shown(after.get(member))}"
        for member in {**before, **after}
        if before.get(member) != after.get(member)
    )


def _shown(value: Any) -> str:
    text = "none" if value in (None, "", []) else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


# A project -------------------------------------------------------------------------------------------------


@transactional
def _move_project(installation: Installation, project: SourceProject, report: Report) -> Lines:
    lines: Lines = []
    overview = project.overview
    names = [used.environment for used in overview.environments]
    basics = {"name": overview.name, "description": overview.description or ""}
    before = None
    if present := Project.objects.filter(id=project.id).first():
        before = settings_document(present)
        update_project(project.id, basics, caller=SYSTEM)
    else:
        create_project(basics | {"id": project.id}, environments=names, caller=SYSTEM)
        lines.append(Line(Kind.CREATE, f"project {project.id}", f"with {', '.join(names)}", project.id))
    for field in project.fields:
        lines += _move_field(field, project.id)
    # Its default stickiness can be one of its context fields.
    update_project(project.id, {"default_stickiness": overview.default_stickiness}, caller=SYSTEM)
    for segment in installation.segments:
        if segment.project == project.id:
            lines += _move_segment(segment)
    lines += _move_environments(installation, project)
    flag_lines, same = _move_flags(project)
    lines += flag_lines
    # Flags that are there already need not fit the rules for new ones.
    naming = overview.naming
    rules = {
        "flag_limit": overview.flag_limit,
        "naming_pattern": (naming and naming.pattern) or "",
        "naming_example": (naming and naming.example) or "",
        "naming_description": (naming and naming.description) or "",
    }
    after = settings_document(update_project(project.id, rules, caller=SYSTEM))
    if before is not None and (changes := _changes(before, after)):
        lines.insert(0, Line(Kind.CHANGE, f"project {project.id}", changes, project.id))
    report.same += same
    return lines


def _move_environments(installation: Installation, project: SourceProject) -> Iterator[Line]:
    present = dict(
        ProjectEnvironment.objects.filter(project=project.id).values_list(
            "environment_id", "default_strategy"
        )
    )
    row = Project.objects.get(id=project.id)
    ids = _segment_ids(installation)
    for used in project.overview.environments:
        subject = f"{used.environment} in project {project.id}"
        if used.environment not in present:
            add_environment(project.id, used.environment, caller=SYSTEM)
            yield Line(Kind.CREATE, subject, project=project.id)
        wanted = None
        if used.default_strategy is not None:
            strategy = used.default_strategy.model_dump(exclude_unset=True)
            segments = [ids[key] for key in used.default_strategy.segments if key in ids]
            wanted = checked_strategy(row, strategy | {"segments": segments})
        if wanted != present.get(used.environment):
            set_default_strategy(project.id, used.environment, wanted, caller=SYSTEM)
            before = present.get(used.environment)
            detail = f"default strategy {_strategy_text(before)} → {_strategy_text(wanted)}"
            yield Line(Kind.CHANGE, subject, detail, project.id)
    for name in sorted(present.keys() - project.flags.keys()):
        yield Line(Kind.NOTE, f"{name} in project {project.id}", "is only used here, and stays", project.id)


def _strategy_text(strategy: Any) -> str:
    return _shown(
        strategy and {key: strategy[key] for key in ("name", "parameters", "constraints") if strategy[key]}
    )


def _segment_ids(installation: Installation) -> dict[int, int]:
    """Ids here by ids there."""
    names = {segment.name: segment.id for segment in installation.segments}
    rows = Segment.objects.filter(name__in=names).values_list("name", "id")
    return {names[name]: row for name, row in rows}


def _move_flags(project: SourceProject) -> tuple[Lines, int]:
    """Imports each environment. Also returns how many flags are the same in all of them."""
    actions: dict[str, set[Action]] = {}
    lines: Lines = []
    for environment, data in project.flags.items():
        body = read_body(
            {
                "project": project.id,
                "environment": environment,
                "data": {**data, "contextFields": [], "tagTypes": []},
            }
        )
        plan = plan_import(body, caller=SYSTEM)
        if not plan.can_be_applied:
            raise _Refused(list(_problems(plan)))
        new = {name for name, known in actions.items() if Action.CREATE in known}
        lines += _flag_lines(plan, new)
        for flag in plan.flags.values():
            actions.setdefault(flag.name, set()).add(flag.action)
        if any(plan.with_action(Action.CREATE, Action.CHANGE)):
            import_body(body, caller=SYSTEM, source=ImportRun.Source.COMMAND)
    return lines, sum(known == {Action.SAME} for known in actions.values())


def _problems(plan: Plan) -> Iterator[Line]:
    for issue in plan.issues[:MAX_PROBLEMS]:
        problem, where = issue.problem(), f"{plan.project} / {plan.environment}"
        subject = f"flag {issue.flag} in {where}" if issue.flag else where
        yield Line(Kind.REFUSE, subject, problem.message, plan.project)
    if len(plan.issues) > MAX_PROBLEMS:
        more = f"{len(plan.issues) - MAX_PROBLEMS:,} more problems"
        yield Line(Kind.REFUSE, f"{plan.project} / {plan.environment}", more, plan.project)


def _flag_lines(plan: Plan, new: set[str]) -> Iterator[Line]:
    for document in plan_document(plan)["flags"]:
        name, action = document["name"], document["action"]
        subject = f"flag {name} in {plan.environment}"
        if action == Action.CREATE:
            yield Line(Kind.CREATE, f"flag {name}", document.get("summary", ""), plan.project, name)
        elif action == Action.CHANGE and name not in new:
            changes = [
                f"{each['part']} {_shown(each['before'])} → {_shown(each['after'])}"
                for each in document.get("changes", ())
            ]
            yield Line(Kind.CHANGE, subject, "; ".join(changes), plan.project, name)
        elif action == Action.SKIP:
            yield Line(Kind.CANNOT, subject, document.get("reason", ""), plan.project, name)
    for name in plan.defaulted:
        detail = "is on without a strategy; here it gets the default strategy of its environment"
        yield Line(Kind.NOTE, f"flag {name} in {plan.environment}", detail, plan.project, name)


# Tokens ----------------------------------------------------------------------------------------------------


@transactional
def _move_tokens(installation: Installation) -> Lines:
    """Takes SDK tokens with their secrets, so that applications keep theirs. Admin tokens are for people to renew."""
    lines: Lines = []
    places = Places.read()
    for name, secret, new in read_secrets(installation.tokens):
        subject = f"token {name}"
        if isinstance(new, Malformed):
            lines.append(Line(Kind.CANNOT, subject, str(new)))
            continue
        digest = hash_secret(secret)
        if ApiToken.objects.filter(secret_hash=digest).exists():
            continue
        if StartUpKey.objects.filter(secret_hash=digest).exists():
            lines.append(Line(Kind.CANNOT, subject, "was revoked here"))
        elif missing := places.missing(declared_scope(new)):
            lines.append(Line(Kind.CANNOT, subject, f"needs {missing}"))
        else:
            store_token(new, caller=SYSTEM, secret=secret)
            # As for tokens of environment variables: one that is revoked here stays revoked.
            StartUpKey.objects.create(secret_hash=digest)
            lines.append(Line(Kind.CREATE, subject, f"{new.kind}, {new.environment}, with its secret"))
    return lines
