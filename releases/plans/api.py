"""/release-plans and /progressions of a flag in an environment.

Bodies and records of release plans.
"""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.http.fields import Body, ListOf, Texts, read_boolean
from flagadmin.core.http.openapi import refusal
from flagadmin.core.http.responses import iso
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.project_scope import OnFlagViewSet
from projects.strategies.serializers import StrategyChanges
from releases.models import ReleasePlan
from releases.plans import actions
from releases.plans.actions import Steps, edit_milestone_strategy, plan_document
from releases.plans.add import add_plan, add_steps
from releases.plans.approval import explain_moved
from releases.plans.progress import find_step
from releases.plans.queries import OfFlagPath, find_following, find_plan, read_plans
from releases.safeguards.judge import Judge
from releases.safeguards.serializers import SafeguardRecord
from releases.templates.queries import milestone_document
from releases.templates.serializers import (
    MilestoneRecord,
    MilestonesRecord,
    MilestoneStrategyRecord,
    TransitionBody,
)


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


TAGS = ("Release Plans",)
CREATE, UPDATE = Permission.CREATE_FEATURE_STRATEGY, Permission.UPDATE_FEATURE_STRATEGY
STEPS = OpenApiExample(
    "A strategy in steps, a day each",
    {
        "steps": {
            "strategy": {"name": "flexibleRollout", "parameters": {"stickiness": "userId"}},
            "rollouts": [5, 25, 50, 100],
            "intervalMinutes": 1440,
        }
    },
    request_only=True,
)


def make_plan_answer(plan: ReleasePlan) -> dict[str, Any]:
    """The plan's document, with the conditions that a running one waits for, and the reason for a hold."""
    following = find_following(plan) if plan.active else None
    document = plan_document(plan) | {"held": explain_moved(plan, following) if following else ""}
    if plan.state != ReleasePlan.State.RUNNING:
        return document
    now = timezone.now()
    step = find_step(plan, Judge(now).judge(plan), now)
    opens = [f"not before {iso(step.opens)}"] if step.opens and step.opens > now else []
    waits = [condition.sentence for condition in step.conditions if not condition.holds]
    return document | {"waitsFor": [*opens, *waits]}


class PlansOfFlag(OfFlagPath, OnFlagViewSet):
    tags = TAGS

    def document(self, plan: ReleasePlan) -> dict[str, Any]:
        return make_plan_answer(find_plan(plan.flag, plan.environment_id, plan.pk))


