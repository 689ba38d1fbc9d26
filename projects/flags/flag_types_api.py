"""/api/admin/feature-types: what flags are for, and how long they are expected to live."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.fields import Body, validated
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.flags.flag_types import set_lifetime
from projects.models import FlagType

TAGS = ["Feature types"]
LONGEST_LIFETIME = 36_500


class FlagTypeRecord(serializers.Serializer):
    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    lifetimeDays = serializers.IntegerField(allow_null=True, help_text="null for ever.")


class FlagTypeList(serializers.Serializer):
    version = serializers.IntegerField()
    types = FlagTypeRecord(many=True)


class LifetimeBody(Body):
    lifetimeDays = serializers.IntegerField(
        allow_null=True, min_value=0, max_value=LONGEST_LIFETIME, help_text="null or 0 for ever."
    )


def flag_type_record(flag_type: FlagType) -> dict[str, Any]:
    return {
        "id": flag_type.pk,
        "name": flag_type.name,
        "description": flag_type.description,
        "lifetimeDays": flag_type.lifetime_days,
    }


class FlagTypesView(APIView):
    @extend_schema(
        operation_id="getAllFeatureTypes", tags=TAGS, responses={200: FlagTypeList} | refusals(403)
    )
    def get(self, request: ApiRequest) -> Response:
        """The types a flag can have."""
        types = [flag_type_record(flag_type) for flag_type in FlagType.objects.all()]
        return Response({"version": 1, "types": types})


class LifetimeView(APIView):
    @extend_schema(
        operation_id="updateFeatureTypeLifetime",
        tags=TAGS,
        request=LifetimeBody,
        responses={200: FlagTypeRecord} | refusals(400, 403, 404, 415),
        examples=[OpenApiExample("Seven weeks", {"lifetimeDays": 49}, request_only=True)],
    )
    def put(self, request: ApiRequest, type_id: str) -> Response:
        """Say how long flags of this type are expected to live. Nothing happens to a flag that is older."""
        request.user.check(Permission.ADMIN)
        days = validated(LifetimeBody(data=request.data))["lifetimeDays"]
        return Response(flag_type_record(set_lifetime(type_id, days or None, caller=request.user)))


urlpatterns = [
    path("feature-types", FlagTypesView.as_view()),
    path("feature-types/<str:type_id>/lifetime", LifetimeView.as_view()),
]
