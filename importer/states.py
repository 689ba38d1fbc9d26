"""The flags after an import, as a state to compare; and those that evaluate differently."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from flagadmin.core.document import Document
from flagadmin.core.errors import Problem
from importer.plan.import_plan import Action, FlagPlan, Plan
from playground.comparison.states import Scope, State, StatePair, Stored, StoredFlags
from playground.comparison.who_changes import find_differing
from playground.engine.definitions import FlagDefinition
from playground.engine.snapshot import Snapshot
from projects.definitions import Definitions, find_used_segments, read_definitions
from projects.models import Segment
from projects.revision import read_revisions


@dataclass(frozen=True)
class ImportState(State):
    """The state of the environment after an import.

    ``names`` are the ``project``'s flags that would differ, ``definitions`` the existing ones among them, with their
    segments.
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
    """The flags of the project now and after an import; ``names`` are those that differ."""

    plan: Plan
    pair: StatePair
    names: list[str]


def plan_states(plan: Plan) -> PlannedStates:
    """The flags that the import changes, and their children, now and afterwards."""
    names, definitions = find_changes(plan)
    after = ImportState(plan.environment, plan.project, frozenset(names), definitions)
    pair = StatePair(read_revisions([plan.project]), Stored(plan.environment), after)
    return PlannedStates(plan, pair, find_differing(*pair.snapshots))


def find_changes(plan: Plan) -> tuple[set[str], Definitions]:
    """The names of the flags that evaluate differently after the import, and their definitions then.

    Strategies get temporary ids, new segments negative ids.
    """
    if plan.target is None or plan.references is None:
        return set(), Definitions([], {})
    project, environment = plan.target.project.id, plan.target.environment
    planned = list(plan.with_action(Action.CREATE, Action.CHANGE))
    stored = read_definitions([project], environment, flags=[flag.name for flag in planned])
    before = stored.by_name()
    after = {
        flag.name: _make_definition(flag, flag.after, project)
        for flag in planned
        if flag.after is not None and not flag.after["archived"]
    }
    names = {flag.name for flag in planned}
    changed = {
        name for name in names if _select_evaluated(before.get(name)) != _select_evaluated(after.get(name))
    }
    return changed, _add_segments(plan, [after[name] for name in sorted(changed & after.keys())], stored)


def _select_evaluated(flag: FlagDefinition | None) -> dict[str, Any] | None:
    """Selects the parts that affect evaluation."""
    if flag is None:
        return None
    strategies = [{**strategy, "id": ""} for strategy in flag["strategies"]]
    return {**flag, "strategies": strategies, "impression_data": False, "stale": False}


def _make_definition(planned: FlagPlan, after: Document, project: str) -> FlagDefinition:
    return {
        "name": planned.name,
        "project": project,
        "enabled": after["enabled"],
        "impression_data": after["impressionData"],
        "stale": after["stale"],
        "variants": after["variants"],
        "strategies": [
            strategy | {"id": f"planned-{planned.name}-{index}"}
            for index, strategy in enumerate(after["strategies"])
        ],
        "dependencies": after["parents"],
    }


def _add_segments(plan: Plan, flags: list[FlagDefinition], present: Definitions) -> Definitions:
    """These flags with the segments they use: stored ones and new ones of the import."""
    assert plan.references is not None
    new: dict[int, Any] = {segment["id"]: segment for segment in plan.references.new_segments}
    rows = Segment.objects.filter(id__in=find_used_segments(flags) - new.keys() - present.segments.keys())
    stored = {row.id: row.definition for row in rows}
    return Definitions.of(flags, present.segments | stored | new)
