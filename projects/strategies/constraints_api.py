"""/api/admin/constraints/validate: whether a constraint could be stored."""

from dataclasses import replace

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.errors import check_problems
from groups.authentication import ApiRequest
from groups.viewsets import ViewSet
from projects.limits import Limits
from projects.strategies.constraint_rules import constraint_document, constraint_problems
from projects.strategies.constraint_serializers import ConstraintBody
from projects.strategies.known_names import legal_values


class ConstraintViewSet(ViewSet):
    permissions = {"validate": None}

    @extend_schema(
        operation_id="validateConstraint",
        tags=["Segments"],
        request=ConstraintBody,
        responses={204: None},
        examples=[
            OpenApiExample(
                "A version",
                {"contextName": "version", "operator": "SEMVER_GT", "value": "2.1.0"},
                request_only=True,
            )
        ],
    )
    @action(detail=False, methods=["post"])
    def validate(self, request: ApiRequest) -> Response:
        """Check whether a constraint could be put on a strategy or a segment of any project."""
        constraint = constraint_document(self.validated(ConstraintBody))
        problems = constraint_problems(
            constraint, "", legal_values=legal_values(None), limits=Limits.from_settings()
        )
        check_problems(replace(problem, path=problem.path.removeprefix(".")) for problem in problems)
        return Response(status=204)
