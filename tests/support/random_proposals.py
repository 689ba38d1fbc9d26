"""Random changes for change requests, with every action there is, and the flags that they are of."""

from typing import Any

import pytest

from groups.access import Caller
from projects.definitions import Definitions
from projects.models import Dependency, Flag, ProjectEnvironment, Segment, Strategy
from releases.changes import KINDS
from releases.derive import ProposedChange
from releases.models import Milestone, ReleasePlan, ReleaseTemplate, Safeguard
from releases.plans.actions import pause_plan, start_milestone
from releases.plans.add import add_plan
from releases.plans.queries import FlagPath
from releases.safeguards.actions import set_flag_safeguard, set_safeguard
from releases.safeguards.serializers import SafeguardBody
from releases.templates.actions import create_template
from tests.support.playground import live_flag
from tests.support.random_changes import NAMES, RandomChanges

FLAGS = NAMES[:5]


SAFEGUARD = {
    "impactMetric": {"metricName": "errors", "timeRange": "hour", "aggregationMode": "rps"},
    "triggerCondition": {"operator": ">", "threshold": 1},
}


@pytest.fixture
def flags(shop: Any) -> None:
    make_flags()


def make_flags() -> None:
    """Five flags in production, three of them on, some with segments, disabled strategies and parents."""
    for number in range(2):
        Segment.objects.create(name=f"segment-{number}", constraints=[])
    used = Segment.objects.get(name="segment-0")
    for number, name in enumerate(FLAGS):
        strategies: list[dict[str, Any]] = [
            {"name": "flexibleRollout", "parameters": {"rollout": f"{20 * number}"}, "sort_order": 0},
            {"name": "default", "segments": [used], "disabled": number == 2, "sort_order": 1},
        ]
        live_flag(name, enabled=number < 3, strategies=strategies)
    child, parent = (Flag.objects.get(name=name) for name in (FLAGS[4], FLAGS[3]))
    Dependency.objects.create(flag=child, parent=parent)
    for name in FLAGS[:2]:
        add_random_plan(name)
    ProjectEnvironment.objects.filter(environment="production").update(required_approvals=0)


def add_random_plan(name: str) -> None:
    """A plan whose first milestone has one strategy of two, and its second one of them, changed."""
    place = FlagPath("shop", name, "production")
    rollouts = [{"name": "flexibleRollout", "parameters": {"rollout": f"{share}"}} for share in (7, 30, 60)]
    milestones = [{"name": "a", "strategies": rollouts[:2]}, {"name": "b", "strategies": rollouts[2:]}]
    template = create_template({"name": name, "milestones": milestones}, caller=Caller.system())
    plan = add_plan(place, template.pk, caller=Caller.system())
    if name == FLAGS[0]:
        body = SafeguardBody(data=SAFEGUARD)
        body.is_valid(raise_exception=True)
        set_safeguard(place, plan.pk, body.validated_data, caller=Caller.system())
        start_milestone(place, plan.pk, plan.milestones.all()[0].pk, caller=Caller.system())
        pause_plan(place, plan.pk, caller=Caller.system())
        set_flag_safeguard(place, body.validated_data, caller=Caller.system())


ON_FIRST = (
    "resumeMilestoneProgression",
    "deleteSafeguard",
    "deleteReleasePlanSafeguard",
    "deleteFeatureEnvSafeguard",
)


