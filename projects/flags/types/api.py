"""/api/admin/feature-types: flag types and their expected lifetimes."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.http.fields import Body
from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.flags.types.actions import set_lifetime
from projects.models import FlagType

MAX_LIFETIME = 36_500


class FlagTypeRecord(serializers.Serializer):
    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    lifetimeDays = serializers.IntegerField(allow_null=True, help_text="null: unlimited.")


class FlagTypeList(serializers.Serializer):
    version = serializers.IntegerField()
    types = FlagTypeRecord(many=True)


class LifetimeBody(Body):
    lifetimeDays = serializers.IntegerField(
        allow_null=True, min_value=0, max_value=MAX_LIFETIME, help_text="null or 0: unlimited."
    )


def make_flag_type_record(flag_type: FlagType) -> dict[str, Any]:
    return {
        "id": flag_type.pk,
        "name": flag_type.name,
        "description": flag_type.description,
        "lifetimeDays": flag_type.lifetime_days,
    }


class FlagTypeViewSet(ViewSet):
    tags = ("Feature types",)
    lookup_url_kwarg = "type_id"
    permissions = {"lifetime": Permission.ADMIN}

    @extend_schema(operation_id="getAllFeatureTypes", responses={200: FlagTypeList})
    def list(self, request: ApiRequest) -> Response:
        """List the types that a flag can have."""
        types = [make_flag_type_record(flag_type) for flag_type in FlagType.objects.all()]
        return Response({"version": 1, "types": types})

    @extend_schema(
        operation_id="updateFeatureTypeLifetime",
        request=LifetimeBody,
        responses={200: FlagTypeRecord},
        examples=[OpenApiExample("Seven weeks", {"lifetimeDays": 49}, request_only=True)],
    )
    @action(detail=True, methods=["put"])
    def lifetime(self, request: ApiRequest, type_id: str) -> Response:
        """Set the expected lifetime of flags of this type. Older flags are not changed."""
        days = self.validated(LifetimeBody)["lifetimeDays"]
        return Response(make_flag_type_record(set_lifetime(type_id, days or None, caller=self.caller)))
