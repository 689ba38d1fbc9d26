"""The flags now and after an import, as snapshots and as documents."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from importer.plan.definitions import planned_changes
from importer.plan.import_plan import Plan
from playground.comparison.who_changes import differing
from playground.engine.compilation import recompile
from playground.engine.snapshot import Snapshot
from playground.snapshot_cache import snapshot
from projects.definitions import Definitions, definitions


class Planned(NamedTuple):
    """Both states, and the flags that are not the same in them, by name."""

    before: Snapshot
    after: Snapshot
    names: list[str]
    plan: Plan
    changed: set[str]
    planned: Definitions

    def documents(self, names: Iterable[str]) -> Sequence[Definitions]:
        """Some flags with their parents, in both states."""
        read = _with_parents(names, (self.before, self.after))
        return list(_states(self.plan, self.planned, self.changed, read))


def planned_states(plan: Plan) -> Planned:
    """The flags that the import changes, and their children, now and afterwards."""
    before = snapshot([plan.project], plan.environment).snapshot
    changed, planned = planned_changes(plan)
    after = _compiled(before, changed, planned, plan.project)
    names = differing(before, after)
    return Planned(before, after, names, plan, changed, planned)


def _compiled(before: Snapshot, changed: set[str], planned: Definitions, project: str) -> Snapshot:
    """The flags after the import. What it leaves as it is, both states share."""
    known = {segment.id for segment in before.segments}
    return recompile(
        planned.flags,
        {key: segment for key, segment in planned.segments.items() if str(key) not in known},
        environment=before.environment,
        earlier=before.without(changed),
        unchanged={project},
    ).snapshot


def _with_parents(names: Iterable[str], snapshots: Iterable[Snapshot]) -> set[str]:
    names = set(names)
    flags = [s.flags[s.positions[name]] for s in snapshots for name in names if name in s.positions]
    return names | {parent.name for flag in flags for parent in flag.parents}


def _states(plan: Plan, planned: Definitions, changed: set[str], names: set[str]) -> Iterable[Definitions]:
    """The documents of these flags now and after the import."""
    stored = definitions([plan.project], plan.environment, flags=names)
    yield stored
    flags = [flag for flag in stored.flags if flag["name"] not in changed]
    flags += [flag for flag in planned.flags if flag["name"] in names]
    yield Definitions(flags, stored.segments | planned.segments)
