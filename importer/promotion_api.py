"""The API endpoint that promotes flags: POST /api/admin/projects/:projectId/environments/promote."""

from functools import partial
from typing import Any

from drf_spectacular.utils import OpenApiExample, PolymorphicProxySerializer, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.edit_conflicts import Expected
from flagadmin.core.edit_conflicts.etags import ETagMixin, make_etag
from flagadmin.core.http.fields import MAX_NAME_LENGTH, Body, BoundedTexts, ListOf
from groups.access import Caller
from groups.authentication import ApiRequest
from groups.permissions import Permission
from importer.apply.execute import promote_flags
from importer.bulk_work import run_isolated
from importer.openapi import ReportEntry
from importer.plan.build import plan_import
from importer.promotion import DEFAULT_PARTS, MAX_FLAGS, PARTS, Promotion, read_promotion
from importer.report.document import make_promotion_document
from importer.trial import find_missing_comment, try_it, try_out
from projects.access import may_refuse_changes
from projects.projects.environments import remove_environment
from projects.viewsets import InProjectViewSet

DESCRIPTION = """\
Copies what flags have in environment `from` to environment `to` of the same project: their `strategies` and `variants`
there and, if `copy` names it, whether they are `enabled`. All flags are promoted, or none. Nothing else changes:
segments, context fields, dependencies, tags and links are of all environments.

* A flag that is off in `to` stays off unless `enabled` is copied. One that is turned on without an enabled strategy
  gets the default strategy; one that is left without an enabled strategy is turned off.
* Archived flags are skipped. A flag that the project does not have is refused with 400.
* With `planOnly`, nothing is written. The answer says what would change in each flag, and what prevents it: the
  promotion would succeed exactly when `errors` and `permissions` are empty. Its `ETag` in `If-Match` makes sure that
  what is promoted is what it says; if anything of it has changed, the answer is 412.

Requires what the changes would need one by one, in `to`: `CREATE_FEATURE_STRATEGY`, `UPDATE_FEATURE_STRATEGY`,
`DELETE_FEATURE_STRATEGY`, `UPDATE_FEATURE_ENVIRONMENT_VARIANTS`, `UPDATE_FEATURE_ENVIRONMENT`. The console
can undo it, among the past imports.
"""
REQUEST_EXAMPLE = {
    "from": "development",
    "to": "production",
    "features": ["checkout-redesign", "invoice-payment"],
    "copy": ["strategies", "variants"],
    "planOnly": True,
}
PLANNED_FLAGS = [
    {
        "name": "checkout-redesign",
        "action": "change",
        "changes": [
            {"part": "strategy", "before": "On for 10 % of users, by userId", "after": "On for everyone"},
        ],
    },
    {"name": "invoice-payment", "action": "same"},
]
COUNTS = {"create": 0, "change": 1, "same": 1, "skip": 0, "refuse": 0}
PLAN_EXAMPLE = {
    "project": "checkout",
    "from": "development",
    "to": "production",
    "counts": COUNTS,
    "features": PLANNED_FLAGS,
    "errors": [],
    "warnings": [],
    "permissions": [],
    "fingerprint": "5f2c8a2f0d9d4b0e6b3a1c7d8e9f00112233445566778899aabbccddeeff0011",
}
DONE_EXAMPLE = {
    "id": "0197f0a2-5d6e-7b3c-9d8e-1f2a3b4c5d6e",
    "project": "checkout",
    "from": "development",
    "to": "production",
    "counts": COUNTS,
    "features": [
        {"name": "checkout-redesign", "action": "change"},
        {"name": "invoice-payment", "action": "same"},
    ],
}


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
    """The plan checks the permissions, which depend on what would change."""

    conditional = frozenset({"create", "clear"})
    tagged = frozenset()
    tags = ("Environments",)
    permissions = {"create": None, "clear": Permission.UPDATE_PROJECT}

    @extend_schema(
        operation_id="promoteFeatures",
        summary="Promote flags from one environment to another",
        description=DESCRIPTION,
        request=PromotionBody,
        responses={
            200: PolymorphicProxySerializer(
                component_name="Promotion",
                serializers=[PromotionResult, PromotionPlan],
                resource_type_field_name=None,
            )
        },
        examples=[
            OpenApiExample("What would change", REQUEST_EXAMPLE, request_only=True),
            OpenApiExample("Plan", PLAN_EXAMPLE, response_only=True, status_codes=["200"]),
            OpenApiExample("Promoted", DONE_EXAMPLE, response_only=True, status_codes=["200"]),
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
        """Removes an environment that is called "promote" from the project: the address is the same."""
        remove_environment(project_id, "promote", expected=self.expected, caller=self.caller)
        return Response()


def plan_promotion(promotion: Promotion, *, caller: Caller) -> tuple[dict[str, Any], str]:
    """What the promotion would do now, and the ETag of that. Raises NotFound for a project that is archived.

    What refuses it as a whole is found by trying it out where the project may refuse it, and no part of the ETag.
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
