"""Strategies as bodies carry them. Only JSON types are looked at here; the rules are in ``projects.validation``."""

from typing import Any

from rest_framework import serializers

from projects.api.constraint_bodies import ConstraintBody


class PayloadBody(serializers.Serializer):
    type = serializers.CharField(help_text="One of json, csv, string, number.")
    value = serializers.CharField(allow_blank=True, trim_whitespace=False)


class StrategyVariantBody(serializers.Serializer):
    name = serializers.CharField(help_text="Unique within the flag.")
    weight = serializers.IntegerField(help_text="0 to 1000.")
    weightType = serializers.CharField(required=False, help_text="variable or fix.")
    stickiness = serializers.CharField(required=False, help_text="Stickiness used for distribution.")
    payload = PayloadBody(required=False, allow_null=True)


class ParametersField(serializers.DictField):
    """Texts by name. Numbers and booleans are taken and become texts."""

    child = serializers.JSONField(allow_null=True)

    def to_internal_value(self, data: Any) -> Any:
        return data if isinstance(data, dict) else super().to_internal_value(data)


class StrategyBody(serializers.Serializer):
    name = serializers.CharField(help_text="Strategy type.")
    title = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    disabled = serializers.BooleanField(
        required=False, allow_null=True, help_text="Default false; disabled strategies are not evaluated."
    )
    sortOrder = serializers.IntegerField(
        required=False, allow_null=True, min_value=-(2**31), max_value=2**31 - 1
    )
    segments = serializers.ListField(
        child=serializers.IntegerField(), required=False, allow_null=True, help_text="Ids of segments."
    )
    constraints = ConstraintBody(many=True, required=False, allow_null=True)
    variants = StrategyVariantBody(many=True, required=False, allow_null=True)
    parameters = ParametersField(required=False, allow_null=True, help_text="Texts by name.")
