"""Who gets something else after an import: the flags as stored beside the flags as they would be."""

from collections.abc import Iterable

from django.utils import timezone

from flagadmin.errors import NotFound
from importer.plan.definitions import planned_changes
from importer.plan.import_plan import Plan
from playground.comparison.who_changes import WhoChanges, compared, differing, sampled, users_for
from playground.engine.compilation import recompile
from playground.engine.snapshot import Snapshot
from playground.snapshot_cache import snapshot
from projects.definitions import Definitions, definitions

MOST_FLAGS = 1_000
"""Changed flags that are compared, the first by name."""
MOST_RULES = 200
"""Changed flags whose rules make the users: reading those of one takes a millisecond."""
MOST_MADE = 100


def who_changes(plan: Plan, *, flag: str = "", users: int | None = None, seed: int = 0) -> WhoChanges:
    """Compares the flags that the import changes, and their children; or one of them. Raises NotFound."""
    before = snapshot([plan.project], plan.environment).snapshot
    changed, planned = planned_changes(plan)
    after = _compiled(before, changed, planned, plan.project)
    names = differing(before, after)
    if flag and flag not in names:
        raise NotFound(f"This import does not change the evaluation of {flag}.")
    shown = names[:MOST_FLAGS]
    # The same users for one flag as for all.
    contexts = sampled(
        _states(plan, planned, changed, _with_parents(shown[:MOST_RULES], (before, after))),
        now=timezone.now(),
        users=users_for(len(shown)) if users is None else users,
        made=MOST_MADE,
        seed=seed,
    )
    return compared(before, after, contexts, [flag] if flag else shown, total=len(names))


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
