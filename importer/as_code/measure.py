"""Counts the generated users who change between two states of flags that are read in full."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from flagadmin.core.document import Document
from playground.comparison.compare import CHANGES
from playground.comparison.contexts import generate_contexts
from playground.comparison.states import compile_definitions
from playground.comparison.unmeasured import find_unmeasured
from playground.comparison.who_changes import (
    Contexts,
    WhoChanges,
    choose_number_of_users,
    find_differing,
    generate_users,
)
from playground.engine.context import Context
from playground.saved_contexts.effects import UNLIMITED
from projects.definitions import Definitions, find_parents, find_unlike_flags

MAX_FLAGS = 1_000
"""Flags per environment that are compared, the first by name."""
MAX_LISTED = 100
"""Flags per environment for which the answer states the number of changed users."""
MAX_GENERATED = 3_000
"""Edge cases of flags without a changed user."""


def compare_definitions(
    environment: str, before: Definitions, after: Definitions, *, now: datetime, users: Contexts | None = None
) -> WhoChanges:
    """Compares with the same generated users for every caller, at any time, or with these ``users``."""
    states = before, after
    old, new = compile_definitions(environment, *states)
    names = find_differing(old, new)
    compared = names[:MAX_FLAGS]
    contexts = users or generate_users(states, now=now, users=choose_number_of_users(len(compared)))

    def make_rare(rare: list[str]) -> Sequence[Context]:
        return generate_contexts([state.select(rare) for state in states], now=now, limit=MAX_GENERATED)

    return WhoChanges(old, new, contexts, compared, budget=UNLIMITED, total=len(names), make_rare=make_rare)


def describe_users(who: WhoChanges, before: Definitions, after: Definitions) -> Document:
    """``{users, changed, counts, compared, differing, unmeasured, flags: [{name, changed, counts}]}``"""
    flags = sorted(who.flags, key=lambda flag: (-flag.users, flag.name))
    return {
        "users": who.users,
        "changed": who.affected,
        "counts": {kind.value: number for kind, number in who.people.items() if number},
        "compared": len(who.names),
        "differing": who.total,
        "unmeasured": [each.sentence for each in find_unmeasured(who, before, after)[:MAX_LISTED]],
        "flags": [
            {
                "name": flag.name,
                "changed": flag.users,
                "counts": {kind.value: flag.counts[kind] for kind in CHANGES if flag.counts[kind]},
            }
            for flag in flags[:MAX_LISTED]
        ],
    }


def narrow(before: Definitions, after: Definitions) -> tuple[Definitions, Definitions]:
    """Only the flags that differ, their children, and the parents of all of these."""
    names = find_unlike_flags(before, after)
    names |= find_parents(flag for flag in [*before.flags, *after.flags] if flag["name"] in names)
    return before.select(names), after.select(names)
