"""Bodies and records of release templates and milestones."""

from rest_framework import serializers

from flagadmin.core.http.fields import Body, ListOf
from projects.strategies.serializers import StrategyChanges


class WindowBody(Body):
    zone = serializers.CharField(max_length=100, help_text="A time zone, such as Europe/Oslo.")
    days = ListOf(child=serializers.IntegerField(), max_length=7, help_text="1 (Monday) to 7 (Sunday).")

    def get_fields(self) -> dict[str, serializers.Field]:
        times = {
            "from": serializers.CharField(max_length=5, help_text="Such as 09:00."),
            "to": serializers.CharField(max_length=5, help_text="Such as 16:00, on the same day."),
        }
        return super().get_fields() | times


class TransitionBody(Body):
    intervalMinutes = serializers.IntegerField(
        required=False, allow_null=True, help_text="How long the milestone holds before the next one."
    )
    window = WindowBody(
        required=False, allow_null=True, help_text="The next one starts only on these days, at these times."
    )


class MilestoneStrategyBody(StrategyChanges):
    id = serializers.CharField(
        max_length=26, required=False, help_text="The id of an existing one, which it keeps."
    )
    strategyName = serializers.CharField(
        required=False, max_length=255, help_text="The same as name, which is required without it."
    )

    def validate(self, values: dict) -> dict:
        if not values.get("strategyName") and not values.get("name"):
            raise serializers.ValidationError({"name": "This field is required."})
        return values


class MilestoneBody(Body):
    id = serializers.CharField(
        max_length=26, required=False, help_text="The id of an existing one, which it keeps."
    )
    name = serializers.CharField(max_length=255)
    sortOrder = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=1000,
        help_text="Its place. Without it, its place in the list.",
    )
    strategies = MilestoneStrategyBody(many=True, required=False)
    transitionCondition = TransitionBody(
        required=False, allow_null=True, help_text="What the next milestone waits for. null: for somebody."
    )

    def validate(self, values: dict) -> dict:
        return sort_by_place(values, "strategies")


class TemplateBody(Body):
    milestones = MilestoneBody(many=True, required=False)
    name = serializers.CharField(max_length=255)
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)

    def validate(self, values: dict) -> dict:
        return sort_by_place(values, "milestones")


def sort_by_place(values: dict, name: str) -> dict:
    """Sorts a list of the body by the `sortOrder` of its members; without one, a member is where it is in the list."""
    if listed := values.get(name):
        values[name] = [member for _, member in sorted(enumerate(listed), key=find_place)]
    return values


def find_place(entry: tuple[int, dict]) -> int:
    index, member = entry
    place = member.get("sortOrder")
    return index if place is None else place


class TemplateChanges(TemplateBody):
    name = serializers.CharField(max_length=255, required=False)


class MilestoneStrategyRecord(serializers.Serializer):
    id = serializers.CharField()
    milestoneId = serializers.CharField()
    sortOrder = serializers.IntegerField()
    title = serializers.CharField(allow_null=True)
    strategyName = serializers.CharField()
    parameters = serializers.DictField(child=serializers.CharField())
    constraints = serializers.ListField(child=serializers.DictField())
    variants = serializers.ListField(child=serializers.DictField())
    segments = serializers.ListField(child=serializers.IntegerField())


class MilestoneRecord(serializers.Serializer):
    id = serializers.CharField()
    name = serializers.CharField()
    sortOrder = serializers.IntegerField()
    releasePlanDefinitionId = serializers.CharField(help_text="Its template or plan.")
    startedAt = serializers.DateTimeField(allow_null=True)
    transitionCondition = TransitionBody(allow_null=True)
    progressionExecutedAt = serializers.DateTimeField(
        allow_null=True, help_text="When the next milestone started by itself."
    )
    pausedAt = serializers.DateTimeField(allow_null=True)
    strategies = MilestoneStrategyRecord(many=True)


class MilestonesRecord(serializers.Serializer):
    id = serializers.CharField()
    discriminator = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField(allow_null=True)
    createdByUserId = serializers.IntegerField(help_text="0: an API token, or somebody who was deleted.")
    createdAt = serializers.DateTimeField()
    milestones = MilestoneRecord(many=True)


class TemplateRecord(MilestonesRecord):
    project = serializers.CharField(allow_null=True, help_text="null: for all projects.")
    archivedAt = serializers.DateTimeField(allow_null=True)
