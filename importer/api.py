"""The API endpoints for importing, validating and exporting flags (/api/admin/features-batch).

Exports flags as a JSON document and records an audit event.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
from django.conf import settings
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.parsers import BaseParser
from rest_framework.response import Response

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.change_options import changing, get_comment
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.document import Document
from flagadmin.core.errors import ValidationError, check_problems
from flagadmin.core.http.fields import has_keyword, read_boolean
from flagadmin.core.http.openapi import refusal
from flagadmin.core.http.request_bodies import StrictJSONParser
from groups.viewsets import ApiRequest, Caller, ViewSet
from importer import openapi as schema
from importer.apply.execute import import_body
from importer.body.schemas import Body, parse_body, parse_bulk_json, read_body
from importer.bulk_work import bulk_work, run_isolated
from importer.effects import answer_plan
from importer.models import ImportRun
from importer.plan.build import plan_import
from importer.report import (
    ALSO_LEFT_OUT,
    LEFT_OUT,
    UNPROPOSABLE,
    Entry,
    find_needed_first,
    list_also_left_out,
    list_left_out,
    list_unproposable,
    make_validation_report,
)
from importer.runs import find_missing_comment, try_it, try_out
from playground.comparison.given_contexts import check_contexts
from playground.comparison.request import Answer, CompareResponse
from playground.models import SavedContext
from playground.saved_contexts.queries import select_visible_expectations
from projects.access import check_environment, check_project, may_refuse_changes
from projects.export import export_flags
from releases.gate_refusal import NeedsChangeRequest
from releases.requests.propose import add_changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The selection to export. For an import into flagadmin, ``full_segments`` adds the constraints of segments and
    the payload schemas of flags, and ``saved_contexts`` the member ``savedContexts``. Other importers refuse them.
    """

    environment: str
    features: tuple[str, ...] = ()
    tag: str | None = None
    project: str | None = None
    full_segments: bool = False
    saved_contexts: bool = False


def list_saved_context_entries(document: Document, environment: str, caller: Caller) -> Iterator[Document]:
    """The saved contexts of the flags' projects, and those of no project with expectations of these flags.

    Includes their expectations of these flags in the environment.
    """
    flags = {feature["name"] for feature in document["features"]}
    projects = {feature["project"] for feature in document["features"]}
    contexts = list(SavedContext.objects.readable_by(caller).usable_in(*projects))
    visible = select_visible_expectations(caller, contexts)
    for saved in contexts:
        expectations = [
            {key: value for key, value in expectation.items() if key != "environment"}
            for expectation in visible[saved.pk]
            if expectation["flag"] in flags and expectation["environment"] == environment
        ]
        if saved.project_id or expectations:
            yield {
                "name": saved.name,
                "project": saved.project_id,
                "context": saved.context,
                "note": saved.note,
                "expectations": expectations,
            }


def export_selection(selection: Selection, *, caller: Caller) -> Document:
    """The export document. Raises ValidationError for an unknown environment or project.

    Everything is read in one database snapshot.
    """
    with consistent_reads(read_only=False):
        check_environment(selection.environment)
        if selection.project is not None:
            check_project(caller, selection.project)
        document = export_flags(
            selection.environment,
            names=selection.features,
            tag=selection.tag,
            project=selection.project,
            readable=caller.readable_projects,
            full_segments=selection.full_segments,
        )
        if selection.saved_contexts:
            document["savedContexts"] = list(
                list_saved_context_entries(document, selection.environment, caller)
            )
        record(
            Event(
                type=EventType.FEATURES_EXPORTED,
                project=selection.project,
                environment=selection.environment,
                after={"features": len(document["features"])},
            ),
            actor=caller,
        )
    return document


EXAMPLE = OpenApiExample("One flag", value=schema.SECTIONS["Example of an import"], request_only=True)
NO_PROJECT = refusal(404, "The project does not exist, is archived, or the caller may not read it.")


