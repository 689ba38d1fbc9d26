"""Writes a project: its settings, context fields, segments and environments, and its flags through imports."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

from django.utils.functional import cached_property

from flagadmin.core.db.transactions import run_and_roll_back
from flagadmin.core.errors import Problem, ValidationError
from importer.apply.execute import import_body
from importer.body.schemas import Body, read_body
from importer.models import ImportRun
from importer.moving.leave_out import FLAG, Choice
from importer.moving.reading.installation import Installation, SourceProject
from importer.moving.reading.shapes import Overview, UsedEnvironment
from importer.moving.report import Kind, Line
from importer.moving.writing.keeping import (
    DELETED,
    SYSTEM,
    Edits,
    Refused,
    change_line,
    describe_changes,
    find_archived_by_moves,
    find_moved,
    shown,
    try_alone,
)
from importer.moving.writing.shared import SegmentIds, move_field, move_segment
from importer.plan.build import plan_import
from importer.plan.entries import exclude_flags, exclude_links, name_flag
from importer.plan.import_plan import Action, FlagPlan, Plan
from importer.report import plan_document
from projects.flags.archive.actions import revive_flags
from projects.flags.copies.move import move_flag
from projects.models import Dependency, Flag, FlagLink, Project, ProjectEnvironment
from projects.projects.actions import create_project, update_project
from projects.projects.environments import add_environment, set_default_strategy, validate_default_strategy
from projects.projects.queries import make_settings_document
from projects.projects.settings import SETTINGS
from projects.strategies.sentences import summarize_strategy

MAX_PROBLEMS = 1_000  # per environment
ENTRY = re.compile(r"data\.(\w+)\[(\d+)\]")
_NAMING = ("naming_pattern", "naming_example", "naming_description")
MEMBERS = {setting.member: (setting.field,) for setting in SETTINGS} | {"featureNaming.pattern": _NAMING}
"""Settings of a project by the paths of their problems."""


class ProjectMove:
    """Moves one project. Afterwards, ``same`` is the number of flags that are equal in all environments.

    ``given_up``: environments that the project has stopped using here since the last move, to which no flags move.
    """

    def __init__(self, installation: Installation, project: SourceProject, edits: Edits) -> None:
        self.installation, self.project, self.edits = installation, project, edits
        self.id, self.overview = project.id, project.overview
        self.is_edited = edits.has("project-", project.id)
        self.left: list[Line] = []
        self.given_up: set[str] = set()
        self.same = 0

    def move(self) -> list[Line]:
        present = Project.objects.filter(id=self.id).first()
        before = make_settings_document(present) if present is not None else None
        lines = [] if before is not None else [self._create()]
        for field in self.project.fields:
            lines += move_field(field, self.id, self.edits)
        basics = self._keep_valid(_read_basics(self.overview))
        if not self.is_edited:  # flags use the default stickiness, which can be one of the context fields
            update_project(self.id, basics, caller=SYSTEM)
        for segment in self.installation.segments:
            if segment.project == self.id:
                lines += move_segment(segment, self.edits)
        lines += self._move_environments()
        with self._drop_rules_for_new_flags():
            lines += self._move_flags()
        values = basics | self._keep_valid(_read_rules(self.overview))
        after = run_and_roll_back(lambda: self._settle(values)) if self.is_edited else self._settle(values)
        if before is not None and (changes := describe_changes(before, after)):
            line = change_line(f"project {self.id}", changes, self.id, is_edited=self.is_edited)
            lines.insert(0, line)
        return [*self.left, *lines]

    def _keep_valid(self, values: dict[str, Any]) -> dict[str, Any]:
        """Keeps the values that are possible here; the rest is left to manual work."""
        try:
            run_and_roll_back(lambda: update_project(self.id, values, caller=SYSTEM))
        except ValidationError as error:
            for problem in error.details:
                subject = f"{problem.path} of project {self.id}"
                self.left.append(Line(Kind.CANNOT, subject, problem.message, self.id))
            paths = {problem.path.partition("[")[0] for problem in error.details}
            refused = {member for path in paths for member in MEMBERS.get(path, ())}
            return {member: value for member, value in values.items() if member not in refused}
        return values

    @contextmanager
    def _drop_rules_for_new_flags(self) -> Iterator[None]:
        """Suspends rules for new flags: flags new here are old there, and need not comply. Invisible to others."""
        row = Project.objects.filter(id=self.id)
        rules = row.values("naming_pattern", "flag_limit").get()
        row.update(naming_pattern="", flag_limit=None)
        yield
        row.update(**rules)

    def _settle(self, values: dict[str, Any]) -> Any:
        return make_settings_document(update_project(self.id, values, caller=SYSTEM))

    def _create(self) -> Line:
        if self.is_edited:
            detail = "was deleted here since the last move. --overwrite creates it again"
            choice = Choice("project", self.id)
            raise Refused([Line(Kind.REFUSE, choice.subject, detail, self.id, choice=str(choice))])
        names = [used.environment for used in self.overview.environments]
        values = {"id": self.id, "name": self.overview.name, "mode": self.overview.mode}
        create_project(values, environments=names, caller=SYSTEM)
        return Line(Kind.CREATE, f"project {self.id}", f"with {', '.join(names)}", self.id)

    def _move_environments(self) -> Iterator[Line]:
        present = dict(
            ProjectEnvironment.objects.filter(project=self.id).values_list(
                "environment_id", "default_strategy"
            )
        )
        row = Project.objects.get(id=self.id)
        ids = SegmentIds(self.installation)
        for used in self.overview.environments:
            subject = f"{used.environment} in project {self.id}"
            if used.environment not in present:
                if self.edits.has_removed_environment(self.id, used.environment):
                    self.given_up.add(used.environment)
                    yield Line(Kind.CONFLICT, subject, DELETED, self.id)
                    continue
                add_environment(self.id, used.environment, caller=SYSTEM)
                yield Line(Kind.CREATE, subject, project=self.id)
            before = present.get(used.environment)
            set_default = partial(self._set_default, row, used, before, ids)
            yield from try_alone(f"default strategy of {subject}", set_default, self.id)
        for name in sorted(present.keys() - self.project.flags.keys()):
            yield Line(Kind.NOTE, f"{name} in project {self.id}", "is only used here, and stays", self.id)

    def _set_default(
        self, row: Project, used: UsedEnvironment, before: Any, ids: SegmentIds
    ) -> Iterator[Line]:
        environment, wanted = used.environment, None
        if used.default_strategy is not None:
            strategy = used.default_strategy.model_dump(exclude_unset=True)
            segments = ids.translate(used.default_strategy.segments)
            wanted = validate_default_strategy(row, strategy | {"segments": segments})
        if wanted == before:
            return
        is_edited = self.edits.has_default_strategy(self.id, environment)
        if not is_edited:
            set_default_strategy(self.id, environment, wanted, caller=SYSTEM)
        changes = f"default strategy {_describe_strategy(before)} → {_describe_strategy(wanted)}"
        yield change_line(f"{environment} in project {self.id}", changes, self.id, is_edited=is_edited)

    # Flags -------------------------------------------------------------------------------------------------

    def _move_flags(self) -> Iterator[Line]:
        """Imports each environment."""
        yield from self._fetch()
        yield from self._restore()
        deleted, archived = self._find_deleted(), self._find_archived()
        for name in sorted(deleted):
            yield Line(Kind.CONFLICT, f"flag {name}", DELETED, self.id, name)
        actions: dict[str, set[Action]] = {}
        for environment, data in self.project.flags.items():
            if environment in self.given_up:
                continue
            body = exclude_flags(self._read_body(environment, self._with_emptied(data)), deleted)
            body = exclude_links(body, archived)
            plan = plan_import(body, caller=SYSTEM)
            conflicts = [flag for flag in plan.flags.values() if self._is_conflict(flag, environment)]
            if conflicts:
                yield from _list_conflict_lines(plan, {flag.name for flag in conflicts})
                body = exclude_flags(body, [flag.name for flag in conflicts])
                plan = plan_import(body, caller=SYSTEM)
            if not plan.can_be_applied:
                raise Refused(list(_list_problems(plan)))
            new = {name for name, known in actions.items() if Action.CREATE in known}
            yield from _list_flag_lines(plan, new)
            yield from _list_note_lines(plan)
            for flag in (*plan.flags.values(), *conflicts):
                actions.setdefault(flag.name, set()).add(flag.action)
            if any(plan.with_action(Action.CREATE, Action.CHANGE)):
                import_body(body, caller=SYSTEM, source=ImportRun.Source.COMMAND)
        self.same = sum(known == {Action.SAME} for known in actions.values())

    def _fetch(self) -> Iterator[Line]:
        """Fetches flags that were moved there to this project from another moving project, unless edited here."""
        others = [project.id for project in self.installation.projects if project is not self.project]
        names = {flag.name for flag in self.project.listed}
        rows = Flag.objects.filter(name__in=names, project__in=others).order_by("name")
        elsewhere = dict(rows.values_list("name", "project"))
        moved = find_moved(self.installation.address, elsewhere) if elsewhere else set()
        for name, project in elsewhere.items():
            if name in moved and not self.edits.has_flag(name, ""):
                yield from try_alone(f"flag {name}", partial(self._fetch_from, project, name), self.id)

    def _fetch_from(self, project: str, name: str) -> Iterator[Line]:
        move_flag(project, name, self.id, caller=SYSTEM)
        yield Line(Kind.CHANGE, f"flag {name}", f"project {project} → {self.id}", self.id, name)

    def _restore(self) -> Iterator[Line]:
        """Restores flags archived by a move that are active there again. Imports then turn them on."""
        restored = find_archived_by_moves(self.installation.address, self._find_archived())
        here = Flag.objects.filter(project=self.id, name__in=restored).order_by("name")
        names = list(here.values_list("name", flat=True))
        if names:
            revive_flags(self.id, names, caller=SYSTEM)
        for name in names:
            yield Line(Kind.CHANGE, f"flag {name}", "restored: it is active there", self.id, name)

    def _with_emptied(self, data: dict[str, Any]) -> dict[str, Any]:
        """The data with an empty entry for each flag that has parents or links here, and none there.

        Exports have no entry for such a flag, so an import would leave them unchanged, or give a new flag its
        project's links.
        """
        exported = {feature["name"] for feature in data["features"]}
        return data | {
            part: [*data[part], *({"feature": name, part: []} for name in names - _list_named(part, data))]
            for part, here in self._here.items()
            for names in [here | exported if part == "links" else here]
        }

    @cached_property
    def _here(self) -> dict[str, set[str]]:
        """The flags with parents or links here, by part of exports, as far as exports there have the part."""
        names = {flag.name for flag in self.project.listed}
        rows = {"dependencies": Dependency.objects, "links": FlagLink.objects}
        return {
            part: names & {*row.filter(flag__project=self.id).values_list("flag__name", flat=True)}
            for part, row in rows.items()
            if part in self.project.exported
        }

    def _find_deleted(self) -> set[str]:
        """Flags that exist there and were deleted here since the last move."""
        names = {flag["name"] for data in self.project.flags.values() for flag in data["features"]}
        edited = names & self.edits.flag_names
        return edited - {*Flag.objects.filter(name__in=edited).values_list("name", flat=True)}

    def _find_archived(self) -> set[str]:
        """Flags that are archived only here. Imports skip them, but refuse links to them."""
        active = {flag.name for flag in self.project.listed} - self.project.archived
        here = Flag.objects.filter(name__in=active).exclude(archived_at=None)
        return {*here.values_list("name", flat=True)}

    def _read_body(self, environment: str, data: dict[str, Any]) -> Body:
        document = {"project": self.id, "environment": environment}
        try:
            return read_body(document | {"data": {**data, "contextFields": [], "tagTypes": []}})
        except ValidationError as error:
            where = f"{self.id} / {environment}"
            raise Refused([self._explain(problem, data, where) for problem in error.details]) from None

    def _explain(self, problem: Problem, data: dict[str, Any], where: str) -> Line:
        """Names the flag of an unreadable entry."""
        flag = ""
        if place := ENTRY.match(problem.path):
            part, number = place.groups()
            flag = name_flag(part, data.get(part, [])[int(number)])
        return _refuse(flag, where, str(problem), self.id)

    def _is_conflict(self, flag: FlagPlan, environment: str) -> bool:
        return flag.action is Action.CHANGE and self.edits.has_flag(flag.name, environment)


def _list_named(part: str, data: dict[str, Any]) -> set[str]:
    return {name_flag(part, entry) for entry in data[part]}


def _read_basics(overview: Overview) -> dict[str, Any]:
    return {
        "name": overview.name,
        "description": overview.description or "",
        "mode": overview.mode,
        "default_stickiness": overview.default_stickiness,
    }


def _read_rules(overview: Overview) -> dict[str, Any]:
    naming = overview.naming
    return {
        "flag_limit": overview.flag_limit,
        "link_templates": [
            {"title": link.title, "urlTemplate": link.url} for link in overview.link_templates
        ],
        "naming_pattern": (naming and naming.pattern) or "",
        "naming_example": (naming and naming.example) or "",
        "naming_description": (naming and naming.description) or "",
    }


def _describe_strategy(strategy: Any) -> str:
    return str(summarize_strategy({**strategy, "segments": []}, segments={})) if strategy else "none"


def _list_problems(plan: Plan) -> Iterator[Line]:
    where = f"{plan.project} / {plan.environment}"
    lines = (
        _refuse(flag, where, issue.problem().message, plan.project)
        for issue in plan.issues
        for flag in issue.users or (issue.flag or "",)
    )
    yield from islice(lines, MAX_PROBLEMS)
    if more := sum(1 for _ in lines):
        yield Line(Kind.REFUSE, where, f"{more:,} more problems", plan.project)


def _refuse(flag: str, where: str, detail: str, project: str) -> Line:
    choice = Choice(FLAG, flag) if flag else Choice("project", project)
    subject = f"flag {flag} in {where}" if flag else where
    return Line(Kind.REFUSE, subject, detail, project, flag, choice=str(choice))


def _list_flag_lines(plan: Plan, new: set[str]) -> Iterator[Line]:
    for document in plan_document(plan)["flags"]:
        name, action = document["name"], document["action"]
        subject = f"flag {name} in {plan.environment}"
        if action == Action.CREATE:
            yield Line(Kind.CREATE, f"flag {name}", document.get("summary", ""), plan.project, name)
        elif action == Action.CHANGE and name not in new:
            yield Line(Kind.CHANGE, subject, _describe_flag(document), plan.project, name)
        elif action == Action.SKIP:
            yield Line(Kind.CANNOT, subject, document.get("reason", ""), plan.project, name)


def _list_note_lines(plan: Plan) -> Iterator[Line]:
    """Notes of the import, such as flag values that SDKs cannot read."""
    where = f"{plan.project} / {plan.environment}"
    for note in plan.notes[:MAX_PROBLEMS]:
        yield Line(Kind.NOTE, where, note, plan.project)
    if (more := len(plan.notes) - MAX_PROBLEMS) > 0:
        yield Line(Kind.NOTE, where, f"{more:,} more notes", plan.project)


def _list_conflict_lines(plan: Plan, names: set[str]) -> Iterator[Line]:
    for document in plan_document(plan)["flags"]:
        if (name := document["name"]) in names:
            subject, changes = f"flag {name} in {plan.environment}", _describe_flag(document)
            yield change_line(subject, changes, plan.project, is_edited=True, flag=name)


def _describe_flag(document: Any) -> str:
    return "; ".join(
        f"{each['part']} {shown(each['before'])} → {shown(each['after'])}"
        for each in document.get("changes", ())
    )
