"""Measures which users get a different result once a change request is applied. It only reads."""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.errors import AppError, NotFound, ValidationError
from groups.access import Caller
from playground.comparison.compare import Change as Kind
from playground.comparison.impact import MAX_GENERATED, MAX_TESTS, SAMPLES, count_values
from playground.comparison.rules import list_sticky_fields, read_conditions
from playground.comparison.states import compile_definitions
from playground.comparison.who_changes import (
    WhoChanges,
    choose_number_of_users,
    find_differing,
    generate_users,
)
from playground.models import SavedContext
from playground.saved_contexts.effects import UNLIMITED, SavedEffects, find_effects, list_saved
from projects.definitions import Definitions, read_definitions
from projects.flags.environments.toggle import find_project_environment
from projects.models import Dependency, Strategy
from releases.changes import KINDS
from releases.models import Change, ChangeRequest
from releases.predicted import Predicted
from releases.requests.summary import summarize

SEED = 0
"""The same generated users whoever measures, and whenever."""
ADDED = frozenset({Kind.OFF_TO_ON, Kind.VARIANT, Kind.PAYLOAD, Kind.SHARE, Kind.UNKNOWN})
"""Kinds of changes that turning flags off causes for nobody."""


class Impact(NamedTuple):
    """`document` is kept with reviews, `summary` with the request (`requests/summary.py`)."""

    document: Document
    summary: Document
    effects: SavedEffects


class Measured(NamedTuple):
    """``who`` compares all flags that change, ``effects`` are those on saved contexts."""

    who: WhoChanges
    effects: SavedEffects

    def document(self) -> Document:
        """As it is kept with reviews, to be compared with what is measured before the request is applied."""
        who, effects = self.who, self.effects
        names = SavedContext.objects.filter(pk__in=effects.who).order_by("name").values_list("pk", "name")
        added = (flag.for_everyone.count(kind) for flag in who.flags for kind in ADDED)
        return {
            "users": who.users,
            "seed": SEED,
            "changed": who.affected,
            "counts": {kind.value: number for kind, number in who.people.items() if number},
            "savedContexts": [{"id": key, "name": name} for key, name in names],
            "brokenExpectations": len(effects.broken),
            "onlyTurnsOff": not any(added),
        }


def measure_difference(
    environment: str, before: Definitions, after: Definitions, *, now: datetime
) -> Measured:
    """Compares two states for the same generated users."""
    old, new = compile_definitions(environment, before, after)
    names = find_differing(old, new)
    most = MAX_TESTS // max(1, count_values(before) + count_values(after))
    users = min(choose_number_of_users(len(names)), next((n for n in SAMPLES if n <= most), SAMPLES[-1]))
    contexts = generate_users((before, after), now=now, users=users, made=MAX_GENERATED, seed=SEED)
    who = WhoChanges(old, new, contexts, names, budget=UNLIMITED)
    return Measured(who, find_effects(Caller.system(), old, new, flags=names))


def measure_impact(request: ChangeRequest, *, now: datetime) -> Impact:
    """Measures the impact. Counts nobody again if the last measurement was of the same. Raises ValidationError."""
    before, after = predict_review(request)
    environment, same = request.environment_id, find_fingerprint(request.project_id, before, after)
    last, summary = request.impact, request.summary
    if same and last and summary and last.get("fingerprint") == summary["fingerprint"] == same:
        old, new = compile_definitions(environment, before, after)
        effects = find_effects(Caller.system(), old, new, flags=find_differing(old, new))
        return Impact(dict(last), summary, effects)
    measured, kept = measure_difference(environment, before, after, now=now), {"fingerprint": same}
    return Impact(measured.document() | kept, summarize(measured.who) | kept, measured.effects)


def find_fingerprint(project_id: str, before: Definitions, after: Definitions) -> str:
    """The same for all that is measured equally: two states, and saved contexts. "" if it changes with the time."""
    if _depends_on_time(before) or _depends_on_time(after):
        return ""
    saved = [
        (context.pk, context.name, context.context, context.expectations)
        for context in list_saved(Caller.system(), [project_id])
    ]
    return hash_document([before.flags, before.segments, after.flags, after.segments, saved])


