"""Determines which flags a caller may evaluate, and evaluates them for the playground."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import orjson
from django.conf import settings
from django.utils import timezone

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.errors import Problem, check_problems, choices
from flagadmin.core.server.memory import collector_paused
from groups.access import Caller
from playground import request
from playground.engine.context import TOP_LEVEL, Context
from playground.engine.evaluator import evaluate
from playground.evaluation_metrics import EVALUATIONS
from playground.request import PlaygroundRequest
from playground.response.snapshot import ResponseSnapshot
from playground.response.writer import render_each, render_features
from projects.access import describe_unknown_project, environment_problems
from projects.models import ContextField, Flag
from projects.revision import read_revisions, read_revisions_and_environments


def read_known_revisions(
    caller: Caller, query: PlaygroundRequest, paths: Mapping[str, str]
) -> dict[str, int]:
    """The revisions of the requested projects. ``paths`` are the environments by their JSON paths.

    Raises ValidationError with every unknown project and environment.
    """
    projects = query.projects
    current, environments = read_revisions_and_environments(
        caller.readable_projects if projects is None else projects
    )
    problems = [*find_project_problems(caller, projects, current), *environment_problems(paths, environments)]
    check_problems(problems)
    return current


def read_readable_revisions(caller: Caller, projects: list[str] | None) -> dict[str, int]:
    """The revisions of these projects (None: of all that the caller may read). One query.

    Raises ValidationError for a project that the caller cannot see, with the choices.
    """
    current = read_revisions(caller.readable_projects if projects is None else projects)
    check_problems(find_project_problems(caller, projects, current))
    return current


def find_project_problems(
    caller: Caller, projects: list[str] | None, current: Mapping[str, int]
) -> Iterator[Problem]:
    """The requested projects that do not exist or that the caller may not read."""
    allowed = caller.readable_projects
    unknown = [
        project
        for project in projects or ()
        if project not in current or (allowed is not None and project not in allowed)
    ]
    if unknown:
        yield Problem("projects", describe_unknown_project(caller, choices(unknown)))


def refuse_too_many(current: Mapping[str, int], *, environments: int, contexts: int, limit: int) -> None:
    """Raises ValidationError, before compiling anything, if evaluating all flags of these projects is too much."""
    flags = count_active_flags(current)
    request.check_size(environments=environments, flags=flags, contexts=contexts, limit=limit)


def count_active_flags(projects: Iterable[str]) -> int:
    """Counts the active flags of these projects."""
    return Flag.objects.active().filter(project__in=list(projects)).count()


@collector_paused
def render_answer(compiled: ResponseSnapshot, query: PlaygroundRequest, rest: bytes = b"") -> bytes:
    """The whole answer for one environment and one context, with the `rest` of its members."""
    before = b'{"input":%b,"features":' % orjson.dumps(query.echo)
    context = Context(query.context)
    evaluation = evaluate(compiled.snapshot, context, now=query.at or timezone.now(), random=random.random)
    EVALUATIONS.labels("playground").inc(len(compiled.flags))
    return render_features(compiled, evaluation, before=before, behind=rest + b"}")


@collector_paused
def render_advanced_features(
    snapshots: Mapping[str, ResponseSnapshot],
    environments: list[str],
    fields: Mapping[str, list[str]],
    at: datetime | None = None,
) -> bytes:
    """The members of `features`, comma-separated: each flag with its evaluations by environment."""
    fields = dict(fields)
    flags = max(len(compiled.flags) for compiled in snapshots.values())
    if not flags:  # without evaluations, no limit would end the combinations
        return b""
    request.check_size(
        environments=len(environments),
        flags=flags,
        contexts=request.count_contexts(fields),
        limit=settings.PLAYGROUND_MAX_EVALUATIONS,
    )
    EVALUATIONS.labels("playground").inc(flags * len(environments) * request.count_contexts(fields))
    now = at or timezone.now()
    evaluations_by_flag: dict[tuple[str, str], dict[str, list[bytes]]] = {}
    size = done = 0
    for environment in environments:
        compiled = snapshots[environment]
        for context in request.combine_contexts(fields):
            extra = orjson.dumps({"environment": environment, "context": context})[1:]
            evaluation = evaluate(compiled.snapshot, Context(context), now=now, random=random.random)
            for flag, item in zip(compiled.snapshot.flags, render_each(compiled, evaluation), strict=True):
                by_environment = evaluations_by_flag.setdefault((flag.name, flag.project), {})
                by_environment.setdefault(environment, []).append(item[:-1] + b"," + extra)
                size += len(item) + len(extra)
            done += flags
            request.check_answer_size(size, done)
    return b",".join(
        _write_advanced_feature(*key, by_environment) for key, by_environment in evaluations_by_flag.items()
    )


def _write_advanced_feature(name: str, project: str, by_environment: Mapping[str, list[bytes]]) -> bytes:
    head = orjson.dumps({"name": name, "projectId": project})[:-1]
    lists = b",".join(b"%b:[%b]" % (orjson.dumps(e), b",".join(items)) for e, items in by_environment.items())
    return head + b',"environments":{' + lists + b"}}"


def list_known_fields(projects: Iterable[str]) -> set[str]:
    """The context fields that these projects can use."""
    fields = ContextField.objects.usable_in(*projects)
    return {*TOP_LEVEL, *fields.values_list("name", flat=True)}


_USED_ENVIRONMENTS = """
SELECT id, archived_at,
       ARRAY(SELECT environment_id::text FROM projects_projectenvironment WHERE project_id = p.id)
  FROM projects_project p WHERE id = ANY(%s) ORDER BY id
"""


def explain_empty(projects: Sequence[str] | None, snapshots: Mapping[str, ResponseSnapshot]) -> Iterator[str]:
    """Explains why a named project contributes no enabled flag to the answer. One query if there is such a project."""
    empty = {
        name: [project for project in projects or () if project not in snapshot.snapshot.projects_in_use]
        for name, snapshot in snapshots.items()
    }
    named = set().union(*empty.values())
    if not named:
        return
    for project, archived_at, environments in fetch_rows(_USED_ENVIRONMENTS, [list(named)], prepared=True):
        if archived_at is not None:
            yield f"Project {project} is archived."
        for environment, without in empty.items():
            if project in without and environment not in environments:
                uses = choices(environments) or "none"
                yield f"Project {project} does not use environment {environment}. Used: {uses}."
