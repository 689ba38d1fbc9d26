"""Who gets something else after an import: the flags as stored beside the flags as they would be."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.utils import timezone

from flagadmin.errors import NotFound
from groups.access import Caller
from importer.plan.definitions import planned_changes
from importer.plan.import_plan import Plan
from playground.comparison.answer import EXAMPLES, MOST_GENERATED, check_size, written
from playground.comparison.compare import Comparison
from playground.comparison.contexts import generated
from playground.comparison.table import ContextTable
from playground.comparison.who_changes import WhoChanges, compared, differing, sampled, users_for
from playground.engine.compilation import recompile
from playground.engine.context import Context
from playground.engine.snapshot import Snapshot
from playground.saved_contexts.effects import expectations_changed_by
from playground.saved_contexts.report import changes_document
from playground.snapshot_cache import snapshot
from projects.definitions import Definitions, definitions

MOST_FLAGS = 1_000
"""Changed flags that are compared, the first by name."""
MOST_RULES = 200
"""Changed flags whose rules make the users: reading those of one takes a millisecond."""
MOST_MADE = 3_000
"""Contexts made from the rules of flags that change for none of the users."""


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


def who_changes(plan: Plan, *, flag: str = "", states: Planned | None = None) -> WhoChanges:
    """Compares the first changed flags for as many users as are quickly done, or one of them. Raises NotFound."""
    states = states or planned_states(plan)
    if flag and flag not in states.names:
        raise NotFound(f"This import does not change the evaluation of {flag}.")
    shown = states.names[:MOST_FLAGS]
    # The same users for one flag as for all.
    users, now = users_for(len(shown)), timezone.now()
    contexts = sampled(states.documents(shown[:MOST_RULES]), now=now, users=users)

    def rare(names: list[str]) -> Sequence[Context]:
        return generated(states.documents(names), now=now, limit=MOST_MADE)

    compare = [flag] if flag else shown
    return compared(states.before, states.after, contexts, compare, total=len(states.names), rare=rare)


def comparison_document(
    plan: Plan, *, caller: Caller, users: int, made: bool = False, seed: int = 0, limit: int = EXAMPLES
) -> dict[str, Any]:
    """All changed flags, as the playground's comparison answers. Raises ValidationError if there are too many."""
    states = planned_states(plan)
    check_size(len(states.names), users + (MOST_GENERATED if made else 0))
    contexts = sampled(
        states.documents(states.names[:MOST_RULES]),
        now=timezone.now(),
        users=users,
        made=MOST_GENERATED if made else 0,
        seed=seed,
    )
    table = ContextTable([*contexts.users, *contexts.made])
    answer = written(Comparison(states.before, states.after, table), states.names, limit=limit)
    changed = expectations_changed_by(caller, states.before, states.after, states.names)
    return answer | {"expectations": changes_document(changed)}


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
