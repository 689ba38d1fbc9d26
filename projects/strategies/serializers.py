"""Request serializers of strategies. They check only JSON types; ``rules`` checks the values.

Request serializers of constraints. They check only JSON types; ``constraint_rules`` checks the values.
"""

from django.conf import settings
from django.utils.functional import lazy
from rest_framework import serializers

from flagadmin.core.http.fields import MAX_ITEMS, MAX_VALUE_LENGTH, Body, ListOf, MapOf
from playground.engine.operators import OPERATORS
from projects.serializers import StrictSerializer, TextField


class ConstraintBody(StrictSerializer):
    contextName = serializers.CharField(help_text="Context field the constraint applies to.")
    operator = serializers.CharField(help_text=lazy(lambda: f"One of {', '.join(OPERATORS)}.", str)())
    caseInsensitive = serializers.BooleanField(required=False, allow_null=True, help_text="Default false.")
    inverted = serializers.BooleanField(
        required=False, allow_null=True, help_text="Default false; negates the result."
    )
    values = ListOf(
        child=TextField(),
        max_length=max(
            MAX_ITEMS,
            settings.CONSTRAINT_VALUES_LIMIT,
            settings.SEGMENT_VALUES_LIMIT,
            settings.SEGMENT_LIST_LIMIT,
        ),
        required=False,
        allow_null=True,
        help_text="For operators that take several values.",
    )
    value = TextField(
        required=False,
        allow_null=True,
        help_text="For operators that take a single value.",
    )


class PayloadBody(StrictSerializer):
    type = serializers.CharField(help_text="One of json, csv, string, number.")
    value = TextField(max_length=MAX_VALUE_LENGTH)


class StrategyVariantBody(StrictSerializer):
    name = TextField(help_text="Unique within the list.")
    weight = serializers.IntegerField(help_text="0 to 1000.")
    weightType = serializers.CharField(
        help_text="variable: weights adjust so that the total is 1000. fix: exactly its weight."
    )
    stickiness = serializers.CharField(
        help_text="Context field by which a user keeps a variant, or default, or random."
    )
    payload = PayloadBody(required=False, allow_null=True)


class StrategyChanges(Body):
    name = serializers.CharField(required=False, help_text="Strategy type, for example flexibleRollout.")
    title = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    disabled = serializers.BooleanField(
        required=False, allow_null=True, help_text="Default false; disabled strategies are not evaluated."
    )
    sortOrder = serializers.IntegerField(
        required=False, allow_null=True, min_value=-(2**31), max_value=2**31 - 1
    )
    parameters = MapOf(
        child=TextField(allow_null=True, max_length=MAX_VALUE_LENGTH),
        required=False,
        allow_null=True,
        help_text="Strings by name. Percentages (rollout, percentage) are whole numbers from 0 to 100.",
    )
    constraints = ConstraintBody(many=True, required=False, allow_null=True)
    variants = StrategyVariantBody(many=True, required=False, allow_null=True)
    segments = ListOf(
        child=serializers.IntegerField(), required=False, allow_null=True, help_text="Ids of segments."
    )


class StrategyBody(StrategyChanges):
    name = serializers.CharField(help_text="Strategy type, for example flexibleRollout.")
