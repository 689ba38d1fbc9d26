"""The API endpoint that promotes flags: POST /api/admin/projects/:projectId/environments/promote."""

from functools import partial
from typing import Any

from drf_spectacular.utils import OpenApiExample, PolymorphicProxySerializer, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.edit_conflicts import Expected
from flagadmin.core.edit_conflicts.etags import ETagMixin, make_etag
from flagadmin.core.http.fields import MAX_NAME_LENGTH, Body, BoundedTexts, ListOf
from groups.access import Caller, Permission
from groups.authentication import ApiRequest
from importer.apply.execute import promote_flags
from importer.bulk_work import run_isolated
from importer.openapi import SECTIONS, ReportEntry
from importer.plan.build import plan_import
from importer.promotion import DEFAULT_PARTS, MAX_FLAGS, PARTS, Promotion, read_promotion
from importer.report import make_promotion_document
from importer.runs import find_missing_comment, try_it, try_out
from projects.access import may_refuse_changes
from projects.project_scope import InProjectViewSet
from projects.projects.environments import remove_environment


class PromotionBody(Body):
    to = serializers.CharField(help_text="The environment that changes.")
    features = BoundedTexts(min_length=1, max_length=MAX_FLAGS)
    copy = ListOf(
        child=serializers.ChoiceField(PARTS),
        min_length=1,
        required=False,
        help_text="Default strategies and variants.",
    )
    planOnly = serializers.BooleanField(required=False, default=False, help_text="Write nothing.")

    def get_fields(self) -> dict[str, serializers.Field]:
        source = serializers.CharField(
            source="source", max_length=MAX_NAME_LENGTH, help_text="The environment that is copied."
        )
        return {"from": source, **super().get_fields()}


class PromotedFlag(serializers.Serializer[Any]):
    name = serializers.CharField()
    action = serializers.ChoiceField(["change", "same", "skip", "refuse"])
    reason = serializers.CharField(required=False)
    changes = serializers.ListField(
        child=serializers.DictField(), required=False, help_text="`{part, before, after}`, in a plan."
    )


class PromotionResult(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    project = serializers.CharField()
    to = serializers.CharField()
    counts = serializers.DictField(child=serializers.IntegerField())
    features = PromotedFlag(many=True)

    def get_fields(self) -> dict[str, serializers.Field]:
        return {**super().get_fields(), "from": serializers.CharField()}


class PromotionPlan(PromotionResult):
    id = None  # type: ignore[assignment]
    errors = ReportEntry(many=True)  # type: ignore[assignment]
    warnings = ReportEntry(many=True)
    permissions = ReportEntry(many=True)
    fingerprint = serializers.CharField()


class PromotionViewSet(ETagMixin, InProjectViewSet):
    """The plan checks the permissions, which depend on the changes."""

    conditional = frozenset({"create", "clear"})
    tagged = frozenset()
    tags = ("Environments",)
    permissions = {"create": None, "clear": Permission.UPDATE_PROJECT}

    @extend_schema(
        operation_id="promoteFeatures",
        summary="Promote flags from one environment to another",
        description=SECTIONS["Promotion"],
        request=PromotionBody,
        responses={
            200: PolymorphicProxySerializer(
                component_name="Promotion",
                serializers=[PromotionResult, PromotionPlan],
                resource_type_field_name=None,
            )
        },
        examples=[
            OpenApiExample("What would change", SECTIONS["Example of a promotion"], request_only=True),
            OpenApiExample("Plan", SECTIONS["Example of a plan"], response_only=True, status_codes=["200"]),
            OpenApiExample(
                "Promoted", SECTIONS["Example of a result"], response_only=True, status_codes=["200"]
            ),
        ],
    )
    def create(self, request: ApiRequest, project_id: str) -> Response:
        body = self.validated(PromotionBody)
        promotion = Promotion(
            project_id,
            body["source"],
            body["to"],
            tuple(dict.fromkeys(body["features"])),
            frozenset(body.get("copy", DEFAULT_PARTS)),
        )
        if body["planOnly"]:
            plan, etag = run_isolated(promotion.size, plan_promotion, promotion, caller=self.caller)
            return Response(plan, headers={"ETag": etag})
        report = run_isolated(
            promotion.size, apply_promotion, promotion, expected=self.expected, caller=self.caller
        )
        return Response(report)

    @extend_schema(exclude=True)
    def clear(self, request: ApiRequest, project_id: str) -> Response:
        """Removes an environment named "promote" from the project: the URL is the same."""
        remove_environment(project_id, "promote", expected=self.expected, caller=self.caller)
        return Response()


def plan_promotion(promotion: Promotion, *, caller: Caller) -> tuple[dict[str, Any], str]:
    """The effects of the promotion now, and their ETag. Raises NotFound for an archived project.

    If the project may refuse it as a whole, it is tried to find out, which does not affect the ETag.
    """
    plan = plan_import(read_promotion(promotion), caller=caller)
    if plan.target is None:
        plan.check_issues()
    document = make_promotion_document(promotion, plan)
    etag = make_etag(document)
    if plan.can_be_applied:
        refusals = find_missing_comment(plan)
        if not refusals and may_refuse_changes(plan.project):
            _, refusals = try_it(partial(try_out, partial(promote_flags, promotion, caller=caller)))
        document["errors"] += refusals
    return document, etag


def apply_promotion(promotion: Promotion, *, expected: Expected, caller: Caller) -> dict[str, Any]:
    run = promote_flags(promotion, expected=expected, caller=caller)
    return {
        "id": str(run.id),
        "project": run.project,
        "from": run.promoted_from,
        "to": run.environment,
        "counts": run.counts,
        "features": [report.document() for report in run.reports.all()],
    }
