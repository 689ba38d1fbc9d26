"""Request serializers of constraints. They check only JSON types; ``constraint_rules`` checks the values."""

from django.conf import settings
from rest_framework import serializers

from flagadmin.core.http.fields import MAX_ITEMS, ListOf
from projects.serializers import StrictSerializer, TextField


class ConstraintBody(StrictSerializer):
    contextName = serializers.CharField(help_text="Context field the constraint applies to.")
    operator = serializers.CharField(
        help_text="One of NOT_IN, IN, STR_ENDS_WITH, STR_STARTS_WITH, STR_CONTAINS, NUM_EQ, NUM_GT, NUM_GTE, NUM_LT, "
        "NUM_LTE, DATE_AFTER, DATE_BEFORE, SEMVER_EQ, SEMVER_GT, SEMVER_LT, SEMVER_GTE, SEMVER_LTE, REGEX, IN_CIDR."
    )
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
