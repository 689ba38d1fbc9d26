"""States of the flags, as snapshots to compare: what is stored in an environment, with or without a draft, or was."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from flagadmin.core.db.transactions import consistent_reads
from playground.comparison.past import Moment, past_state, users_of
from playground.comparison.planned import PlannedImport
from playground.engine.compilation import recompile
from playground.engine.snapshot import Snapshot
from playground.snapshot_cache import snapshot_at
from projects.definitions import Definitions, definitions
from projects.drafts import Draft


@dataclass(frozen=True, slots=True)
class State:
    """What is stored in an environment now, what was at a moment, or what would be once a draft is saved, or a file
    imported."""

    environment: str
    draft: Draft | None = None
    at: Moment | None = None
    planned: PlannedImport | None = None


def snapshots(current: Mapping[str, int], states: Sequence[State]) -> list[Snapshot]:
    """The snapshots of states, of projects whose revisions were just read.

    States of one environment share every flag that is the same in both, so what a draft changes is all that differs.
    """
    stored = {
        environment: _read(current, environment, [s.draft for s in states if s.environment == environment])
        for environment in dict.fromkeys(state.environment for state in states if state.at is None)
    }
    return [
        past_state(current, state.environment, state.at)
        if state.at is not None
        else _planned(_drafted(*stored[state.environment], state.draft), state.planned)
        for state in states
    ]


def documents(
    current: Mapping[str, int], states: Iterable[State], names: Iterable[str]
) -> Iterator[Definitions]:
    """The documents of flags in these states, with the segments they use."""
    names = list(names)
    for state in states:
        draft = state.draft
        used = () if draft is None else tuple(draft.used_segments())
        read = definitions(current, state.environment, flags=names, segments=used)
        if state.at is not None:
            read = state.at.changed(state.environment).applied(read, set(names))
        if draft is not None:
            read = draft.applied(read)
        if state.planned is not None:
            read = state.planned.applied(read, set(names))
        yield read


def flags_states(
    current: Mapping[str, int], states: Sequence[State], flags: Collection[str]
) -> tuple[list[Snapshot], list[Definitions]]:
    """A few flags with their parents in states without drafts, as snapshots and as documents.

    Faster than `snapshots` for moments after which much has changed.
    """
    read = [
        state.at.flags(flags, state.environment)
        if state.at
        else _flags_now(current, state.environment, flags)
        for state in states
    ]
    compiled: list[Snapshot] = []
    for state, found in zip(states, read, strict=True):
        same = [one for one in compiled if one.environment == state.environment]
        documents = (found.flags, found.segments)
        made = recompile(*documents, environment=state.environment, earlier=next(iter(same), None))
        compiled.append(made.snapshot)
    return compiled, read


def _flags_now(current: Mapping[str, int], environment: str, flags: Collection[str]) -> Definitions:
    with consistent_reads():
        found = definitions(current, environment, flags=flags)
        parents = {parent["feature"] for each in found.flags for parent in each["dependencies"]}
        if parents <= set(flags):
            return found
        return definitions(current, environment, flags=parents.union(flags))


def _read(
    current: Mapping[str, int], environment: str, drafts: Sequence[Draft | None]
) -> tuple[Snapshot, Definitions]:
    """The snapshot of an environment, and the documents that the drafts touch as they are in it."""
    snapshot = snapshot_at(current, environment).snapshot
    given = [draft for draft in drafts if draft is not None]
    if not given:
        return snapshot, Definitions([], {})
    names = {name for draft in given for name in _touched(snapshot, draft)}
    segments = {segment for draft in given for segment in draft.used_segments()}
    read = definitions(current, environment, flags=names, segments=segments)
    return _with(snapshot, names, read), read


def _drafted(snapshot: Snapshot, read: Definitions, draft: Draft | None) -> Snapshot:
    if draft is None:
        return snapshot
    names = _touched(snapshot, draft)
    flags = [flag for flag in read.flags if flag["name"] in names]
    changed = {key: read.segments[key] for key in draft.segments if key in read.segments}
    return _with(snapshot, names, draft.applied(Definitions(flags, changed)))


def _planned(snapshot: Snapshot, planned: PlannedImport | None) -> Snapshot:
    return snapshot if planned is None else _with(snapshot, set(planned.names), planned.documents)


def _touched(snapshot: Snapshot, draft: Draft) -> set[str]:
    """The flags that a draft changes: its own, and those that use its segments."""
    return users_of(snapshot, draft.segments) | ({draft.flag} if draft.flag else set())


def _with(snapshot: Snapshot, names: set[str], read: Definitions) -> Snapshot:
    """The snapshot with other definitions of some flags."""
    return recompile(
        read.flags,
        read.segments,
        environment=snapshot.environment,
        earlier=snapshot.without(names),
        unchanged={flag.project for flag in snapshot.flags},
    ).snapshot
