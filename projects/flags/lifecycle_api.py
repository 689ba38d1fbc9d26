"""…/features/:name/lifecycle: the stages of a flag's life, and marking it as completed."""

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.fields import Body, validated
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_flag
from projects.flags import lifecycle as actions
from projects.flags.lifecycle_queries import lifecycle_document
from projects.flags.serializers import StageRecord

TAGS = ["Features"]


class CompletionBody(Body):
    status = serializers.ChoiceField(
        choices=["kept", "discarded"], help_text="What becomes of the feature in the code."
    )
    statusValue = serializers.CharField(
        source="status_value",
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=255,
        help_text="The variant that was kept.",
    )


class LifecycleView(APIView):
    @extend_schema(
        operation_id="getFeatureLifecycle",
        tags=TAGS,
        responses={200: StageRecord(many=True)} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """The stages of the flag's life so far, also of an archived flag."""
        return Response(lifecycle_document(access_flag(request.user, project_id, name)))


class CompleteView(APIView):
    @extend_schema(
        operation_id="completeFeature",
        tags=TAGS,
        request=CompletionBody,
        responses={200: None} | refusals(400, 403, 404, 415),
        examples=[
            OpenApiExample(
                "One variant was kept", {"status": "kept", "statusValue": "blue"}, request_only=True
            )
        ],
    )
    def post(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Mark the flag as completed: it can be removed from the code. Its result does not change."""
        access_flag(request.user, project_id, name, archived=False, permission=Permission.UPDATE_FEATURE)
        outcome = validated(CompletionBody(data=request.data))
        actions.complete_flag(project_id, name, **outcome, caller=request.user)
        return Response()


class UncompleteView(APIView):
    @extend_schema(
        operation_id="uncompleteFeature", tags=TAGS, request=None, responses={200: None} | refusals(403, 404)
    )
    def post(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Return the flag to the stage before."""
        actions.uncomplete_flag(project_id, name, caller=request.user)
        return Response()


LIFECYCLE = "projects/<str:project_id>/features/<str:name>/lifecycle"
urlpatterns = [
    path(LIFECYCLE, LifecycleView.as_view()),
    path(f"{LIFECYCLE}/complete", CompleteView.as_view()),
    path(f"{LIFECYCLE}/uncomplete", UncompleteView.as_view()),
]
