"""Says what flags as code change, and which users get a different result, as the API answers it."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from groups.access import Caller
from importer.as_code.actions import WrittenChanges
from playground.comparison.compare import CHANGES
from playground.comparison.contexts import generate_contexts
from playground.comparison.states import compile_definitions
from playground.comparison.who_changes import (
    WhoChanges,
    choose_number_of_users,
    find_differing,
    generate_users,
)
from playground.engine.context import Context
from playground.models import SavedContext
from playground.saved_contexts.effects import UNLIMITED, find_effects
from projects.definitions import Definitions

Document = dict[str, Any]
MAX_FLAGS = 1_000
"""Flags of an environment that are compared, the first by name."""
MAX_LISTED = 100
"""Flags of an environment for which the answer says how many users change."""
MAX_GENERATED = 3_000
"""Edge cases of flags that change for none of the users."""


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
    """Measures with the same generated users for everybody, at any time."""
    states = _narrow(before, after)
    old, new = compile_definitions(environment, *states)
    names = find_differing(old, new)
    compared = names[:MAX_FLAGS]
    contexts = generate_users(states, now=now, users=choose_number_of_users(len(compared)))

    def make_rare(rare: list[str]) -> Sequence[Context]:
        few = [
            Definitions([flag for flag in state.flags if flag["name"] in rare], state.segments)
            for state in states
        ]
        return generate_contexts(few, now=now, limit=MAX_GENERATED)

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
    """Only the flags that are not the same in both, with their children, and the parents of all of these."""
    old, new = ({flag["name"]: flag for flag in state.flags} for state in (before, after))
    segments = {key for key, segment in after.segments.items() if before.segments.get(key) != segment}
    names = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    names |= {flag["name"] for flag in after.flags if segments & _list_used_segments(flag)}
    both = [*before.flags, *after.flags]
    names |= {flag["name"] for flag in both if names & _list_parents([flag])}
    names |= _list_parents(flag for flag in both if flag["name"] in names)
    return tuple(  # type: ignore[return-value]
        Definitions([flag for flag in state.flags if flag["name"] in names], state.segments)
        for state in (before, after)
    )


def _list_used_segments(flag: Any) -> set[int]:
    return {segment for strategy in flag["strategies"] for segment in strategy["segments"]}


def _list_parents(flags: Iterable[Any]) -> set[str]:
    return {parent["feature"] for flag in flags for parent in flag["dependencies"]}
