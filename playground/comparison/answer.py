"""Compares two states for a caller, and writes the answer of the API."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import chain, islice
from operator import or_
from time import monotonic
from typing import Any, NamedTuple

from flagadmin.core.errors import ValidationError
from flagadmin.core.server.gc_control import gc_paused
from groups.access import Caller
from playground.comparison.compare import CHANGES, Change, Comparison, Example, FlagComparison, Result, summed
from playground.comparison.given_contexts import GivenContexts
from playground.comparison.past import notes_on, readable_past
from playground.comparison.payloads import answer_document
from playground.comparison.planned import PlannedImport
from playground.comparison.request import check_planned, read_planned, read_state
from playground.comparison.shares import Answer
from playground.comparison.states import documents, flags_states, snapshots
from playground.comparison.table import ContextTable
from playground.engine.context import Context
from playground.engine.snapshot import Snapshot
from playground.models import SavedContext
from playground.queries import active_flags
from playground.saved_contexts.effects import expectations_changed_by, expected_flags, with_children
from playground.saved_contexts.report import changes_document
from projects.definitions import Definitions
from projects.models import Dependency

MAX_RESULTS = 1_000_000
"""Flags times contexts of one request."""
MAX_RULES = 500
"""Flags whose rules make the contexts, the first by name: reading those of one takes a millisecond."""
MAX_READ_ALONE = 50
"""Flags that are read at a moment without all others."""
MAX_SECONDS = 20
EXAMPLES = 20


Read = Callable[[Sequence[str]], list[Definitions]]
"""The documents of flags and their parents in both states."""


class Asked(NamedTuple):
    """The two states of a request, the names of the flags, and the contexts; saved ones are the first."""

    before: Snapshot
    after: Snapshot
    names: list[str]
    contexts: list[Context]
    saved: Sequence[SavedContext]
    notes: list[str]
    read: Read
    projects: frozenset[str]
    planned: Mapping[str, PlannedImport]

    @property
    def saved_contexts(self) -> Mapping[str, SavedContext]:
        """Those that the later state changes, as they would be, by name."""
        return self.planned["to"].saved_contexts if "to" in self.planned else {}


def asked(caller: Caller, body: Mapping[str, Any], *, beside: Callable[[], Collection[str]]) -> Asked:
    """Reads what a validated body names. Raises ValidationError with what does not exist, or if it is too much.

    If the body names a flag, and a moment, the states have only that flag, those that depend on it now, those `beside`
    it, and their parents.
    """
    planned = read_planned(caller, body)
    places = {
        f"{place}.environment": planned[place].environment if place in planned else body[place]["environment"]
        for place in ("from", "to")
    }
    times = {f"{place}.environment": body[place]["at"] for place in ("from", "to") if "at" in body[place]}
    current, moments = readable_past(caller, body.get("projects"), places, times)
    check_planned(planned, current)
    states = [
        read_state(body[place], place, current, moments.get(f"{place}.environment"), planned.get(place))
        for place in ("from", "to")
    ]
    flag = body.get("flag")
    are_stored = not any(state.draft or state.planned for state in states)
    given = GivenContexts(caller, body["contexts"])
    few = [flag, *_dependent_flags(flag, current), *beside()] if flag and moments and are_stored else []
    if 0 < len(few) <= MAX_READ_ALONE:
        (before, after), known = flags_states(current, states, few)
    else:
        if not flag and not moments:  # before flags are compiled, which takes longest if there are too many
            check_size(active_flags(current), given.most)
        (before, after), known = snapshots(current, states), None
    names = _names(flag, before, after)
    check_size(len(names), given.most)

    def read(flags: Sequence[str]) -> list[Definitions]:
        return known or list(documents(current, states, {*flags, *_parents(flags, (before, after))}))

    contexts = given.make(lambda: read(names[:MAX_RULES]))
    notes = [note for moment in moments.values() for note in notes_on(moment)]
    notes += [note for found in planned.values() for note in found.notes]
    notes = list(dict.fromkeys(notes))
    return Asked(before, after, names, contexts, given.saved, notes, read, frozenset(current), planned)


@gc_paused
def compared(caller: Caller, body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a validated body. Raises ValidationError."""
    given = asked(caller, body, beside=lambda: expected_flags(caller))
    comparison = Comparison(given.before, given.after, ContextTable(given.contexts))
    limit = body.get("limit", EXAMPLES)
    answer = written(comparison, given.names, saved=given.saved, always=body.get("flag"), limit=limit)
    flags = with_children(given.names, (given.before, given.after))
    states = (given.before, given.after)
    changed = expectations_changed_by(
        caller, *states, flags, projects=given.projects, instead=given.saved_contexts
    )
    answer["expectations"] = changes_document(changed)
    return answer | ({"notes": given.notes} if given.notes else {})


