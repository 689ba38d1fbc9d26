"""/api/admin/constraints/validate: whether a constraint could be stored."""

from dataclasses import replace

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import check_problems
from flagadmin.http.fields import validated
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from projects.limits import Limits
from projects.strategies.constraint_rules import constraint_document, constraint_problems
from projects.strategies.constraint_serializers import ConstraintBody
from projects.strategies.known_names import legal_values


class ValidateConstraintView(APIView):
    @extend_schema(
        operation_id="validateConstraint",
        tags=["Segments"],
        request=ConstraintBody,
        responses={204: None} | refusals(400, 403, 415),
        examples=[
            OpenApiExample(
                "A version",
                {"contextName": "version", "operator": "SEMVER_GT", "value": "2.1.0"},
                request_only=True,
            )
        ],
    )
    def post(self, request: ApiRequest) -> Response:
        """Whether a constraint could be put on a strategy or a segment of any project."""
        constraint = constraint_document(validated(ConstraintBody(data=request.data)))
        problems = constraint_problems(
            constraint, "", legal_values=legal_values(None), limits=Limits.from_settings()
        )
        check_problems(replace(problem, path=problem.path.removeprefix(".")) for problem in problems)
        return Response(status=204)


urlpatterns = [path("constraints/validate", ValidateConstraintView.as_view())]
