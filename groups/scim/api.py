"""/scim/v2: accounts and groups, for an identity provider (RFC 7643 and 7644).

/api/admin/scim-settings: whether an identity provider may manage accounts and groups, and its token.
"""

import hmac
from typing import Any, ClassVar

from django.conf import settings
from django.urls import path
from django.utils import timezone
from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.core.db.standby import committed_locally
from flagadmin.core.errors import AuthenticationRequired
from flagadmin.core.http.fields import Body
from flagadmin.core.http.request_bodies import FreedBodies, OrjsonRenderer, StrictJSONParser
from groups.access import Caller
from groups.authentication import ApiRequest, read_credential
from groups.models import ScimSettings
from groups.scim import actions
from groups.scim.actions import load_settings, make_caller, read_settings
from groups.tokens import LAST_USED_STEP, hash_secret
from groups.viewsets import Permission, ViewSet

MEDIA_TYPE = "application/scim+json"


class ScimParser(StrictJSONParser):
    media_type = MEDIA_TYPE


class ScimRenderer(OrjsonRenderer):
    media_type = MEDIA_TYPE


class ScimAuthentication(BaseAuthentication):
    """Accepts the SCIM token while SCIM is on."""

    def authenticate(self, request: Any) -> tuple[Caller, ScimSettings]:
        secret, scim = read_credential(request) or "", load_settings()
        if not hmac.compare_digest(scim.token_hash or "", hash_secret(secret)):
            raise _refuse("Send the token of SCIM in the Authorization header.")
        if not scim.is_enabled:
            raise _refuse("SCIM is switched off.")
        _note_use(scim)
        return make_caller(), scim


def _refuse(message: str) -> AuthenticationRequired:
    return AuthenticationRequired(message, headers={"WWW-Authenticate": "Bearer"})


def _note_use(scim: ScimSettings) -> None:
    now = timezone.now()
    if scim.seen_at is None or now - scim.seen_at > LAST_USED_STEP:
        with committed_locally():
            ScimSettings.objects.filter(pk=scim.pk).update(seen_at=now)


@extend_schema(exclude=True)
class ScimView(FreedBodies, APIView):
    """The operations of the standard, which describes its resources itself (`/Schemas`)."""

    request: ApiRequest
    authentication_classes = (ScimAuthentication,)
    permission_classes = ()
    parser_classes = (ScimParser, StrictJSONParser)
    renderer_classes = (ScimRenderer,)

    @cached_property
    def service(self) -> Any:
        from groups.scim import service  # imported late, for the reason in its docstring

        return service

    @property
    def caller(self) -> Caller:
        return self.request.user

    @property
    def base(self) -> str:
        server = settings.PUBLIC_URL or self.request.build_absolute_uri("/").rstrip("/")
        return f"{server}/scim/v2"

    @property
    def parameters(self) -> dict[str, str]:
        return {name: str(value) for name, value in self.request.query_params.items()}


class DiscoveryView(ScimView):
    kind: ClassVar[str] = ""

    def get(self, request: ApiRequest, key: str = "") -> Response:
        return Response(self.service.describe(self.kind, key))


class ServiceProviderConfigView(DiscoveryView):
    kind = "ServiceProviderConfig"


class SchemasView(DiscoveryView):
    kind = "Schemas"


class ResourceTypesView(DiscoveryView):
    kind = "ResourceTypes"


def _answer_created(document: dict[str, Any]) -> Response:
    return Response(document, status=201, headers={"Location": document["meta"]["location"]})


class UsersView(ScimView):
    def get(self, request: ApiRequest) -> Response:
        return Response(self.service.list_users(self.parameters, self.base))

    def post(self, request: ApiRequest) -> Response:
        return _answer_created(self.service.create_user(request.data, self.base, caller=self.caller))


class UserView(ScimView):
    def get(self, request: ApiRequest, key: str) -> Response:
        return Response(self.service.get_user(key, self.parameters, self.base))

    def put(self, request: ApiRequest, key: str) -> Response:
        return Response(self.service.replace_user(key, request.data, self.base, caller=self.caller))

    def patch(self, request: ApiRequest, key: str) -> Response:
        return Response(self.service.patch_user(key, request.data, self.base, caller=self.caller))

    def delete(self, request: ApiRequest, key: str) -> Response:
        self.service.delete_user(key, caller=self.caller)
        return Response(status=204)


class GroupsView(ScimView):
    def get(self, request: ApiRequest) -> Response:
        return Response(self.service.list_groups(self.parameters, self.base))

    def post(self, request: ApiRequest) -> Response:
        return _answer_created(self.service.create_group(request.data, self.base, caller=self.caller))


class GroupView(ScimView):
    def get(self, request: ApiRequest, key: str) -> Response:
        return Response(self.service.get_group(key, self.parameters, self.base))

    def put(self, request: ApiRequest, key: str) -> Response:
        return Response(self.service.replace_group(key, request.data, self.base, caller=self.caller))

    def patch(self, request: ApiRequest, key: str) -> Response:
        """Returns 204, because a group may have many members."""
        self.service.patch_group(key, request.data, caller=self.caller)
        return Response(status=204)

    def delete(self, request: ApiRequest, key: str) -> Response:
        self.service.delete_group(key, caller=self.caller)
        return Response(status=204)


urlpatterns = [
    path("ServiceProviderConfig", ServiceProviderConfigView.as_view()),
    path("Schemas", SchemasView.as_view()),
    path("Schemas/<str:key>", SchemasView.as_view()),
    path("ResourceTypes", ResourceTypesView.as_view()),
    path("ResourceTypes/<str:key>", ResourceTypesView.as_view()),
    path("Users", UsersView.as_view()),
    path("Users/<str:key>", UserView.as_view()),
    path("Groups", GroupsView.as_view()),
    path("Groups/<str:key>", GroupView.as_view()),
]


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