def written(
    comparison: Comparison,
    names: Sequence[str],
    *,
    saved: Sequence[SavedContext] = (),
    always: str | None = None,
    limit: int = EXAMPLES,
) -> dict[str, Any]:
    """Compares these flags. The answer lists those that change, and one of them `always`."""
    contexts = comparison.table.contexts
    found = list(_in_time(comparison, names))
    shown = [each for each in found if each.name == always or each.changed or each.count(Change.UNKNOWN)]
    examples = chain.from_iterable(comparison.examples(each, limit) for each in shown)
    return {
        "contexts": len(contexts),
        "people": count_affected(found),
        "counts": _counts(summed(found)),
        "flags": [_flag(each) for each in shown],
        "examples": [_example(each, contexts, saved) for each in islice(examples, limit)],
    }


def count_affected(found: Iterable[FlagComparison]) -> int:
    """The contexts for which at least one of the flags changes."""
    return reduce(or_, (each.contexts.get(change, 0) for each in found for change in CHANGES), 0).bit_count()


def check_size(flags: int, contexts: int) -> None:
    if flags * contexts > MAX_RESULTS:
        raise ValidationError(
            f"This would compare {flags:,} flags for up to {contexts:,} contexts; together they may be "
            f"{MAX_RESULTS:,}. Name a flag, or give fewer contexts."
        )


def _in_time(comparison: Comparison, names: Sequence[str]) -> Iterator[FlagComparison]:
    """Compares flag by flag. Rules can be made that take long."""
    start = monotonic()
    for done, name in enumerate(names):
        if monotonic() - start > MAX_SECONDS:
            raise ValidationError(
                f"After {MAX_SECONDS} seconds {done:,} of {len(names):,} flags were compared. "
                "Name a flag, or give fewer contexts."
            )
        yield comparison.flag(name)


def _names(flag: str | None, before: Snapshot, after: Snapshot) -> list[str]:
    """All flags, or one with those that depend on it."""
    if flag is None:
        return sorted({*before.names, *after.names})
    if flag not in before.positions and flag not in after.positions:
        raise ValidationError.at("flag", f"flag {flag} not found")
    return [flag, *sorted(with_children([flag], (before, after)) - {flag})]


def _dependent_flags(flag: str, projects: Iterable[str]) -> list[str]:
    rows = Dependency.objects.filter(parent__name=flag, flag__project__in=list(projects))
    return list(rows.values_list("flag__name", flat=True))


def _parents(names: Iterable[str], compiled: Iterable[Snapshot]) -> set[str]:
    return {
        parent.name
        for snapshot in compiled
        for name in names
        if name in snapshot.positions
        for parent in snapshot.flags[snapshot.positions[name]].parents
    }


def _counts(counts: Mapping[Change, int]) -> dict[str, int]:
    return {change.value: counts[change] for change in Change}


def _flag(found: FlagComparison) -> dict[str, Any]:
    return {
        "name": found.name,
        "counts": _counts(summed([found])),
        "before": [
            answer_document(answer) | {"contexts": float(count)} for answer, count in found.before.items()
        ],
        "after": [
            answer_document(answer) | {"contexts": float(count)} for answer, count in found.after.items()
        ],
    }


def _example(example: Example, contexts: Sequence[Context], saved: Sequence[SavedContext]) -> dict[str, Any]:
    named = {"savedContext": saved[example.position].name} if example.position < len(saved) else {}
    return {
        "flag": example.flag,
        "context": contexts[example.position].given,
        **named,
        "change": example.change.value,
        "before": _result(example.before),
        "after": _result(example.after),
    }


def _result(result: Result) -> dict[str, Any]:
    shares: Iterable[tuple[Answer, Fraction]] = result.shares
    return {
        "results": [answer_document(answer) | {"share": float(share)} for answer, share in shares],
        "reason": result.reason,
    }
