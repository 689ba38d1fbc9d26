"""Bodies and records of release plans."""

from rest_framework import serializers

from flagadmin.core.http.fields import Body, ListOf, Texts
from projects.strategies.serializers import StrategyChanges
from releases.models import ReleasePlan
from releases.safeguards.serializers import SafeguardRecord
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
    """Missing members stay unchanged. Strategies of milestones are in the order of their addition."""

    sortOrder = None  # type: ignore[assignment]  # leaves the field out


class ProgressionBody(Body):
    targetMilestone = serializers.CharField(required=False, allow_blank=True, default="", max_length=26)
    transitionCondition = TransitionBody()


class PauseBody(Body):
    reason = serializers.CharField(required=False, allow_blank=True, default="", max_length=1000)


class PlanRecord(MilestonesRecord):
    featureName = serializers.CharField()
    environment = serializers.CharField()
    activeMilestoneId = serializers.CharField(allow_null=True)
    releasePlanTemplateId = serializers.CharField(allow_blank=True)
    state = serializers.CharField(help_text=f"One of {', '.join(ReleasePlan.State.values)}.")
    reason = serializers.CharField(allow_blank=True, help_text="Why it is paused.")
    waitsFor = Texts(
        required=False,
        help_text="What the next step of a running plan waits for, such as numbers of a safeguard that do not come. "
        "Absent if it is not running.",
    )
    pauseIfExpectationBreaks = serializers.BooleanField()
    held = serializers.CharField(
        allow_blank=True,
        help_text="Why its next step needs another approval: it would no longer answer what was approved. Empty if it "
        "needs none, and once the plan is paused for that, with this `reason`.",
    )
    safeguards = SafeguardRecord(many=True)