class ReleasePlanViewSet(PlansOfFlag):
    lookup_url_kwarg = "plan_id"
    permissions = {
        "create": CREATE,
        "destroy": Permission.DELETE_FEATURE_STRATEGY,
        "start": UPDATE,
        "edit_strategy": UPDATE,
    }

    @extend_schema(operation_id="getReleasePlans", responses={200: PlanRecord(many=True)})
    def list(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """List the release plans of a flag in an environment, newest first."""
        return Response([make_plan_answer(plan) for plan in read_plans(self.flag, environment)])

    @extend_schema(
        operation_id="addReleasePlanToFeature",
        request=PlanBody,
        responses={200: PlanRecord, 409: refusal(409, "The flag has a plan there that is not done.")},
        examples=[STEPS],
    )
    def create(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """Add a release plan to a flag, from a template or as one strategy in steps.

        It changes nothing until its first milestone is started.
        """
        body = self.validated(PlanBody)
        if template := body.get("templateId"):
            return Response(self.document(add_plan(self.flag_path, template, caller=self.caller)))
        values = body["steps"]
        transition = {key: values.get(key) for key in ("intervalMinutes", "window")}
        steps = Steps(
            values.get("strategy") or {},
            values["rollouts"],
            transition if any(transition.values()) else None,
            values["pauseIfExpectationBreaks"],
        )
        return Response(
            self.document(add_steps(self.flag_path, values["strategyId"], steps, caller=self.caller))
        )

    @extend_schema(operation_id="getReleasePlan", responses={200: PlanRecord})
    def retrieve(self, request: ApiRequest, environment: str, plan_id: str, **where: Any) -> Response:
        """Get a release plan of a flag."""
        return Response(make_plan_answer(find_plan(self.flag, environment, plan_id)))

    @extend_schema(
        operation_id="removeReleasePlanFromFeature",
        parameters=[
            OpenApiParameter(
                "keepStrategies", bool, description="Keep the strategies of the active milestone."
            )
        ],
        responses={200: None},
    )
    def destroy(self, request: ApiRequest, plan_id: str, **where: Any) -> Response:
        """Remove a release plan, and the strategies of its active milestone."""
        keep = read_boolean(request, "keepStrategies")
        actions.remove_plan(self.flag_path, plan_id, keep_strategies=keep, caller=self.caller)
        return Response()

    @extend_schema(operation_id="startMilestone", request=None, responses={200: MilestoneRecord})
    @action(detail=True, methods=["post"], url_path="milestones/<str:milestone_id>/start")
    def start(self, request: ApiRequest, plan_id: str, milestone_id: str, **where: Any) -> Response:
        """Start a milestone: its strategies replace those of the one before. A paused plan goes on.

        Where changes need a change request, the plan must be approved: it is refused with 403 before the milestone's
        conditions hold, unless you may apply change requests, and with 409 if the milestone would no longer answer what
        was approved. The plan is held then, with the `reason`.
        """
        plan = actions.start_milestone(self.flag_path, plan_id, milestone_id, caller=self.caller)
        assert plan.active is not None
        return Response(milestone_document(plan.active))

    @extend_schema(
        operation_id="updateMilestoneStrategy",
        request=MilestoneStrategyChanges,
        responses={200: MilestoneStrategyRecord},
    )
    @action(
        detail=True,
        methods=["put"],
        url_path="milestones/<str:milestone_id>/strategies/<str:strategy_id>",
    )
    def edit_strategy(
        self, request: ApiRequest, plan_id: str, milestone_id: str, strategy_id: str, **where: Any
    ) -> Response:
        """Change a strategy of a milestone: of the active one, it counts at once. Members that are not given stay."""
        values = self.validated(MilestoneStrategyChanges)
        milestone = edit_milestone_strategy(
            self.flag_path, plan_id, milestone_id, strategy_id, values, caller=self.caller
        )
        strategies = milestone_document(milestone)["strategies"]
        return Response(next(strategy for strategy in strategies if strategy["id"] == strategy_id))


class ProgressionViewSet(PlansOfFlag):
    lookup_url_kwarg = "milestone_id"
    permissions = {"update": UPDATE, "destroy": UPDATE}

    @extend_schema(
        operation_id="changeMilestoneProgression", request=ProgressionBody, responses={200: PlanRecord}
    )
    def update(self, request: ApiRequest, milestone_id: str, **where: Any) -> Response:
        """Set the condition of the milestone after this one: a time, a window of the week, or both."""
        body = self.validated(ProgressionBody)
        plan = actions.set_transition(
            self.flag_path,
            milestone_id,
            body["transitionCondition"],
            target=body["targetMilestone"],
            caller=self.caller,
        )
        return Response(self.document(plan))

    @extend_schema(operation_id="deleteMilestoneProgression", responses={200: None})
    def destroy(self, request: ApiRequest, milestone_id: str, **where: Any) -> Response:
        """Make the milestone after this one wait to be started by hand."""
        actions.set_transition(self.flag_path, milestone_id, None, caller=self.caller)
        return Response()


class ProgressionOfPlanViewSet(PlansOfFlag):
    lookup_url_kwarg = "plan_id"
    permissions = {"resume": UPDATE, "pause": UPDATE}

    @extend_schema(operation_id="resumeMilestoneProgressions", request=None, responses={200: PlanRecord})
    @action(detail=True, methods=["post"])
    def resume(self, request: ApiRequest, plan_id: str, **where: Any) -> Response:
        """Resume a paused release plan. The time that its milestone has been active counts on."""
        return Response(self.document(actions.resume_plan(self.flag_path, plan_id, caller=self.caller)))

    @extend_schema(operation_id="pauseMilestoneProgressions", request=PauseBody, responses={200: PlanRecord})
    @action(detail=True, methods=["post"])
    def pause(self, request: ApiRequest, plan_id: str, **where: Any) -> Response:
        """Pause a running release plan: no step is taken until it is resumed."""
        reason = self.validated(PauseBody)["reason"]
        return Response(
            self.document(actions.pause_plan(self.flag_path, plan_id, reason=reason, caller=self.caller))
        )