def _depends_on_time(read: Definitions) -> bool:
    fields = chain.from_iterable(
        (*list_sticky_fields(flag), *(condition.field for condition in read_conditions(flag, read.segments)))
        for flag in read.flags
    )
    return "currentTime" in fields


def predict_review(request: ChangeRequest) -> tuple[Definitions, Definitions]:
    """Predicts as `predict_request`, with what the changes lead to automatically. Raises ValidationError."""
    with consistent_reads():
        return predict_changes(request, list(request.changes.all()), to_review=True)


def predict_request(request: ChangeRequest) -> tuple[Definitions, Definitions]:
    """The flags that it changes and those near them, as stored and as it would leave them. Raises ValidationError."""
    return predict_changes(request, list(request.changes.all()))


def changes_nothing(request: ChangeRequest, change: Change) -> bool:
    """Whether making this change leaves everything as stored, and the flag as the request's other changes leave it."""
    stored, predicted = predict_changes(request, [change])
    if stored != predicted:
        return False
    others = list(request.changes.filter(feature=change.feature).exclude(pk=change.pk))
    if not others:
        return True
    together = sorted([*others, change], key=lambda each: each.pk or math.inf)  # a new one is the last
    with_it, without = (
        predict_changes(request, changes)[1].by_name().get(change.feature) for changes in (together, others)
    )
    return with_it == without


def predict_changes(
    request: ChangeRequest, changes: Sequence[Change], *, to_review: bool = False
) -> tuple[Definitions, Definitions]:
    """Predicts as `predict_request`, for these of its changes. `to_review`: with what they lead to automatically."""
    stored = read_near(request, changes)
    try:
        link = find_project_environment(request.project_id, request.environment_id)
    except NotFound as error:
        raise ValidationError(error.message) from error
    state = Predicted(link, stored)
    for number, change in enumerate(changes, 1):
        make_change(state, change, number, to_review=to_review)
    return stored, state.definitions()


def read_near(request: ChangeRequest, changes: Sequence[Change]) -> Definitions:
    """Reads what these changes touch in the request's environment, and the flags near it, as stored."""
    segments = set(_segments(changes))
    parents = {change.payload["feature"] for change in changes if change.action == "addDependency"}
    names = add_near(list_touched_flags(request, changes) | parents)
    return read_definitions([request.project_id], request.environment_id, flags=names, segments=segments)


def make_change(state: Predicted, change: Change, number: int, *, to_review: bool = False) -> None:
    """Raises ValidationError that names the change by its number."""
    kind = KINDS[change.action]
    draft = kind.draft_review if to_review else kind.draft
    try:
        draft(state, change.feature, change.payload)
    except AppError as error:
        raise ValidationError(f"Change {number}: {error.message}", details=error.details) from error


def _segments(changes: Iterable[Change]) -> Iterator[int]:
    for change in changes:
        if KINDS[change.action].of_segment:
            yield change.payload["id"]
        elif isinstance(change.payload, dict):
            yield from change.payload.get("segments") or ()


def list_touched_flags(request: ChangeRequest, changes: Sequence[Change] | None = None) -> set[str]:
    """The flags that it changes, and those of the project that use a segment it changes."""
    changes = list(request.changes.all()) if changes is None else changes
    segments = [change.payload["id"] for change in changes if KINDS[change.action].of_segment]
    using = Strategy.objects.filter(
        segments__in=segments, environment=request.environment_id, flag__project=request.project_id
    )
    named = {change.feature for change in changes if change.feature}
    return named.union(using.values_list("flag__name", flat=True))


def add_near(names: Iterable[str]) -> set[str]:
    """Adds their children, and the parents of all of these."""
    below = set(names).union(
        Dependency.objects.filter(parent__name__in=names).values_list("flag__name", flat=True)
    )
    above = Dependency.objects.filter(flag__name__in=below).values_list("parent__name", flat=True)
    return below.union(above)
