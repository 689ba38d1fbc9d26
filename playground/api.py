"""POST /api/admin/playground and /playground/advanced."""

import random
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.errors import Problem, ValidationError, choices
from flagadmin.server.gc_control import gc_paused
from groups.access import Caller
from groups.authentication import ApiRequest
from groups.viewsets import ViewSet
from playground import combinations
from playground import openapi as schema
from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.request import Question, read_question
from playground.response.snapshot import ResponseSnapshot
from playground.response.writer import render_each, render_features
from playground.snapshot_cache import snapshot_at
from projects.access import environment_problems, unknown_project
from projects.revision import revisions, revisions_and_environments

# RFC 9745: deprecated since the beginning of 2026. The reference's successor is the advanced form.
DEPRECATED = {
    "Deprecation": "@1767225600",
    "Link": '</api/admin/playground/advanced>; rel="successor-version"',
}


class PlaygroundViewSet(ViewSet):
    """Everybody may evaluate the flags of projects that they can read."""

    tags = ("Playground",)
    permissions = {"create": None, "advanced": None}

    @extend_schema(
        operation_id="getPlayground",
        summary="Evaluate a context against the flags of projects in one environment",
        description=schema.PLAYGROUND_DESCRIPTION,
        deprecated=True,
        request=schema.PlaygroundRequest,
        responses={200: schema.PlaygroundResponse},
        examples=[
            OpenApiExample("One user in production", value=schema.REQUEST_EXAMPLE, request_only=True),
            OpenApiExample(
                "Evaluated", value=schema.RESPONSE_EXAMPLE, response_only=True, status_codes=["200"]
            ),
        ],
    )
    def create(self, request: ApiRequest) -> Response:
        question = read_question(request.data)
        [environment] = question.environments
        current = known_revisions(self.caller, question, {"environment": environment})
        body = answer(snapshot_at(current, environment), question)
        return Response(body, headers=DEPRECATED)

    @extend_schema(
        operation_id="getAdvancedPlayground",
        summary="Evaluate several contexts against the flags of projects in several environments",
        description=schema.ADVANCED_DESCRIPTION,
        request=schema.AdvancedPlaygroundRequest,
        responses={200: schema.AdvancedPlaygroundResponse},
    )
    @action(detail=False, methods=["post"])
    def advanced(self, request: ApiRequest) -> Response:
        body = request.data
        invalid = combinations.invalid_properties(context_of(body))
        question = read_question(body, several=True)
        context = {key: value for key, value in question.context.items() if key not in invalid}
        places = {f"environments[{index}]": name for index, name in enumerate(question.environments)}
        current = known_revisions(self.caller, question, places)
        features = advanced_features(current, question.environments, combinations.split_context(context))
        answer = b'{"features":[%b],"input":%b' % (features, orjson.dumps(question.echo))
        if invalid:
            answer += b',"warnings":%b' % orjson.dumps({"invalidContextProperties": invalid})
        return Response(answer + b"}")


# A function of its own: the thousands of small objects it makes are gone before anybody looks for cycles among them.
@gc_paused
def answer(compiled: ResponseSnapshot, question: Question) -> bytes:
    """The whole answer for one environment and one context."""
    before = b'{"input":%b,"features":' % orjson.dumps(question.echo)
    context = Context(question.context)
    evaluation = evaluate(compiled.snapshot, context, now=timezone.now(), random=random.random)
    return render_features(compiled, evaluation, before=before, behind=b"}")


def context_of(body: Any) -> dict[str, Any]:
    """The context as it was sent, with the known fields left out that are coerced whatever their type."""
    context = body.get("context") if isinstance(body, dict) else None
    known = {"userId", "sessionId", "remoteAddress", "environment", "appName", "currentTime"}
    sent = context.items() if isinstance(context, dict) else ()
    return {key: value for key, value in sent if key not in known}


def known_revisions(caller: Caller, question: Question, places: Mapping[str, str]) -> dict[str, int]:
    """The revisions of the projects asked for. ``places`` are the environments by their JSON paths.

    Raises ValidationError with every name, of a project or an environment, that is unknown.
    """
    wanted = question.projects
    current, environments = revisions_and_environments(caller.readable_projects if wanted is None else wanted)
    problems = [*project_problems(caller, wanted, current), *environment_problems(places, environments)]
    if problems:
        raise ValidationError.of(problems)
    return current


def readable_revisions(caller: Caller, projects: list[str] | None) -> dict[str, int]:
    """The asked-for projects (None: all) that the caller may read, with their revisions. One query.

    Raises ValidationError for a project that is unknown to the caller, naming the choices.
    """
    current = revisions(caller.readable_projects if projects is None else projects)
    if problems := list(project_problems(caller, projects, current)):
        raise ValidationError.of(problems)
    return current


def project_problems(
    caller: Caller, projects: list[str] | None, current: Mapping[str, int]
) -> Iterator[Problem]:
    """Says which of the asked-for projects are none of the current ones, or none that the caller may read."""
    allowed = caller.readable_projects
    unknown = [
        project
        for project in projects or ()
        if project not in current or (allowed is not None and project not in allowed)
    ]
    if unknown:
        yield Problem("projects", unknown_project(caller, choices(unknown)))


@gc_paused
def advanced_features(
    current: Mapping[str, int], environments: list[str], fields: Mapping[str, list[str]]
) -> bytes:
    """The members of `features`, comma-separated: each flag with its evaluations by environment."""
    snapshots = {environment: snapshot_at(current, environment) for environment in environments}
    fields = dict(fields)
    flags = len(snapshots[environments[0]].flags)
    if not flags:  # no evaluations, so no limit would end the combinations
        return b""
    combinations.check_size(
        environments=len(environments),
        flags=flags,
        contexts=combinations.count_contexts(fields),
        limit=settings.PLAYGROUND_MAX_EVALUATIONS,
    )
    now = timezone.now()
    found: dict[tuple[str, str], dict[str, list[bytes]]] = {}
    for environment in environments:
        compiled = snapshots[environment]
        for context in combinations.contexts(fields):
            extra = orjson.dumps({"environment": environment, "context": context})[1:]
            evaluation = evaluate(compiled.snapshot, Context(context), now=now, random=random.random)
            for flag, item in zip(compiled.snapshot.flags, render_each(compiled, evaluation), strict=True):
                by_environment = found.setdefault((flag.name, flag.project), {})
                by_environment.setdefault(environment, []).append(item[:-1] + b"," + extra)
    return b",".join(_advanced_feature(*key, by_environment) for key, by_environment in found.items())


def _advanced_feature(name: str, project: str, by_environment: Mapping[str, list[bytes]]) -> bytes:
    head = orjson.dumps({"name": name, "projectId": project})[:-1]
    lists = b",".join(b"%b:[%b]" % (orjson.dumps(e), b",".join(items)) for e, items in by_environment.items())
    return head + b',"environments":{' + lists + b"}}"
