"""Request and response bodies of the flag API.

Serializers check JSON types only; validation rules are in ``name_rules``, ``link_rules`` and similar modules.
"""

from typing import Any

from rest_framework import serializers

from flagadmin.core.http.fields import Body, BoundedTexts, ListOf, Texts
from projects.flags.name_rules import make_owner_columns
from projects.models import LifecycleStage
from projects.serializers import StrictSerializer, TextField
from projects.strategies.serializers import PayloadBody, StrategyBody


class OverrideBody(StrictSerializer):
    contextName = serializers.CharField()
    values = ListOf(child=TextField())


class VariantBody(StrictSerializer):
    name = TextField(help_text="Unique within the list.")
    weight = serializers.FloatField(help_text="0 to 1000.")
    weightType = serializers.CharField(required=False, help_text="variable or fix.")
    stickiness = serializers.CharField(required=False)
    payload = PayloadBody(required=False, allow_null=True)
    overrides = OverrideBody(
        many=True, required=False, help_text="Context values that always get this variant."
    )

    def to_internal_value(self, data: dict) -> dict:
        values: dict = super().to_internal_value(data)
        if values["weight"].is_integer():
            values["weight"] = int(values["weight"])
        return values


class VariantsRecord(serializers.Serializer):
    version = serializers.IntegerField()
    variants = VariantBody(many=True)


class VariantsInEnvironments(Body):
    variants = VariantBody(many=True)
    environments = ListOf(
        child=serializers.CharField(max_length=255), allow_empty=False, help_text="Where to set them."
    )


class StrategyRecord(StrategyBody):
    id = serializers.UUIDField()


class StrategyPlace(Body):
    id = serializers.CharField()
    sortOrder = serializers.IntegerField(min_value=-(2**31), max_value=2**31 - 1)


class TagBody(Body):
    type = serializers.CharField(help_text="A tag type.")
    value = TextField(help_text="2 to 50 characters.")


class TagChanges(Body):
    addedTags = TagBody(many=True, required=False)
    removedTags = TagBody(many=True, required=False)


class TagRecord(TagBody):
    color = serializers.CharField(required=False, allow_null=True)


class TagList(serializers.Serializer):
    version = serializers.IntegerField()
    tags = TagRecord(many=True)


class OwnerBody(Body):
    kind = serializers.ChoiceField(choices=["user", "group"])
    id = serializers.IntegerField(min_value=1, max_value=2**63 - 1)


class OwnerRecord(serializers.Serializer):
    kind = serializers.CharField(help_text="user or group.")
    id = serializers.IntegerField()
    name = serializers.CharField(help_text="User name, or the group's name.")


class FlagChanges(Body):
    type = serializers.CharField(
        required=False,
        max_length=100,
        help_text="For example release, experiment, operational, kill-switch, permission.",
    )
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    impressionData = serializers.BooleanField(source="impression_data", required=False)
    stale = serializers.BooleanField(required=False)
    owner = OwnerBody(required=False, allow_null=True, help_text="A person or a group; null for none.")

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        """Converts the owner to columns."""
        if "owner" in data:
            owner = data.pop("owner")
            data |= make_owner_columns(owner and owner["kind"], owner and owner["id"])
        return data


class FlagBody(FlagChanges):
    name = TextField(
        help_text="1 to 100 characters: letters, digits and - . _ ~; unique across all projects."
    )
    tags = TagBody(many=True, required=False, allow_null=True)


class NamedFlag(serializers.Serializer):
    name = serializers.CharField()
    description = serializers.CharField(allow_null=True)
    type = serializers.CharField()
    stale = serializers.BooleanField()
    createdAt = serializers.DateTimeField()
    impressionData = serializers.BooleanField()


class SeenFlag(NamedFlag):
    project = serializers.CharField()
    archived = serializers.BooleanField()


class FlagMetadata(SeenFlag):
    """The flag's own fields."""

    owner = OwnerRecord(required=False, help_text="Absent without one.")
    archivedAt = serializers.DateTimeField(required=False)


