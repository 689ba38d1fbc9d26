"""/api/admin/addons: other systems that receive events."""

from typing import Any

from django.utils.functional import lazy
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.fields import Body, ListOf, MapOf, Texts, path_id
from groups.viewsets import ApiRequest, Permission, ViewSet
from integrations.addons import actions
from integrations.addons.queries import (
    annotate_events,
    find_attempted_deliveries,
    find_integration,
    find_readable,
    make_delivery_document,
    make_integration_document,
)
from integrations.models import Integration
from integrations.providers import PROVIDERS


class ParameterValue(serializers.CharField):
    """A string, a number or a boolean, kept as a string."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_blank=True, trim_whitespace=False, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        return str(data).lower() if isinstance(data, bool) else super().to_internal_value(data)


def _names(**options: Any) -> ListOf:
    return ListOf(child=serializers.CharField(max_length=255), required=False, default=list, **options)


class AddonBody(Body):
    provider = serializers.CharField(
        max_length=255, help_text=lazy(lambda: " or ".join(", ".join(PROVIDERS).rsplit(", ", 1)) + ".", str)()
    )
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True, default=None)
    enabled = serializers.BooleanField(required=False, default=True)
    parameters = MapOf(child=ParameterValue(), help_text="`*****` keeps a stored secret.")
    events = _names(help_text="Types of events.")
    projects = _names(help_text="Empty or `*`: all that are not private.")
    environments = _names(help_text="Empty or `*`: all. Events without an environment are always sent.")
    tags = _names(help_text="`type:value`: only events of flags that have one of these. Empty: all events.")
    productionOnly = serializers.BooleanField(
        required=False, default=False, help_text="Only environments of the type production."
    )
    onlyIfUsersChange = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Of events of flags, only those that change what generated users get, with their number.",
    )


_DELETED = (
    "Names in `{0}` that were deleted. Events of one that is created with the same name are not sent "
    "until the integration is saved again. Absent if there are none."
)


class AddonRecord(serializers.Serializer):
    id = serializers.IntegerField()
    provider = serializers.CharField()
    enabled = serializers.BooleanField()
    description = serializers.CharField(allow_null=True)
    parameters = serializers.DictField(help_text="Secrets are `*****`.")
    events = Texts()
    projects = Texts()
    environments = Texts()
    tags = Texts()
    productionOnly = serializers.BooleanField()
    onlyIfUsersChange = serializers.BooleanField()
    createdAt = serializers.DateTimeField()
    deletedProjects = Texts(required=False, help_text=_DELETED.format("projects"))
    deletedEnvironments = Texts(required=False, help_text=_DELETED.format("environments"))


class AddonParameterRecord(serializers.Serializer):
    name = serializers.CharField()
    displayName = serializers.CharField(source="label")
    type = serializers.CharField(help_text="url, text or textfield.")
    description = serializers.CharField()
    required = serializers.BooleanField()  # type: ignore[assignment]
    sensitive = serializers.BooleanField()
    placeholder = serializers.CharField()


class TagTypeOfProvider(serializers.Serializer):
    name = serializers.CharField()
    description = serializers.CharField()
    icon = serializers.CharField()


class AddonTypeRecord(serializers.Serializer):
    name = serializers.CharField()
    displayName = serializers.CharField()
    description = serializers.CharField()
    documentationUrl = serializers.CharField()
    parameters = AddonParameterRecord(many=True)
    events = Texts()
    tagTypes = TagTypeOfProvider(many=True, required=False)


class AddonList(serializers.Serializer):
    addons = AddonRecord(many=True)
    providers = AddonTypeRecord(many=True)


class IntegrationEventRecord(serializers.Serializer):
    id = serializers.CharField()
    integrationId = serializers.IntegerField()
    createdAt = serializers.DateTimeField()
    state = serializers.CharField(help_text="success, failed, successWithErrors or leftOut.")
    stateDetails = serializers.CharField()
    event = serializers.DictField()
    details = serializers.DictField(
        help_text="The request, without secrets, and the beginning of the answer."
    )


class IntegrationEventList(serializers.Serializer):
    integrationEvents = IntegrationEventRecord(many=True)


class ResentRecord(serializers.Serializer):
    resent = serializers.IntegerField(help_text="How many events are sent again.")


class SigningKeyRecord(serializers.Serializer):
    secret = serializers.CharField(help_text="`whsec_…`. It is not shown again.")


MAX_EVENTS, DEFAULT_EVENTS = 100, 50
_PAGE = [OpenApiParameter("limit", int, description="At most 100."), OpenApiParameter("offset", int)]


class AddonViewSet(ETagMixin, ViewSet):
    tags = ("Integrations",)
    lookup_url_kwarg = "addon_id"
    permissions = {
        "create": Permission.CREATE_ADDON,
        "update": Permission.UPDATE_ADDON,
        "destroy": Permission.DELETE_ADDON,
        "events": Permission.ADMIN,
        "test": Permission.UPDATE_ADDON,
        "signing_key": Permission.UPDATE_ADDON,
        "send_again": Permission.UPDATE_ADDON,
        "send_all_again": Permission.UPDATE_ADDON,
    }
    integration: Integration

    def authorize(self, addon_id: str | None = None, delivery_id: str | None = None) -> None:
        if addon_id is not None and self.action != "events":
            self.integration = find_integration(self.caller, path_id(addon_id, "Integration"))
        self.check_permission()

    def get_current_document(self) -> Document:
        return make_integration_document(self.integration)

    @extend_schema(operation_id="getAddons", responses={200: AddonList})
    def list(self, request: ApiRequest) -> Response:
        """List the integrations, and what can be integrated."""
        addons = [make_integration_document(integration) for integration in find_readable(self.caller)]
        providers = [
            provider.document() | {"parameters": AddonParameterRecord(provider.parameters, many=True).data}
            for provider in PROVIDERS.values()
        ]
        return Response({"addons": addons, "providers": providers})

    @extend_schema(operation_id="createAddon", request=AddonBody, responses={201: AddonRecord})
    def create(self, request: ApiRequest) -> Response:
        """Create an integration. It gets the events from now on."""
        created = actions.create_integration(self.validated(AddonBody), caller=self.caller)
        return Response(make_integration_document(created), status=201)

    @extend_schema(operation_id="getAddon", responses={200: AddonRecord})
    def retrieve(self, request: ApiRequest, addon_id: str) -> Response:
        """Get an integration."""
        return Response(make_integration_document(self.integration))

    @extend_schema(operation_id="updateAddon", request=AddonBody, responses={200: AddonRecord})
    def update(self, request: ApiRequest, addon_id: str) -> Response:
        """Replace an integration. A secret that is sent as `*****` stays, unless the URL leads to another server."""
        changed = actions.update_integration(
            self.integration.pk, self.validated(AddonBody), expected=self.expected, caller=self.caller
        )
        return Response(make_integration_document(changed))

    @extend_schema(operation_id="deleteAddon", responses={200: None})
    def destroy(self, request: ApiRequest, addon_id: str) -> Response:
        """Delete an integration and its deliveries."""
        actions.delete_integration(self.integration.pk, expected=self.expected, caller=self.caller)
        return Response()

    @extend_schema(
        operation_id="getIntegrationEvents", parameters=_PAGE, responses={200: IntegrationEventList}
    )
    @action(detail=True)
    def events(self, request: ApiRequest, addon_id: str) -> Response:
        """List the deliveries of an integration, newest first."""
        limit = min(_number(request, "limit", DEFAULT_EVENTS), MAX_EVENTS)
        offset = _number(request, "offset", 0)
        deliveries = list(
            find_attempted_deliveries(self.caller, path_id(addon_id, "Integration"))[offset : offset + limit]
        )
        records = [make_delivery_document(delivery, event) for delivery, event in annotate_events(deliveries)]
        return Response({"integrationEvents": records})

    @extend_schema(operation_id="testAddon", request=None, responses={202: None})
    @action(detail=True, methods=["post"])
    def test(self, request: ApiRequest, addon_id: str) -> Response:
        """Send a test. Its outcome appears in the list of deliveries."""
        actions.send_test(self.integration.pk, caller=self.caller)
        return Response(status=202)

    @extend_schema(operation_id="resendIntegrationEvent", request=None, responses={202: None})
    @action(detail=True, methods=["post"], url_path="events/<str:delivery_id>/resend")
    def send_again(self, request: ApiRequest, addon_id: str, delivery_id: str) -> Response:
        """Send an event again, with the same `webhook-id`."""
        actions.send_again(self.integration.pk, path_id(delivery_id, "Delivery"), caller=self.caller)
        return Response(status=202)

    @extend_schema(operation_id="resendFailedIntegrationEvents", request=None, responses={202: ResentRecord})
    @action(detail=True, methods=["post"], url_path="events/resend-failed")
    def send_all_again(self, request: ApiRequest, addon_id: str) -> Response:
        """Send all events again that failed in the last 30 days, with the same `webhook-id`."""
        number = actions.send_all_again(self.integration.pk, caller=self.caller)
        return Response({"resent": number}, status=202)

    @extend_schema(operation_id="createAddonSigningKey", request=None, responses={201: SigningKeyRecord})
    @action(detail=True, methods=["post"], url_path="signing-key")
    def signing_key(self, request: ApiRequest, addon_id: str) -> Response:
        """Create a key that signs requests as Standard Webhooks. The one before signs them too, for a day."""
        secret = actions.make_signing_key(self.integration.pk, caller=self.caller)
        return Response({"secret": secret}, status=201)


def _number(request: ApiRequest, name: str, default: int) -> int:
    """Reads a number like the reference: invalid text yields the default."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default
