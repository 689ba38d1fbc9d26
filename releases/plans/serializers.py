"""Bodies and records of release plans."""

from rest_framework import serializers

from flagadmin.core.http.fields import Body, ListOf, Texts
from projects.strategies.serializers import StrategyChanges
from releases.models import ReleasePlan
from releases.templates.serializers import MilestonesRecord, TransitionBody


class StepsBody(TransitionBody):
    strategyId = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=100,
        help_text="Of a strategy that the flag has there.",
    )
    strategy = StrategyChanges(required=False, help_text="What is different, or all of a new one.")
    rollouts = ListOf(
        child=serializers.IntegerField(), max_length=30, help_text="Per cent of users at each step."
    )
    pauseIfExpectationBreaks = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Pause before a step that would break an expectation of a saved context.",
    )


class PlanBody(Body):
    templateId = serializers.CharField(required=False, max_length=26)
    steps = StepsBody(required=False, help_text="Instead of a template: one strategy in steps.")

    def validate(self, values: dict) -> dict:
        if ("templateId" in values) == ("steps" in values):
            raise serializers.ValidationError({"templateId": "Send templateId or steps."})
        return values


class MilestoneStrategyChanges(StrategyChanges):
    """Members that are not given stay. Strategies of milestones are in the order in which they were added."""

    sortOrder = None  # type: ignore[assignment]  # leaves the field out


class ProgressionBody(Body):
    targetMilestone = serializers.CharField(required=False, allow_blank=True, default="", max_length=26)
    transitionCondition = TransitionBody()


class PauseBody(Body):
    reason = serializers.CharField(required=False, allow_blank=True, default="", max_length=1000)


class TriggerRecord(serializers.Serializer):
    operator = serializers.ChoiceField(choices=[">", "<"])
    threshold = serializers.FloatField()


class ActionRecord(serializers.Serializer):
    type = serializers.CharField(help_text="pause, stepBack or turnOff.")
    id = serializers.CharField()


class MetricRecord(serializers.Serializer):
    id = serializers.CharField()
    metricName = serializers.CharField()
    timeRange = serializers.CharField()
    aggregationMode = serializers.CharField()
    labelSelectors = serializers.DictField(child=Texts())
    comparesWithout = serializers.BooleanField(
        help_text="The number is that of users with the flag less that of those without."
    )

    def get_fields(self) -> dict[str, serializers.Field]:
        source = serializers.CharField(help_text="internal, external or alert.")
        return super().get_fields() | {"source": source}


class SafeguardRecord(serializers.Serializer):
    id = serializers.CharField()
    title = serializers.CharField(allow_blank=True)
    action = ActionRecord()
    triggerCondition = TriggerRecord()
    impactMetric = MetricRecord()
    firingSince = serializers.DateTimeField(allow_null=True, help_text="Of an alert.")


class PlanRecord(MilestonesRecord):
    featureName = serializers.CharField()
    environment = serializers.CharField()
    activeMilestoneId = serializers.CharField(allow_null=True)
    releasePlanTemplateId = serializers.CharField(allow_blank=True)
    state = serializers.CharField(help_text=f"One of {', '.join(ReleasePlan.State.values)}.")
    reason = serializers.CharField(allow_blank=True, help_text="Why it is paused.")
    pauseIfExpectationBreaks = serializers.BooleanField()
    safeguards = SafeguardRecord(many=True)
