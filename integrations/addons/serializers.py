"""Bodies and answers of the API of integrations."""

from typing import Any

from rest_framework import serializers

from flagadmin.core.http.fields import Body, ListOf, MapOf, Texts


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
        max_length=255, help_text="webhook, slack-app, slack, teamsworkflow, email, datadog or new-relic."
    )
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True, default=None)
    enabled = serializers.BooleanField(required=False, default=True)
    parameters = MapOf(child=ParameterValue(), help_text="`*****` keeps a stored secret.")
    events = _names(help_text="Types of events.")
    projects = _names(help_text="Empty or `*`: all.")
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


class AddonParameterRecord(serializers.Serializer):
    name = serializers.CharField()
    displayName = serializers.CharField()
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


class SigningKeyRecord(serializers.Serializer):
    secret = serializers.CharField(help_text="`whsec_…`. It is not shown again.")
