"""Reports changes by flags as code, and the users whose results change, in the API's format."""

from collections.abc import Sequence
from datetime import datetime

from flagadmin.core.document import Document
from groups.access import Caller
from importer.as_code.actions import WrittenChanges
from playground.comparison.compare import CHANGES
from playground.comparison.contexts import generate_contexts
from playground.comparison.states import compile_definitions
from playground.comparison.unmeasured import find_unmeasured
from playground.comparison.who_changes import (
    WhoChanges,
    choose_number_of_users,
    find_differing,
    generate_users,
)
from playground.engine.context import Context
from playground.models import SavedContext
from playground.saved_contexts.effects import UNLIMITED, find_effects
from projects.definitions import Definitions, find_parents, find_unlike_flags

MAX_FLAGS = 1_000
"""Flags per environment that are compared, the first by name."""
MAX_LISTED = 100
"""Flags per environment for which the answer states the number of changed users."""
MAX_GENERATED = 3_000
"""Edge cases of flags without a changed user."""


def make_document(written: WrittenChanges, *, now: datetime, caller: Caller) -> Document:
    return {
        "fingerprint": written.fingerprint,
        "changes": written.lines,
        "changeRequests": written.requests,
        "whoChanges": [
            {"project": project, "environment": environment, **_measure(environment, *states, now, caller)}
            for (project, environment), states in written.states.items()
        ],
        "notes": written.notes,
    }


def _measure(
    environment: str, before: Definitions, after: Definitions, now: datetime, caller: Caller
) -> Document:
    """Measures with the same generated users for every caller, at any time."""
    states = _narrow(before, after)
    old, new = compile_definitions(environment, *states)
    names = find_differing(old, new)
    compared = names[:MAX_FLAGS]
    contexts = generate_users(states, now=now, users=choose_number_of_users(len(compared)))

    def make_rare(rare: list[str]) -> Sequence[Context]:
        return generate_contexts([state.select(rare) for state in states], now=now, limit=MAX_GENERATED)

    who = WhoChanges(old, new, contexts, compared, budget=UNLIMITED, total=len(names), make_rare=make_rare)
    effects = find_effects(caller, old, new, flags=names)
    saved = SavedContext.objects.filter(pk__in=effects.who).order_by("name").values_list("name", flat=True)
    flags = sorted(who.flags, key=lambda flag: (-flag.users, flag.name))
    return {
        "users": who.users,
        "changed": who.affected,
        "counts": {kind.value: number for kind, number in who.people.items() if number},
        "compared": len(compared),
        "differing": len(names),
        "savedContexts": list(saved),
        "brokenExpectations": len(effects.broken),
        "unmeasured": [each.sentence for each in find_unmeasured(who, *states)[:MAX_LISTED]],
        "flags": [
            {
                "name": flag.name,
                "changed": flag.users,
                "counts": {kind.value: flag.counts[kind] for kind in CHANGES if flag.counts[kind]},
            }
            for flag in flags[:MAX_LISTED]
        ],
    }


def _narrow(before: Definitions, after: Definitions) -> tuple[Definitions, Definitions]:
    """Only the flags that differ, their children, and the parents of all of these."""
    names = find_unlike_flags(before, after)
    names |= find_parents(flag for flag in [*before.flags, *after.flags] if flag["name"] in names)
    return before.select(names), after.select(names)
