"""What the list of a segment weighs in the answers to SDKs."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from flagadmin.core.wording import format_size
from playground.engine.definitions import ConstraintDefinition
from projects.models import Environment, Segment, Strategy
from projects.segments.lists import HEAVY, find_list


@dataclass(frozen=True, slots=True)
class Weight:
    """``size``: bytes of the segment in one answer. ``environments``: those whose answers have it, in their order.

    ``strategies``: those that use it. SDKs that do not know segments get it with each of them.
    """

    size: int
    environments: Sequence[str]
    strategies: int
    values: int

    @property
    def total(self) -> int:
        return self.size * len(self.environments)

    @property
    def warning(self) -> str:
        """Empty for a list of up to HEAVY values."""
        if self.values <= HEAVY:
            return ""
        return (
            f"Each SDK downloads all {self.values:,} values after each change ({format_size(self.size)}). "
            f"Above {HEAVY:,}, consider a property of the user, such as a plan, in place of a list of users."
        )


def weigh(segment: Segment, constraints: Sequence[ConstraintDefinition]) -> Weight:
    """The weight of the segment with these constraints. Two queries."""
    strategies = Strategy.objects.filter(segments=segment.pk or 0, flag__archived_at=None)
    used = list(strategies.values_list("environment_id", flat=True))
    names = [name for name in Environment.objects.names() if name in used]
    definition = {"id": segment.pk or 0, "name": segment.name, "constraints": constraints}
    return Weight(len(orjson.dumps(definition)), names, len(used), len(find_list(constraints)))