class Proposals(RandomChanges):
    def propose(self, action: str) -> ProposedChange:
        names = FLAGS[:2] if KINDS[action].is_later else FLAGS
        names = FLAGS[2:] if action == "addReleasePlan" else names
        names = FLAGS[:1] if action in ON_FIRST else names
        name = "" if KINDS[action].of_segment else self.random.choice(names)
        return ProposedChange(name, action, self.payload(action, name))

    def payload(self, action: str, name: str) -> Any:
        ids = [
            str(key)
            for key in Strategy.objects.filter(flag__name=name, environment="production")
            .order_by("sort_order", "pk")
            .values_list("pk", flat=True)
        ]
        # No two in one place, where the new one's id, which nobody knows, would decide.
        strategy = self.strategy() | {"sortOrder": None}
        new = {key: value for key, value in strategy.items() if value is not None}
        return {
            "updateEnabled": lambda: {
                "enabled": self.random.random() < 0.6,
                "shouldActivateDisabledStrategies": self.random.random() < 0.5,
            },
            "addStrategy": lambda: new,
            "updateStrategy": lambda: {"id": self.random.choice(ids), **new},
            "deleteStrategy": lambda: {"id": self.random.choice(ids)},
            "reorderStrategy": lambda: [
                {"id": key, "sortOrder": place} for place, key in enumerate(self.random.sample(ids, len(ids)))
            ],
            "patchVariant": lambda: {"variants": self.variants()},
            "updateImpressionData": lambda: {"impressionData": self.random.random() < 0.5},
            "archiveFeature": lambda: None,
            "addDependency": lambda: {
                "feature": self.random.choice(FLAGS),
                "enabled": self.random.random() < 0.5,
            },
            "deleteDependency": lambda: None,
            "updateSegment": lambda: {"id": self.segment(), "constraints": self.constraints()},
            "deleteSegment": lambda: {"id": self.segment()},
            "addReleasePlan": lambda: {"templateId": ReleaseTemplate.objects.earliest("name").pk},
            "startMilestone": lambda: {"planId": self.plan(name), "milestoneId": self.milestone(name)},
            "deleteReleasePlan": lambda: {"planId": self.plan(name)},
            "updateMilestoneStrategy": lambda: self.strategy_of_milestone(name) | new,
            "changeMilestoneProgression": lambda: {
                "sourceMilestone": self.milestone(name),
                "transitionCondition": {"intervalMinutes": self.random.randrange(1, 9)},
            },
            "deleteMilestoneProgression": lambda: {"sourceMilestone": self.milestone(name)},
            "resumeMilestoneProgression": lambda: {"planId": self.plan(name)},
            "changeSafeguard": lambda: {"planId": self.plan(name), "safeguard": SAFEGUARD},
            "changeFeatureEnvSafeguard": lambda: {"safeguard": SAFEGUARD},
            "deleteFeatureEnvSafeguard": lambda: {"safeguardId": self.safeguard_of_flag(name)},
            "deleteSafeguard": lambda: {"planId": self.plan(name), "safeguardId": self.safeguard(name)},
        }[action.replace("ReleasePlanSafeguard", "Safeguard")]()

    def plan(self, name: str) -> str:
        return self.random.choice(list(ReleasePlan.objects.filter(flag__name=name))).pk

    def milestone(self, name: str) -> str:
        return self.random.choice(list(Milestone.objects.filter(plan__flag__name=name))).pk

    def strategy_of_milestone(self, name: str) -> dict[str, Any]:
        milestone = Milestone.objects.get(pk=self.milestone(name))
        chosen = self.random.choice(milestone.strategies)
        return {"planId": milestone.plan_id, "milestoneId": milestone.pk, "id": chosen["id"]}

    def safeguard(self, name: str) -> str:
        return self.random.choice(list(Safeguard.objects.filter(plan__flag__name=name))).pk

    def safeguard_of_flag(self, name: str) -> str:
        return self.random.choice(list(Safeguard.objects.filter(flag__name=name))).pk


def flags_of(read: Definitions) -> dict[str, Any]:
    """What evaluates of each flag, with the constraints of its segments, whatever ids its strategies have."""
    return {
        flag["name"]: {
            **{key: flag[key] for key in ("enabled", "variants", "dependencies", "impression_data")},
            "strategies": [
                {key: value for key, value in strategy.items() if key not in ("id", "title")}
                | {"segments": [read.segments[key]["constraints"] for key in strategy["segments"]]}
                for strategy in flag["strategies"]
            ],
        }
        for flag in read.flags
    }
