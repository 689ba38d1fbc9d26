"""/api/admin/scim-settings: whether an identity provider may manage accounts and groups, and its token."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.http.fields import Body
from groups.models import ScimSettings
from groups.scim import actions
from groups.scim.queries import read_settings
from groups.viewsets import ApiRequest, Permission, ViewSet


class ScimSettingsBody(Body):
    enabled = serializers.BooleanField()
    assumeControlOfExisting = serializers.BooleanField(
        required=False,
        help_text="Find accounts by their email address too, not only by their user name. The provider's user name is "
        "theirs from then on.",
    )


class ScimSettingsRecord(serializers.Serializer):
    enabled = serializers.BooleanField()
    assumeControlOfExisting = serializers.BooleanField()
    hasToken = serializers.BooleanField()


class ScimTokenRecord(serializers.Serializer):
    token = serializers.CharField()


class ScimSettingsViewSet(ViewSet):
    tags = ("People",)
    permissions = {
        "list": Permission.ADMIN,
        "create": Permission.ADMIN,
        "generate_new_token": Permission.ADMIN,
    }

    @extend_schema(operation_id="getScimSettings", responses={200: ScimSettingsRecord})
    def list(self, request: ApiRequest) -> Response:
        """Say whether SCIM is on, and whether it has a token."""
        return Response(_record(read_settings(self.caller)))

    @extend_schema(
        operation_id="setScimSettings", request=ScimSettingsBody, responses={200: ScimSettingsRecord}
    )
    def create(self, request: ApiRequest) -> Response:
        """Switch SCIM on or off, and say how accounts are found."""
        values = self.validated(ScimSettingsBody)
        by_email = values.get("assumeControlOfExisting")
        scim = actions.set_enabled(values["enabled"], finds_by_email=by_email, caller=self.caller)
        return Response(_record(scim))

    @extend_schema(operation_id="generateScimToken", request=None, responses={200: ScimTokenRecord})
    @action(detail=False, methods=["post"], url_path="generate-new-token")
    def generate_new_token(self, request: ApiRequest) -> Response:
        """Make a new token for SCIM. The one before no longer works. It is shown only here."""
        return Response({"token": actions.make_token(caller=self.caller)})


def _record(scim: ScimSettings) -> dict[str, bool]:
    return scim.document() | {"hasToken": scim.has_token}
