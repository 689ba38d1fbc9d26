"""Measures whose result changes when a change request is applied. It only reads."""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import NamedTuple

from django.db.models import Case, When

from flagadmin.core.caches import BoundedDict
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.errors import AppError, NotFound, ValidationError
from flagadmin.core.http.responses import iso
from groups.access import Caller
from playground.comparison.compare import Change as Kind
from playground.comparison.impact import MAX_GENERATED, MAX_TESTS, SAMPLES, count_values
from playground.comparison.people import depends_on_time
from playground.comparison.states import compile_definitions
from playground.comparison.unmeasured import (
    Unmeasured,
    find_most_affected,
    find_named,
    find_unmeasured,
    may_be_on,
)
from playground.comparison.who_changes import (
    MAX_USERS,
    Contexts,
    FlagChanges,
    WhoChanges,
    choose_number_of_users,
    find_differing,
    generate_users,
)
from playground.models import OwnUsers, SavedContext
from playground.pages.lines import Explain, Line, Side, Who, make_line
from playground.saved_contexts.effects import UNLIMITED, SavedEffects, find_effects, list_saved
from playground.user_runs.file import MAX_OWN_USERS, make_own_contexts
from projects.access import find_project_environment
from projects.definitions import Definitions, read_definitions
from projects.models import Dependency, Strategy
from releases.changes import KINDS
from releases.models import Change, ChangeRequest, Milestone
from releases.requests.approvers import list_approvers
from releases.targets import Predicted

SEED = 0
"""The same generated users for every measurement."""
ADDED = frozenset({Kind.OFF_TO_ON, Kind.VARIANT, Kind.PAYLOAD, Kind.SHARE, Kind.UNKNOWN})
"""Kinds of changes that turning flags off never causes."""


class Impact(NamedTuple):
    """`document` is stored with reviews, `summary` with the request (`summarize`)."""

    document: Document
    summary: Document
    effects: SavedEffects


