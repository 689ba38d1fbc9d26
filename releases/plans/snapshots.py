"""Release plans as read: changes of requests start from them, and predictions change them in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from releases.models import Milestone, ReleasePlan, Safeguard
from releases.plans.queries import find_by_key


@dataclass(frozen=True, slots=True)
class PlanSnapshot:
    """A plan with its milestones and safeguards in their order. ``strategy_ids``: strategies of the flag."""

    pk: str
    name: str
    state: str
    active_id: str | None
    strategy_ids: Sequence[str]
    milestones: Sequence[Milestone]
    safeguards: Sequence[Safeguard]

    def milestone(self, key: str) -> Milestone:
        """Raises NotFound."""
        return find_by_key(self.milestones, key, f"Release plan {self.name} has no milestone {key}.")

    def safeguard(self, key: str) -> Safeguard:
        """Raises NotFound."""
        return find_by_key(self.safeguards, key, f"Release plan {self.name} has no safeguard {key}.")

    def with_milestone(self, edited: Milestone) -> "PlanSnapshot":
        """Replaces the milestone that has the same id."""
        milestones = [edited if each.pk == edited.pk else each for each in self.milestones]
        return replace(self, milestones=milestones)

    def run(self) -> "PlanSnapshot":
        """Running, or completed with its last milestone, unless that lasts for a time."""
        last = self.milestones[-1]
        is_over = self.active_id == last.pk and last.transition is None
        return replace(self, state=ReleasePlan.State.DONE if is_over else ReleasePlan.State.RUNNING)


def take_snapshot(plan: ReleasePlan) -> PlanSnapshot:
    return PlanSnapshot(
        plan.pk,
        plan.name,
        plan.state,
        plan.active_id,
        plan.strategy_ids,
        list(plan.milestones.all()),
        list(plan.safeguards.all()),
    )


def read_snapshots(project_id: str, flag: str, environment: str) -> list[PlanSnapshot]:
    """Reads the plans of the flag in the environment, newest first."""
    plans = ReleasePlan.objects.filter(
        flag__project=project_id, flag__name=flag, flag__archived_at=None, environment=environment
    )
    return [take_snapshot(plan) for plan in plans.prefetch_related("milestones", "safeguards")]
