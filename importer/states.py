"""The flags as an import would leave them, as a state to compare."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flagadmin.core.errors import Problem
from importer.plan.definitions import find_changes
from importer.plan.import_plan import Plan
from playground.comparison.states import Scope, State, StatePair, Stored, StoredFlags
from playground.comparison.who_changes import find_differing
from playground.engine.snapshot import Snapshot
from projects.definitions import Definitions
from projects.revision import read_revisions


@dataclass(frozen=True)
class ImportState(State):
    """The state that an import would leave in its environment.

    ``names`` are the flags of the ``project`` that would differ, ``definitions`` those of them that would exist, with
    their segments.
    """

    project: str
    names: frozenset[str]
    definitions: Definitions
    warnings: Sequence[str] = ()

    def notes(self) -> Sequence[str]:
        return self.warnings

    def problems(self, path: str, scope: Scope) -> Iterator[Problem]:
        if self.project not in scope.projects:
            message = f"is into project {self.project}, which is not among the projects"
            yield Problem(f"{path}.import", message)

    def compile(self, stored: StoredFlags) -> Snapshot:
        stored_ids = {segment.id for segment in stored.snapshot.segments}
        new = {
            key: segment for key, segment in self.definitions.segments.items() if str(key) not in stored_ids
        }
        return stored.replace(self.names, Definitions(self.definitions.flags, new))

    def apply(self, stored: Definitions, names: Collection[str]) -> Definitions:
        flags = [flag for flag in stored.flags if flag["name"] not in self.names]
        flags += self.definitions.select(names).flags
        return Definitions(flags, stored.segments | self.definitions.segments)


class PlannedStates(NamedTuple):
    """The flags of the project now and after an import; ``names`` are those that are not the same in both."""

    plan: Plan
    pair: StatePair
    names: list[str]


def plan_states(plan: Plan) -> PlannedStates:
    """The flags that the import changes, and their children, now and afterwards."""
    names, definitions = find_changes(plan)
    after = ImportState(plan.environment, plan.project, frozenset(names), definitions)
    pair = StatePair(read_revisions([plan.project]), Stored(plan.environment), after)
    return PlannedStates(plan, pair, find_differing(*pair.snapshots))