class BytesParser(BaseParser):
    """Leaves JSON unparsed: the import parses it itself, faster and with all errors at once."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return stream.read()


class BatchViewSet(ViewSet):
    """Permissions depend on the body: the plan checks an import's permissions; exports omit unreadable projects."""

    tags = ("Import and export",)
    permissions = {"import_flags": None, "validate": None, "compare": None, "export": None}
    body_limit = settings.IMPORT_BODY_LIMIT  # an export may name many flags
    parser_classes = (BytesParser,)

    @extend_schema(
        operation_id="importFeatures",
        summary="Import flags into a project and environment",
        description=schema.SECTIONS["Import"],
        request=schema.ImportBody,
        parameters=[
            OpenApiParameter("report", bool, description="Return what happened to each flag."),
            OpenApiParameter("Prefer", str, OpenApiParameter.HEADER, description="return=representation"),
        ],
        responses={
            200: OpenApiResponse(
                description="Imported. No body unless a report is requested, or the environment takes change "
                "requests: `changeRequest` is your draft with the changes then, by its `id` and `state`, and "
                "`leftOut` names flags of which it leaves something out, `alsoLeftOut` what else is in the body."
            ),
            404: NO_PROJECT,
        },
        examples=[EXAMPLE],
    )
    @action(detail=False, methods=["post"], url_path="import")
    def import_flags(self, request: ApiRequest) -> Response:
        body = self._read_body()
        report = run_isolated(len(body), import_bytes, body, caller=self.caller, report=wants_report(request))
        return Response(report)

    @extend_schema(
        operation_id="validateImport",
        summary="Check what would prevent an import",
        description=schema.SECTIONS["Validate"],
        request=schema.ImportBody,
        responses={200: schema.ValidationReport},
        examples=[
            EXAMPLE,
            OpenApiExample(
                "A segment is missing",
                value=schema.SECTIONS["Example of a validation"],
                response_only=True,
                status_codes=["200"],
            ),
        ],
    )
    @action(detail=False, methods=["post"])
    def validate(self, request: ApiRequest) -> Response:
        body = self._read_body()
        return Response(run_isolated(len(body), validate_bytes, body, caller=self.caller))

    @extend_schema(
        operation_id="compareImport",
        summary="Say who gets something else after an import, without importing",
        description=schema.SECTIONS["Who changes"],
        request=schema.CompareImportBody,
        parameters=[schema.CompareQuery],
        responses={200: CompareResponse, 404: NO_PROJECT},
        examples=[
            EXAMPLE,
            OpenApiExample(
                "Who changes",
                value=schema.SECTIONS["Example of a comparison"],
                response_only=True,
                status_codes=["200"],
            ),
        ],
    )
    @action(detail=False, methods=["post"])
    def compare(self, request: ApiRequest) -> Response:
        query = schema.CompareQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        contexts = dict(query.validated_data)
        limit, named = contexts.pop("limit"), sorted(contexts.keys() & request.query_params.keys())
        body = self._read_body()
        options = {"url_contexts": contexts, "named": named, "limit": limit}
        return Response(run_isolated(len(body), compare_bytes, body, caller=self.caller, **options))

    @extend_schema(
        operation_id="exportFeatures",
        summary="Export flags as they are in an environment",
        description=schema.SECTIONS["Export"],
        request=schema.ExportQuery,
        parameters=[
            OpenApiParameter(
                "segments",
                str,
                enum=["full"],
                description="`full`: segments come with their `constraints`, and flags with their payload schemas, for "
                "an import into a server like this.",
            ),
            OpenApiParameter(
                "savedContexts",
                bool,
                description="Add `savedContexts`, with what they expect of these flags there, for an import into a "
                "server like this.",
            ),
        ],
        responses={200: schema.ExportResult},
        examples=[
            OpenApiExample(
                "A project", value={"environment": "production", "project": "checkout"}, request_only=True
            )
        ],
    )
    @action(detail=False, methods=["post"], parser_classes=[StrictJSONParser])
    def export(self, request: ApiRequest) -> Response:
        query = self.validated(schema.ExportQuery)
        selection = Selection(
            environment=query["environment"],
            features=tuple(query.get("features", ())),
            tag=query.get("tag"),
            project=query.get("project"),
            full_segments=has_keyword(request, "segments", "full"),
            saved_contexts=read_boolean(request, "savedContexts"),
        )
        document = export_selection(selection, caller=self.caller)
        headers = {"Content-Disposition": f'attachment; filename="{make_file_name(selection)}"'}
        return Response(orjson.dumps(document), headers=headers if query["downloadFile"] else None)

    def _read_body(self) -> bytes:
        """The request body. Raises ContentTypeNotAccepted if it is not JSON."""
        data = self.request.data
        return data if isinstance(data, bytes) else b""


def import_bytes(body: bytes, *, caller: Caller, report: bool) -> dict[str, Any] | None:
    document = parse_body(body)
    with changing(comment=get_comment() or document.comment):
        result = import_or_propose(document, caller=caller)
    if isinstance(result, ImportRun):
        return import_report(result) if report else None
    return result


