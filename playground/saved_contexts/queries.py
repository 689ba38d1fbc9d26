"""Reads saved contexts."""

from collections.abc import Iterable

from django.db.models import QuerySet

from flagadmin.errors import Problem, check_problems
from groups.access import Caller
from playground.models import SavedContext
from projects.project_scope import visible


def visible_contexts(caller: Caller) -> "QuerySet[SavedContext]":
    """Saved contexts of no project, and those of projects that the caller may read, by name."""
    return visible(SavedContext.objects.all(), caller)


def named_contexts(caller: Caller, names: Iterable[str], path: str) -> list[SavedContext]:
    """The saved contexts with these names, in this order. Raises ValidationError for names that are not found."""
    wanted = list(dict.fromkeys(names))
    found = {saved.name: saved for saved in visible_contexts(caller).filter(name__in=wanted)}
    check_problems(
        [
            Problem(f"{path}[{index}]", f"saved context {name} not found")
            for index, name in enumerate(wanted)
            if name not in found
        ]
    )
    return [found[name] for name in wanted]
