"""What an edit changes, in short: how many of a sample of users, how, and a few of them by name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from flagadmin.server.gc_control import gc_paused
from playground.comparison.compare import CHANGES, Change, Comparison, Example
from playground.comparison.shares import Answer
from playground.comparison.table import ContextTable
from playground.comparison.who_changes import sampled
from playground.engine.compilation import compile_snapshot, recompile
from playground.engine.context import Context
from playground.engine.snapshot import Snapshot
from projects.definitions import Definitions, definitions
from projects.drafts import FlagEdit, NewFlagEdit
from projects.models import Dependency

MOST_EDITS = 10
SAMPLES = (10_000, 5_000, 2_000, 1_000)
"""How many users are sampled: the more edits, the fewer for each."""
MOST_MADE = 300
"""Contexts made from the rules."""
EXAMPLES = 3
MOST_CHILDREN = 3


@dataclass(frozen=True, slots=True)
class Impact:
    """What an edit changes for one flag in one environment.

    `counts`, `before` and `after` are of the `users` sampled. `made` contexts come from the flag's rules; so many of
    them as `made_changed` says get something else. `examples` are of both.
    """

    flag: str
    environment: str
    users: int
    counts: Mapping[Change, int]
    before: Mapping[Answer, float]
    after: Mapping[Answer, float]
    made: int
    made_changed: int
    examples: Sequence[tuple[Context, Example]]
    children: Sequence[tuple[str, int]]
    """Flags that depend on it and change for users, with the number of those."""

    @property
    def changed(self) -> int:
        return sum(self.counts[change] for change in CHANGES)


@gc_paused
def impacts(
    edits: Sequence[FlagEdit | NewFlagEdit], *, now: datetime, examples: int = EXAMPLES
) -> list[Impact]:
    """What each of the first edits changes. The callers of the edits' pages may read their projects."""
    edits = edits[:MOST_EDITS]
    users = next(size for size in SAMPLES if size * len(edits) <= SAMPLES[0] or size == SAMPLES[-1])
    return [
        _of_new_flag(edit, users, now, examples)
        if isinstance(edit, NewFlagEdit)
        else _of_flag(edit, users, now, examples)
        for edit in edits
    ]


def _of_flag(edit: FlagEdit, users: int, now: datetime, examples: int) -> Impact:
    """Compiles the flag and those near it, which takes the same time however large the project is."""
    children = list(_children(edit)[:MOST_CHILDREN])
    names = {edit.flag, *children, *_parents(edit, [edit.flag, *children])}
    used = edit.draft.used_segments()
    stored = definitions([edit.project], edit.environment, flags=names, segments=used)
    planned = edit.draft.applied(stored)
    before = compile_snapshot(stored.flags, stored.segments, environment=edit.environment)
    after = before if planned == stored else _changed(before, stored, planned, edit.project)
    return _impact(
        edit.flag, edit.environment, (before, after), [stored, planned], users, now, examples, children
    )


def _children(edit: FlagEdit) -> QuerySet[Dependency, str]:
    rows = Dependency.objects.filter(
        parent__name=edit.flag, flag__project=edit.project, flag__archived_at=None
    )
    on = rows.filter(flag__environments__environment=edit.environment, flag__environments__enabled=True)
    return on.order_by("flag__name").values_list("flag__name", flat=True)


def _parents(edit: FlagEdit, names: Iterable[str]) -> Iterator[str]:
    """The parents of the flag and of its children, also those that the flag would get."""
    yield from (parent["feature"] for parent in edit.draft.changes.get("dependencies", ()))
    rows = Dependency.objects.filter(flag__name__in=names, flag__project=edit.project)
    yield from rows.values_list("parent__name", flat=True)


def _changed(before: Snapshot, stored: Definitions, planned: Definitions, project: str) -> Snapshot:
    """What is planned; flags and segments that stay as they are, both states share."""
    segments = {key: one for key, one in planned.segments.items() if one != stored.segments[key]}
    documents = {flag["name"]: flag for flag in stored.flags}
    flags = [
        flag
        for flag in planned.flags
        if flag != documents[flag["name"]]
        or any(segments.keys() & set(strategy["segments"]) for strategy in flag["strategies"])
    ]
    gone = documents.keys() - {flag["name"] for flag in planned.flags}
    earlier = before.without({*gone, *(flag["name"] for flag in flags)})
    return recompile(
        flags, segments, environment=before.environment, earlier=earlier, unchanged={project}
    ).snapshot


def _of_new_flag(edit: NewFlagEdit, users: int, now: datetime, examples: int) -> Impact:
    flags = edit.before, edit.after
    used = {segment for flag in flags for strategy in flag["strategies"] for segment in strategy["segments"]}
    segments = definitions([edit.project], edit.environment, flags=[], segments=used).segments
    read = [Definitions([dict(flag)], segments) for flag in flags]
    before, after = (compile_snapshot(r.flags, r.segments, environment=edit.environment) for r in read)
    name = edit.before["name"]
    return _impact(name, edit.environment, (before, after), read, users, now, examples)


def _impact(
    name: str,
    environment: str,
    states: tuple[Snapshot, Snapshot],
    read: Sequence[Definitions],
    users: int,
    now: datetime,
    examples: int,
    children: Iterable[str] = (),
) -> Impact:
    contexts = sampled(read, now=now, users=users, made=MOST_MADE)
    table = ContextTable([*contexts.users, *contexts.made])
    comparison = Comparison(*states, table)
    found = comparison.flag(name)
    sample = (1 << 8 * users) - 1
    counted = found.among(sample)
    follow = (comparison.flag(child).among(sample) for child in (children if counted.changed else ()))
    kinds = sum(1 for change in (*CHANGES, Change.UNKNOWN) if found.count(change))
    shown = comparison.examples(found, examples, each=-(-examples // max(1, kinds)))
    return Impact(
        flag=name,
        environment=environment,
        users=users,
        counts={change: counted.count(change) for change in Change},
        before={answer: float(share) for answer, share in counted.before.items()},
        after={answer: float(share) for answer, share in counted.after.items()},
        made=len(contexts.made),
        made_changed=found.changed - counted.changed,
        examples=[(table.contexts[example.position], example) for example in shown],
        children=[(child.name, child.changed) for child in follow if child.changed],
    )