def import_or_propose(
    document: Body, *, caller: Caller, run: Callable[[Callable[[], Any]], Any] = lambda work: work()
) -> ImportRun | dict[str, Any]:
    """Imports, or puts the changes into a draft if a change request is needed, by calling ``run``."""
    result: ImportRun | dict[str, Any]
    try:
        result = run(partial(import_body, document, caller=caller))
    except NeedsChangeRequest as refusal:
        if refusal.gated.environment != document.environment:
            raise
        result = run(partial(propose_import, refusal, document, caller=caller))
    return result


def propose_import(refusal: NeedsChangeRequest, document: Body, *, caller: Caller) -> dict[str, Any]:
    """Puts the import's changes into the caller's draft. Raises the refusal if no request can make them."""
    gated = refusal.gated
    if not gated.changes:
        raise refusal
    plan = plan_import(document, caller=caller)
    proposed = {change.feature for change in gated.changes}
    check_problems(find_needed_first(plan, proposed))
    flags = {feature["name"] for feature in document.data["features"]}
    request = add_changes(
        gated.project, gated.environment, gated.changes, replaces_strategies=flags, caller=caller
    )
    made = {"id": request.pk, "state": request.state, "changes": request.changes.count()}
    left_out = {"leftOut": list_left_out(plan, proposed), "alsoLeftOut": list_also_left_out(plan)}
    return {"changeRequest": made} | {member: names for member, names in left_out.items() if names}


def validate_bytes(body: bytes, *, caller: Caller) -> dict[str, Any]:
    document = parse_body(body)
    with changing(comment=get_comment() or document.comment):
        plan = plan_import(document, caller=caller)
        report = make_validation_report(plan)
        if plan.target is not None:
            report["errors"] += find_missing_comment(plan)
            if names := list_unproposable(plan, caller):
                report["errors"].append({"message": UNPROPOSABLE, "affectedItems": names})
        if plan.can_be_applied and not report["errors"] and may_refuse_changes(plan.project):
            _try_import(document, report, caller)
    return report


def _try_import(document: Body, report: dict[str, list[Entry]], caller: Caller) -> None:
    """Adds to the report the reason for refusing the whole import, or the parts that a change request would omit."""
    result, refusals = try_it(partial(import_or_propose, document, caller=caller, run=try_out))
    report["errors"] += refusals
    for member, message in (("leftOut", LEFT_OUT), ("alsoLeftOut", ALSO_LEFT_OUT)):
        if isinstance(result, dict) and member in result:
            report["warnings"].append({"message": message, "affectedItems": result[member]})


@bulk_work
def compare_bytes(
    body: bytes, *, caller: Caller, url_contexts: Mapping[str, Any], named: Sequence[str], limit: int
) -> Answer:
    """``url_contexts``: the contexts if the body gives none; ``named`` are the context members in the URL."""
    document = parse_bulk_json(body) if body.strip() else {}
    contexts = take_contexts(document)
    if contexts is not None and named:
        raise ValidationError.at(named[0], "must be left out of the URL if the body has contexts")
    plan = plan_import(read_body(document), caller=caller)
    plan.check_issues()
    return answer_plan(
        plan, caller=caller, contexts=url_contexts if contexts is None else contexts, limit=limit
    )


def take_contexts(document: Any) -> Mapping[str, Any] | None:
    """Removes `contexts` from the body of an import, if present, and returns them. Raises ValidationError."""
    if not isinstance(document, dict) or "contexts" not in document:
        return None
    return check_contexts(document.pop("contexts"))


def wants_report(request: ApiRequest) -> bool:
    """Whether the request has ``?report=1`` or ``Prefer: return=representation`` (RFC 7240)."""
    preferences = request.headers.get("Prefer", "").replace(" ", "").lower().split(",")
    return request.query_params.get("report") in ("1", "true") or "return=representation" in preferences


def import_report(run: ImportRun) -> dict[str, Any]:
    return {
        "id": str(run.id),
        "project": run.project,
        "environment": run.environment,
        "counts": run.counts,
        "features": [report.document() for report in run.reports.all()],
    }


def make_file_name(selection: Selection) -> str:
    """A file name such as ``checkout-production.json``, with letters, digits and ``-._`` only."""
    words = f"{selection.project or selection.tag or 'flags'}-{selection.environment}"
    return "".join(c if c.isascii() and (c.isalnum() or c in "-._") else "-" for c in words) + ".json"