class Measured(NamedTuple):
    """``who`` compares all changed flags, ``effects`` are those on saved contexts, ``after`` is the later state.

    ``unmeasured``: the parts that generated users cannot measure. ``named``: the number of users with an id listed in a
    condition, and the number of these who change. ``most``: the same of the users who meet all conditions of a changed
    strategy, for the one with the largest share.
    """

    who: WhoChanges
    effects: SavedEffects
    after: Definitions
    unmeasured: Sequence[Unmeasured]
    named: tuple[int, int]
    most: tuple[int, int]

    def document(self) -> Document:
        """The form stored with reviews, for comparison with the measurement before applying the request."""
        who, effects = self.who, self.effects
        names = SavedContext.objects.filter(pk__in=effects.who).order_by("name").values_list("pk", "name")
        flags = self.after.by_name()
        added = (
            flag.for_everyone.count(kind)
            for flag in who.flags
            for kind in ADDED
            if may_be_on(flag.name, flags)
        )
        left = who.users < MAX_USERS and any(may_be_on(name, flags) for name in who.names)
        return {
            "users": who.users,
            "seed": SEED,
            "changed": who.affected,
            "counts": {kind.value: number for kind, number in who.people.items() if number},
            "savedContexts": [{"id": key, "name": name} for key, name in names],
            "brokenExpectations": len(effects.broken),
            "onlyTurnsOff": not left
            and not any(added)
            and not any(each.may_be_on for each in self.unmeasured),
            "unmeasured": [each.sentence for each in self.unmeasured],
            "named": {"users": self.named[0], "changed": self.named[1]},
            "mostAffected": {"users": self.most[0], "changed": self.most[1]},
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
    effects = find_effects(Caller.system(), old, new, flags=names)
    states = before, after
    shares = find_named(who, *states), find_most_affected(who, *states)
    return Measured(who, effects, after, find_unmeasured(who, *states), *shares)


def measure_impact(request: ChangeRequest, *, now: datetime) -> Impact:
    """Measures the impact. Reuses the last measurement of the same states. Raises ValidationError."""
    before, after = predict_review(request)
    environment, own = request.environment_id, _find_own_users(request)
    breached = predict_breach(request)
    same = find_fingerprint(request.project_id, before, after, own, breached)
    last, summary = request.impact, request.summary
    if same and last and summary and last.get("fingerprint") == summary["fingerprint"] == same:
        old, new = compile_definitions(environment, before, after)
        effects = find_effects(Caller.system(), old, new, flags=find_differing(old, new))
        return Impact(dict(last), summary, effects)
    if same and (impact := _measured.get(same)):
        return impact._replace(document=dict(impact.document))
    measured, kept = measure_difference(environment, before, after, now=now), {"fingerprint": same}
    document = measured.document() | kept
    if breached is not None:
        document["ifBreached"] = measure_difference(environment, before, breached, now=now).document()
    if own is not None:
        document["own"] = _measure_own(own, environment, before, after)
    impact = Impact(document, summarize(measured.who) | kept, measured.effects)
    if same:
        _measured[same] = impact
    return impact


_measured: BoundedDict[str, Impact] = BoundedDict(100)
"""The latest measurements by fingerprint, for pages that show the requests of several people."""


def _find_own_users(request: ChangeRequest) -> OwnUsers | None:
    """The latest kept file of users of a possible approver; without any, the author's."""
    people = [user.pk for user in list_approvers(request.project_id, request.environment_id)]
    files = (
        OwnUsers.objects.filter(user__in=[*people, request.author_id]).select_related("user").defer("body")
    )
    by_author = Case(When(user=request.author_id, then=1), default=0)
    return files.order_by(by_author, "-kept_at").first()


def _measure_own(own: OwnUsers, environment: str, before: Definitions, after: Definitions) -> Document:
    old, new = compile_definitions(environment, before, after)
    contexts = Contexts(make_own_contexts(own, MAX_OWN_USERS), own.file_name)
    who = WhoChanges(old, new, contexts, find_differing(old, new), budget=UNLIMITED)
    return {"by": own.user.username, "users": who.users, "changed": who.affected}


def find_fingerprint(
    project_id: str,
    before: Definitions,
    after: Definitions,
    own: OwnUsers | None = None,
    breached: Definitions | None = None,
) -> str:
    """Equal for equal measurements: two states, and saved contexts. "" if it depends on the time."""
    if depends_on_time(before) or depends_on_time(after):
        return ""
    saved = [
        (context.pk, context.name, context.context, context.expectations)
        for context in list_saved(Caller.system(), [project_id])
    ]
    also = [own and [own.pk, iso(own.kept_at)], breached and breached.flags]
    return hash_document([before.flags, before.segments, after.flags, after.segments, saved, also])


def predict_review(request: ChangeRequest) -> tuple[Definitions, Definitions]:
    """Like `predict_request`, including automatic consequences. Raises ValidationError."""
    with consistent_reads():
        return predict_changes(request, list(request.changes.all()), to_review=True)


def predict_request(request: ChangeRequest) -> tuple[Definitions, Definitions]:
    """The changed flags and those near them, as stored and after the request. Raises ValidationError."""
    return predict_changes(request, list(request.changes.all()))


def changes_nothing(request: ChangeRequest, change: Change) -> bool:
    """Whether this change leaves everything as stored, and the flag as the request's other changes leave it."""
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
    """Like `predict_request`, for some of its changes. `to_review`: includes automatic consequences."""
    state = predict_state(request, changes, to_review=to_review)
    return state.start, state.definitions()


def predict_state(request: ChangeRequest, changes: Sequence[Change], *, to_review: bool = False) -> Predicted:
    """The state after these changes, with its plans. Raises ValidationError."""
    state = _read_state(request, changes)
    for number, change in enumerate(changes, 1):
        make_change(state, change, number, to_review=to_review)
    return state


def list_idle(request: ChangeRequest, changes: Sequence[Change]) -> list[Change]:
    """Those of the changes that leave everything as stored, each by itself. A few queries. Raises ValidationError."""
    stored = _read_state(request, changes)
    return [change for change in changes if _is_idle(stored.copy(), change)]


def _is_idle(state: Predicted, change: Change) -> bool:
    try:
        make_change(state, change, 1)
    except ValidationError:
        return False
    return state.definitions() == state.start


def _read_state(request: ChangeRequest, changes: Sequence[Change]) -> Predicted:
    stored = read_near(request, changes)
    try:
        link = find_project_environment(request.project_id, request.environment_id)
    except NotFound as error:
        raise ValidationError(error.message) from error
    return Predicted(link, stored)


def predict_breach(request: ChangeRequest) -> Definitions | None:
    """The possible effect of its safeguards, None if none turns a flag off. Raises ValidationError."""
    changes = list(request.changes.all())
    if not any(KINDS[change.action].may_be_breached for change in changes):
        return None
    with consistent_reads():
        state = predict_state(request, changes, to_review=True)
        breached = [KINDS[each.action].draft_breach(state, each.feature, each.payload) for each in changes]
    return state.definitions() if any(breached) else None


def read_near(request: ChangeRequest, changes: Sequence[Change]) -> Definitions:
    """Reads everything that these changes touch in the request's environment, and the flags near it, as stored."""
    segments = set(list_named_segments(changes)) | list_planned_segments(request, changes)
    payloads = (change.payload for change in changes if isinstance(change.payload, dict))
    parents = {payload["feature"] for payload in payloads if "feature" in payload}
    names = add_near(list_touched_flags(request, changes) | parents)
    return read_definitions([request.project_id], request.environment_id, flags=names, segments=segments)


def make_change(state: Predicted, change: Change, number: int, *, to_review: bool = False) -> None:
    """Drafts a change. Raises ValidationError that names it by its number."""
    kind = KINDS[change.action]
    draft = kind.draft_review if to_review else kind.draft
    try:
        draft(state, change.feature, change.payload)
    except AppError as error:
        raise ValidationError(f"Change {number}: {error.message}", details=error.details) from error


def list_planned_segments(request: ChangeRequest, changes: Iterable[Change]) -> set[int]:
    """The segments of all milestones of the plans in these changes."""
    names = {change.feature for change in changes if KINDS[change.action].is_later}
    if not names:
        return set()
    plans = {"plan__flag__name__in": names, "plan__environment": request.environment_id}
    milestones = Milestone.objects.filter(**plans, plan__flag__project=request.project_id)
    return set(chain.from_iterable(milestone.list_segments() for milestone in milestones))


def list_named_segments(changes: Iterable[Change]) -> Iterator[int]:
    """The segments that these changes modify, or that strategies in their payloads use."""
    for change in changes:
        if KINDS[change.action].of_segment:
            yield change.payload["id"]
        elif isinstance(change.payload, dict):
            yield from change.payload.get("segments") or ()


def list_touched_flags(request: ChangeRequest, changes: Sequence[Change] | None = None) -> set[str]:
    """The changed flags, and the project's flags that use a changed segment."""
    changes = list(request.changes.all()) if changes is None else changes
    segments = [change.payload["id"] for change in changes if KINDS[change.action].of_segment]
    using = Strategy.objects.filter(
        segments__in=segments, environment=request.environment_id, flag__project=request.project_id
    )
    named = {change.feature for change in changes if change.feature}
    return named.union(using.values_list("flag__name", flat=True))


def list_descendants(names: Iterable[str]) -> set[str]:
    """The flags that depend on these, directly or through others."""
    found: set[str] = set()
    fresh = set(names)
    while fresh:
        children = Dependency.objects.filter(parent__name__in=fresh, flag__archived_at=None)
        fresh = set(children.values_list("flag__name", flat=True)) - found
        found |= fresh
    return found


def add_near(names: Iterable[str]) -> set[str]:
    """Adds their children, and the parents of all of these."""
    below = set(names).union(
        Dependency.objects.filter(parent__name__in=names).values_list("flag__name", flat=True)
    )
    above = Dependency.objects.filter(flag__name__in=below).values_list("parent__name", flat=True)
    return below.union(above)


# Summaries --------------------------------------------------------------------------------------------------

EXAMPLES = 3


def summarize(who: WhoChanges) -> Document:
    """JSON: users by flag and change, the number of other changed contexts, and some examples."""
    examples = chain.from_iterable(_list_examples(who, flag) for flag in who.flags)
    return {
        "flags": {
            flag.name: {change.value: number for change, number in flag.counts.items() if number}
            for flag in who.flags
        },
        "made": sum(flag.made for flag in who.flags),
        "examples": list(islice(examples, EXAMPLES)),
    }


def _list_examples(who: WhoChanges, flag: FlagChanges) -> Iterator[Document]:
    for example in who.examples(flag, limit_each=1):
        context = flag.source.table.contexts[example.position]
        line = make_line(example, context)
        yield {
            "flag": example.flag,
            "context": dict(context.fields),
            "who": [*line.who],
            "before": [*line.before],
            "after": [*line.after],
        }


def read_line(example: Document, explain: Explain) -> Line:
    """An example, with its flag and a link that explains it."""
    link = explain(example["flag"], example["context"])
    name, rest = example["who"]
    who = Who(name, f"{example['flag']} · {rest}" if rest else example["flag"])
    return Line(who, Side(*example["before"]), Side(*example["after"]), link)
