"""Bodies and answers of the API of signals."""

from typing import Any

from rest_framework import serializers

from flagadmin.core.http.fields import MAX_NAME_LENGTH, Body, MapOf
from integrations.models import SignalRule, SignalSource


class SourceBody(Body):
    name = serializers.CharField(max_length=100, help_text="Part of the URL: `/api/signals/NAME`.")
    kind = serializers.ChoiceField(SignalSource.Kind.values)


class SignalRuleBody(Body):
    name = serializers.CharField(max_length=100)
    match = MapOf(
        child=serializers.CharField(max_length=500),
        help_text="Values by path, such as `labels.severity`. `*` is any. A signal must have all of them.",
    )
    project = serializers.CharField(max_length=MAX_NAME_LENGTH)
    flag = serializers.CharField(max_length=MAX_NAME_LENGTH)
    environment = serializers.CharField(max_length=MAX_NAME_LENGTH)
    then = serializers.ChoiceField(SignalRule.Action.values)
    enabled = serializers.BooleanField(required=False, default=False)


class SignalBody(Body):
    """An object: of Alertmanager as it sends it, otherwise any. Its members are not limited to these."""

    alerts = serializers.JSONField(
        required=False, help_text="Of Alertmanager: `status`, `labels`, `annotations`."
    )

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        super().to_internal_value(data)
        return dict(data)


class SignalRuleRecord(SignalRuleBody):
    id = serializers.IntegerField()


class SourceRecord(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    kind = serializers.CharField()
    createdAt = serializers.DateTimeField()
    rules = SignalRuleRecord(many=True)


class NewSourceRecord(SourceRecord):
    token = serializers.CharField(help_text="`signal_…`. It is not shown again.")


class SourceList(serializers.Serializer):
    sources = SourceRecord(many=True)


class SignalTokenRecord(serializers.Serializer):
    token = serializers.CharField(help_text="It is not shown again. The one before is refused from now on.")


class TriedItem(serializers.Serializer):
    item = serializers.IntegerField(help_text="Which alert that is firing, from 1.")
    meets = serializers.BooleanField(help_text="Whether the rule would act.")
    summary = serializers.CharField()


class TrialRecord(serializers.Serializer):
    items = TriedItem(many=True)


class ResultRecord(serializers.Serializer):
    rule = serializers.CharField()
    flag = serializers.CharField()
    environment = serializers.CharField()
    result = serializers.CharField(
        help_text="turnedOff, wasOff, paused, noRunningPlan, noted, repeated or refused."
    )
    why = serializers.CharField(required=False)


class ReceivedRecord(serializers.Serializer):
    results = ResultRecord(many=True)


class SignalRecord(serializers.Serializer):
    id = serializers.IntegerField()
    receivedAt = serializers.DateTimeField()
    body = serializers.JSONField()
    results = ResultRecord(many=True)


class SignalList(serializers.Serializer):
    signals = SignalRecord(many=True)
