"""POST /api/admin/playground, /advanced and /compare: each flag's result and reason, and comparisons.

The advanced form of the playground: several contexts, split from one, in several environments.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from django.conf import settings
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.http.request_bodies import ManyValuesParser
from groups.viewsets import ApiRequest, ViewSet
from playground import openapi as schema
from playground import request
from playground.comparison import request as comparison_schema
from playground.comparison.past import load_snapshots
from playground.comparison.request import CompareBody, answer_question
from playground.queries import render_advanced_features, render_answer
from playground.request import PlaygroundRequest, read_request
from playground.response.snapshot import ResponseSnapshot
from playground.saved_contexts import serializers as saved_schema
from playground.saved_contexts.checks import check_document, check_request

# RFC 9745: deprecated since the beginning of 2026. The reference's successor is the advanced form.
DEPRECATED = {
    "Deprecation": "@1767225600",
    "Link": '</api/admin/playground/advanced>; rel="successor-version"',
}


class PlaygroundViewSet(ViewSet):
    """Every user may evaluate the flags of projects that they can read."""

    tags = ("Playground",)
    permissions = {"create": None, "advanced": None, "compare": None, "check_expectations": None}

    @extend_schema(
        operation_id="getPlayground",
        summary="Evaluate a context against the flags of projects in one environment",
        description=schema.SECTIONS["Playground"],
        deprecated=True,
        request=schema.PlaygroundRequestSerializer,
        responses={200: schema.PlaygroundResponse},
        examples=[
            OpenApiExample(
                "One user in production", value=schema.SECTIONS["Example of a request"], request_only=True
            ),
            OpenApiExample(
                "Evaluated",
                value=schema.SECTIONS["Example of a response"],
                response_only=True,
                status_codes=["200"],
            ),
        ],
    )
    def create(self, request: ApiRequest) -> Response:
        query = read_request(request.data)
        [environment] = query.environments
        snapshots, notes = load_snapshots(self.caller, query, {"environment": environment})
        body = render_answer(snapshots[environment], query, write_notes(notes))
        return Response(body, headers=DEPRECATED)

    @extend_schema(
        operation_id="getAdvancedPlayground",
        summary="Evaluate several contexts against the flags of projects in several environments",
        description=schema.SECTIONS["Advanced"],
        request=schema.AdvancedPlaygroundRequestSerializer,
        responses={200: schema.AdvancedPlaygroundResponse},
    )
    @action(detail=False, methods=["post"])
    def advanced(self, request: ApiRequest) -> Response:
        def load(query: PlaygroundRequest, contexts: int) -> Loaded:
            paths = {f"environments[{index}]": name for index, name in enumerate(query.environments)}
            return load_snapshots(self.caller, query, paths, contexts=contexts)

        return Response(answer_advanced(request.data, load))

    @extend_schema(
        operation_id="comparePlayground",
        summary="Compare two states of the flags: how many contexts get something else, which, and why",
        description=comparison_schema.SECTIONS["Compare"],
        request=CompareBody,
        responses={200: comparison_schema.CompareResponse},
        examples=[
            OpenApiExample(
                "A draft", value=comparison_schema.SECTIONS["Example of a draft"], request_only=True
            ),
            OpenApiExample(
                "The past", value=comparison_schema.SECTIONS["Example of the past"], request_only=True
            ),
            OpenApiExample(
                "Who changes",
                value=comparison_schema.SECTIONS["Example of a response"],
                response_only=True,
                status_codes=["200"],
            ),
        ],
    )
    @action(
        detail=False,
        methods=["post"],
        body_limit=settings.COMPARE_BODY_LIMIT,
        parser_classes=[ManyValuesParser],
    )
    def compare(self, request: ApiRequest) -> Response:
        return Response(answer_question(self.caller, self.validated(CompareBody)))

    @extend_schema(
        operation_id="checkExpectations",
        summary="Check what saved contexts expect of flags",
        description=saved_schema.CHECK_DESCRIPTION,
        request=saved_schema.CheckBody,
        responses={200: saved_schema.CheckResponse},
        examples=[
            OpenApiExample("In production", value={"environments": ["production"]}, request_only=True),
            OpenApiExample("As if a draft were saved", value=saved_schema.AS_IF_EXAMPLE, request_only=True),
            OpenApiExample(
                "Not met", value=saved_schema.CHECK_EXAMPLE, response_only=True, status_codes=["200"]
            ),
        ],
    )
    @action(detail=False, methods=["post"], url_path="check-expectations")
    def check_expectations(self, request: ApiRequest) -> Response:
        body = self.validated(saved_schema.CheckBody)
        return Response(check_document(check_request(self.caller, body)))


Loaded = tuple[Mapping[str, ResponseSnapshot], list[str]]
Load = Callable[[PlaygroundRequest, int], Loaded]
"""Loads the flags of a request by environment, with notes, for this number of contexts."""


def answer_advanced(body: Any, load: Load) -> bytes:
    """Evaluates a body with the flags that `load` returns. Raises ValidationError."""
    invalid = request.list_invalid_properties(_read_context(body))
    query = read_request(body, several=True)
    context = {key: value for key, value in query.context.items() if key not in invalid}
    fields = request.split_context(context)
    snapshots, notes = load(query, request.count_contexts(fields))
    features = render_advanced_features(snapshots, query.environments, fields, query.at)
    answer = b'{"features":[%b],"input":%b' % (features, orjson.dumps(query.echo))
    if invalid:
        answer += b',"warnings":%b' % orjson.dumps({"invalidContextProperties": invalid})
    return answer + write_notes(notes) + b"}"


def write_notes(notes: list[str]) -> bytes:
    return b',"notes":%b' % orjson.dumps(notes) if notes else b""


def _read_context(body: Any) -> dict[str, Any]:
    """The context as sent, without the known fields, which are coerced whatever their type."""
    context = body.get("context") if isinstance(body, dict) else None
    known = {"userId", "sessionId", "remoteAddress", "environment", "appName", "currentTime"}
    sent = context.items() if isinstance(context, dict) else ()
    return {key: value for key, value in sent if key not in known}
