"""Which change did this? For each change of a time, who of the affected users and of others noticed it.

A change is noticed by the users who got another result of some flag. Changes are ranked by how well that explains who
is affected; a transaction is one change, of all its flags. For causes older than the changes, ``common`` lists flags
that the affected had and the others had not.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from typing import Any, NamedTuple

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.responses import iso
from playground.comparison.compare import CHANGES, Change, find_change
from playground.comparison.past import Moment, compile_past_state
from playground.comparison.results import ALWAYS_OFF, Shares
from playground.comparison.table import Mask
from playground.comparison.users import make_users
from playground.engine.outcomes import State
from playground.engine.snapshot import Snapshot
from playground.outcomes.assign import ALWAYS_UNKNOWN
from playground.outcomes.history import FlagHistory, Sight, Window, read_changes
from playground.outcomes.partial import PartialResults, RowTable
from playground.outcomes.statistics import Split, adjust
from playground.outcomes.table import Limits, Table, TooLarge
from projects.definitions import Definitions
from projects.history.definitions_at import check_known, flags_then
from projects.history.timeline import list_changed
from projects.revision import read_revisions

MAX_FLAGS = 500
"""Flags that changed in the window."""
GENERATED = 1_000
"""Users that stand in for others."""
SAMPLED = 10_000
"""Users of each group that are compared for what they have in common."""
FLAGS_PER_TABLE = 20
"""A table keeps all that it has computed."""
MAX_COMMON = 10
LIKELY = 0.01
"""The false discovery rate up to which something explains who is affected."""
Results = dict[Shares, Mask]


class Users(NamedTuple):
    """Users as rows of a table. ``are``: given, own (of the caller's last file), or generated."""

    fields: list[str]
    cells: list[list[str]]
    are: str = "given"

    def table(self, now: datetime) -> RowTable:
        return RowTable(self.fields, self.cells, [now] * len(self.cells))

    def sample(self) -> "Users":
        """Some of them, evenly spread."""
        return self._replace(cells=self.cells[:: -(-len(self.cells) // SAMPLED)])


def read_users(body: bytes, limits: Limits, until: datetime, are: str = "given") -> Users:
    """Raises ValidationError naming rows, TooLarge."""
    table = Table(BytesIO(body), until=until, limits=limits, timed=False)
    cells = [row for rows in table.chunks(limits.rows) for row in rows.cells]
    return Users(table.fields, cells, are)


def generate_others(states: Iterable[Definitions], now: datetime) -> Users:
    texts = [context.fields for context in make_users(states, now=now, count=GENERATED)]
    fields = list(dict.fromkeys(name for each in texts for name in each if name != "currentTime"))
    return Users(fields, [[each.get(name, "") for name in fields] for each in texts], "generated")


@dataclass(slots=True)
class Effect:
    """What a change did. The masks are those of the affected and of the others; so are the counts of ``flags``."""

    moment: datetime
    event: str = ""
    noticed: list[Mask] = field(default_factory=lambda: [0, 0])
    unknown: list[Mask] = field(default_factory=lambda: [0, 0])
    flags: dict[str, tuple[Counter[Change], Counter[Change]]] = field(default_factory=dict)

    def split(self, sizes: Sequence[int]) -> Split:
        """Users of whom it is not known are left out."""
        known = [
            size - (unknown & ~noticed).bit_count()
            for size, noticed, unknown in zip(sizes, self.noticed, self.unknown, strict=True)
        ]
        return Split(self.noticed[0].bit_count(), known[0], self.noticed[1].bit_count(), known[1])


Groups = tuple[Users, Users]


def find_cause(
    sight: Sight, environment: str, window: Window, affected: Users, others: Users | None, *, max_changes: int
) -> dict[str, Any]:
    """The answer. ``others`` None: generated users stand in.

    Raises TooLarge for too many changes, Conflict if the window begins before versions do.
    """
    check_known(window.since)
    names = list_changed(sight.projects, environment, *window)
    if len(names) > MAX_FLAGS:
        raise TooLarge.at(
            "from", f"{len(names):,} flags changed since; at most {MAX_FLAGS}. Choose a later time"
        )
    histories = read_changes(sight, environment, names, window, max_changes=max_changes)
    if others is None:
        states = (flags_then(names, sight.projects, environment, moment) for moment in window)
        others = generate_others(states, window.until)
    groups = affected, others
    return {
        "environment": environment,
        "from": iso(window.since),
        "to": iso(window.until),
        "affected": len(affected.cells),
        "others": len(others.cells),
        "othersAre": others.are,
        "changes": rank_changes(histories, window, groups),
        "common": [] if others.are == "generated" else find_common(sight, environment, window.since, groups),
    }


def rank_changes(histories: Sequence[FlagHistory], window: Window, groups: Groups) -> list[dict[str, Any]]:
    """The changes, first those that explain most. Those that no affected user noticed are last."""
    sizes = [len(group.cells) for group in groups]
    effects = list(_list_effects(histories, window, groups))
    splits = [effect.split(sizes) for effect in effects]
    rows = list(zip(effects, splits, adjust([split.p for split in splits]), strict=True))
    rows.sort(key=lambda row: (not row[1].affected, row[1].log_p, row[0].moment))
    return [_make_change(*row) for row in rows]


def _list_effects(histories: Sequence[FlagHistory], window: Window, groups: Groups) -> Iterable[Effect]:
    effects: dict[datetime, Effect] = {}
    tables: list[RowTable] = []
    for number, history in enumerate(histories):
        if number % FLAGS_PER_TABLE == 0:
            tables = [group.table(window.until) for group in groups]
        for place, moment in enumerate(history.moments):
            if moment > window.since:
                effect = effects.setdefault(moment, Effect(moment))
                effect.event = effect.event or history.changes[place]
                effect.flags[history.name] = Counter(), Counter()
        for side, table in enumerate(tables):
            for moment, changes in _compare_states(history, table):
                if moment > window.since:
                    _count(effects[moment], history.name, side, changes)
    return effects.values()


def find_common(sight: Sight, environment: str, at: datetime, groups: Groups) -> list[dict[str, Any]]:
    """What the affected had of flags at a moment, and others had not. Of many users, some are compared."""
    snapshot = compile_past_state(read_revisions(sight.projects), environment, Moment(at, sight.projects))
    found: list[tuple[str, tuple[str, str], Split]] = []
    some = [group.sample() for group in groups]
    for start in range(0, len(snapshot.names), FLAGS_PER_TABLE):
        tables = [group.table(at) for group in some]
        for name in snapshot.names[start : start + FLAGS_PER_TABLE]:
            found += [(name, *each) for each in _split_answers(snapshot.only(name), name, tables)]
    adjusted = adjust([split.p for *_, split in found])
    rows = sorted(zip(found, adjusted, strict=True), key=lambda row: (row[0][2].log_p, row[0][0]))
    return [_make_common(*row, p) for row, p in rows[:MAX_COMMON] if p <= LIKELY]


def _evaluate(snapshot: Snapshot | None, name: str, table: RowTable) -> Results:
    if snapshot is None:
        return {ALWAYS_UNKNOWN: table.everyone}
    return PartialResults(snapshot, table, name).results(name)


def _compare_states(history: FlagHistory, table: RowTable) -> Iterator[tuple[datetime, dict[Change, Mask]]]:
    """The users by how their result changed, at each moment."""
    before: Results = {ALWAYS_OFF: table.everyone}
    for moment, snapshot in zip(history.moments, history.snapshots, strict=True):
        after = _evaluate(snapshot, history.name, table)
        changes: dict[Change, Mask] = defaultdict(int)
        for old, old_mask in before.items():
            for new, new_mask in after.items():
                if common := old_mask & new_mask:
                    changes[find_change(old, new)] |= common
        yield moment, changes
        before = after


def _count(effect: Effect, name: str, side: int, changes: Mapping[Change, Mask]) -> None:
    for change, mask in changes.items():
        if change in CHANGES:
            effect.noticed[side] |= mask
            effect.flags[name][side][change] += mask.bit_count()
        elif change is Change.UNKNOWN:
            effect.unknown[side] |= mask


def _split_answers(
    snapshot: Snapshot, name: str, tables: Sequence[RowTable]
) -> Iterator[tuple[tuple[str, str], Split]]:
    """How many of both groups are on, off, and have each variant. Random results are neither."""
    masks: list[dict[tuple[str, str], int]] = []
    known = []
    for table in tables:
        counted: dict[tuple[str, str], int] = defaultdict(int)
        size = 0
        for shares, mask in _evaluate(snapshot, name, table).items():
            [(answer, _), *more] = shares
            if more or answer.state is State.UNKNOWN:
                continue
            size += mask.bit_count()
            counted[answer.state.value, ""] += mask.bit_count()
            if answer.variant:
                counted["on", answer.variant] += mask.bit_count()
        masks.append(counted)
        known.append(size)
    for key in masks[0]:
        split = Split(masks[0][key], known[0], masks[1][key], known[1])
        if split.affected * split.of_others > split.others * split.of_affected:
            yield key, split


# The answer -----------------------------------------------------------------------------------------------

MAX_NAMED = 20
_VERBS = {Change.OFF_TO_ON: "turned on", Change.ON_TO_OFF: "turned off"}


def _make_change(effect: Effect, split: Split, adjusted: float) -> dict[str, Any]:
    flags = sorted(effect.flags.items(), key=lambda item: (-item[1][0].total(), -item[1][1].total(), item[0]))
    return {
        "change": effect.event or None,
        "at": iso(effect.moment),
        "flags": [
            {
                "name": name,
                **{
                    group: {change.value: count for change, count in sorted(counts.items(), key=_sort_key)}
                    for group, counts in zip(("affected", "others"), both, strict=True)
                },
            }
            for name, both in flags[:MAX_NAMED]
        ],
        "moreFlags": max(0, len(flags) - MAX_NAMED),
        **_make_numbers(split, adjusted),
        "sentence": _describe_change(flags, split),
    }


def _sort_key(item: tuple[Change, int]) -> int:
    return CHANGES.index(item[0])


def _make_numbers(split: Split, adjusted: float) -> dict[str, Any]:
    return {
        "noticed": {"affected": split.affected, "others": split.others},
        "known": {"affected": split.of_affected, "others": split.of_others},
        "oddsRatio": float(f"{split.odds_ratio:.4g}"),
        "p": float(f"{split.p:.4g}"),
        "pAdjusted": float(f"{adjusted:.4g}"),
        "isLikely": adjusted <= LIKELY and split.affected > 0,
    }


def _describe_change(
    flags: Sequence[tuple[str, tuple[Counter[Change], Counter[Change]]]], split: Split
) -> str:
    name, (affected, others) = flags[0]
    more = f" and {len(flags) - 1} more" if len(flags) > 1 else ""
    if not split.of_affected + split.of_others:
        return f"{name}{more} changed; for whom depends on fields that the tables lack."
    kinds = [change for change, _ in (affected + others).most_common(1)]
    verb = _VERBS.get(kinds[0], "changed") if kinds else "changed"
    if not split.affected:
        return (
            f"{name}{more} {verb} for {_of(split.others, split.of_others)} others and for no affected user."
        )
    return (
        f"{name}{more} {verb} for {_of(split.affected, split.of_affected)} affected users and "
        f"{_of(split.others, split.of_others)} others."
    )


def _of(count: int, total: int) -> str:
    return f"{count:,} of {total:,}"


def _make_common(name: str, answer: tuple[str, str], split: Split, adjusted: float) -> dict[str, Any]:
    state, variant = answer
    had = f"had the variant {variant} of {name}" if variant else f"had {name} {state}"
    both = f"{_of(split.affected, split.of_affected)} affected users and {_of(split.others, split.of_others)} others"
    return {
        "flag": name,
        "result": state,
        "variant": variant or None,
        **_make_numbers(split, adjusted),
        "sentence": f"{both} {had} before.",
    }


def check_window(since: datetime, until: datetime, now: datetime) -> Window:
    """Raises ValidationError."""
    if until > now:
        raise ValidationError.at("to", "must not be in the future")
    if since >= until:
        raise ValidationError.at("from", "must be before to")
    return Window(since, until)