class EnvironmentSummary(serializers.Serializer):
    """A flag in one environment of its project, as shown in lists."""

    name = serializers.CharField()
    enabled = serializers.BooleanField()
    type = serializers.CharField()
    sortOrder = serializers.IntegerField()
    variantCount = serializers.IntegerField()
    lastSeenAt = serializers.DateTimeField(allow_null=True)
    hasStrategies = serializers.BooleanField()
    hasEnabledStrategies = serializers.BooleanField()


class FlagSummary(NamedFlag):
    """A flag as shown in lists."""

    favorite = serializers.BooleanField()
    environments = EnvironmentSummary(many=True)
    tags = TagRecord(many=True, required=False)


class FlagSummaryList(serializers.Serializer):
    version = serializers.IntegerField()
    features = FlagSummary(many=True)


class ParentRecord(Body):
    feature = serializers.CharField(help_text="The parent's name.")
    enabled = serializers.BooleanField(
        required=False, help_text="Whether the parent must be on. Default true."
    )
    variants = BoundedTexts(
        required=False,
        help_text="The parent must have one of these variants; empty: any. Not allowed with enabled: false.",
    )


class LinkBody(Body):
    url = serializers.CharField(help_text="An http or https URL.")
    title = serializers.CharField(required=False, allow_null=True, allow_blank=True)


class LinkRecord(LinkBody):
    id = serializers.UUIDField()
    feature = serializers.CharField(help_text="The flag's name.")


class Person(serializers.Serializer):
    id = serializers.IntegerField(help_text="0: the account is unknown.")
    name = serializers.CharField()


class Collaborators(serializers.Serializer):
    users = Person(many=True)


class EnvironmentDetail(serializers.Serializer):
    """A flag in one environment of its project, with strategies and variants."""

    name = serializers.CharField(help_text="Name of the environment.")
    lastSeenAt = serializers.DateTimeField(allow_null=True)
    variants = VariantBody(many=True)
    enabled = serializers.BooleanField()
    type = serializers.CharField()
    sortOrder = serializers.IntegerField()
    strategies = StrategyRecord(many=True)
    yes = serializers.IntegerField(
        help_text="Evaluations that SDKs reported for the last hour with the flag on."
    )
    no = serializers.IntegerField(
        help_text="Evaluations that SDKs reported for the last hour with the flag off."
    )


class OwnedStrategyRecord(StrategyRecord):
    featureName = serializers.CharField()


class FlagEnvironmentRecord(EnvironmentDetail):
    """A flag in one environment, requested by flag and environment; `name` is the flag's."""

    name = serializers.CharField(help_text="Name of the flag.")
    environment = serializers.CharField()
    strategies = OwnedStrategyRecord(many=True)


class StageRecord(serializers.Serializer):
    stage = serializers.ChoiceField(choices=LifecycleStage.Stage.choices)
    enteredStageAt = serializers.DateTimeField()
    status = serializers.CharField(required=False, help_text="Of a completed flag: kept or discarded.")


class FlagRecord(FlagMetadata):
    """A flag with all its data."""

    environments = EnvironmentDetail(many=True)
    favorite = serializers.BooleanField()
    dependencies = ParentRecord(many=True)
    children = Texts()
    links = LinkRecord(many=True)
    collaborators = Collaborators()
    createdBy = Person()
    lifecycle = StageRecord(required=False, help_text="The current stage.")


class CloneBody(Body):
    name = TextField(
        help_text="1 to 100 characters: letters, digits and - . _ ~; unique across all projects."
    )
    replaceGroupId = serializers.BooleanField(
        default=True, help_text="Replace the groupId of every rollout with the new name."
    )


class NamesBody(Body):
    features = BoundedTexts(help_text="Names of flags.")


class StaleBody(NamesBody):
    stale = serializers.BooleanField()


class MoveBody(Body):
    newProjectId = serializers.CharField()


class NewNameBody(Body):
    name = TextField()
    projectId = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="Check the name against the naming pattern of this project too.",
    )
