"""Accepts the feedback that the reference server's console sends, so that it works here; nothing is stored."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.http.fields import MAX_NAME_LENGTH, Body
from flagadmin.core.http.timestamps import iso
from groups.authentication import ApiRequest
from groups.people.personal_tokens import get_own_user
from groups.viewsets import ViewSet


class FeedbackUpdateBody(Body):
    neverShow = serializers.BooleanField(required=False, default=False)


class FeedbackBody(FeedbackUpdateBody):
    feedbackId = serializers.CharField(max_length=MAX_NAME_LENGTH)


class FeedbackRecord(serializers.Serializer):
    userId = serializers.IntegerField()
    neverShow = serializers.BooleanField()
    given = serializers.DateTimeField()
    feedbackId = serializers.CharField()


class SplashRecord(serializers.Serializer):
    splashId = serializers.CharField()
    seen = serializers.BooleanField()


class UiErrorBody(Body):
    errorMessage = serializers.CharField(allow_blank=True)
    errorStack = serializers.CharField(allow_blank=True, required=False)


class FeedbackViewSet(ViewSet):
    tags = ("Users",)
    permissions = {"feedback": None, "update_feedback": None, "splash": None, "ui_error": None}

    @extend_schema(operation_id="createFeedback", request=FeedbackBody, responses=FeedbackRecord)
    @action(methods=["post"], detail=False)
    def feedback(self, request: ApiRequest) -> Response:
        """Accept a console's note that its user was asked for feedback. Nothing is stored."""
        body = self.validated(FeedbackBody)
        return self.answer(body["feedbackId"], body)

    @extend_schema(operation_id="updateFeedback", request=FeedbackUpdateBody, responses=FeedbackRecord)
    @action(methods=["put"], detail=False, url_path="feedback/<str:feedback_id>")
    def update_feedback(self, request: ApiRequest, feedback_id: str) -> Response:
        """Accept a change of such a note. Nothing is stored."""
        return self.answer(feedback_id, self.validated(FeedbackUpdateBody))

    def answer(self, feedback_id: str, body: dict[str, Any]) -> Response:
        return Response(
            {
                "userId": get_own_user(self.caller).pk,
                "neverShow": body["neverShow"],
                "given": iso(timezone.now()),
                "feedbackId": feedback_id,
            }
        )

    @extend_schema(operation_id="updateSplashSettings", request=None, responses=SplashRecord)
    @action(methods=["post"], detail=False, url_path="splash/<str:splash_id>")
    def splash(self, request: ApiRequest, splash_id: str) -> Response:
        """Accept a console's note that its user has seen an announcement. Nothing is stored."""
        return Response({"splashId": splash_id, "seen": True})

    @extend_schema(operation_id="uiObservability", request=UiErrorBody, responses={204: None})
    @action(methods=["post"], detail=False, url_path="record-ui-error")
    def ui_error(self, request: ApiRequest) -> Response:
        """Accept a console's report of an error in the browser. Nothing is stored."""
        self.validated(UiErrorBody)
        return Response(status=204)
