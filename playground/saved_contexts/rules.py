"""Validation rules for saved contexts, used by the API and the console."""

from collections.abc import Iterator

import orjson

from flagadmin.errors import Problem
from playground.models import SavedContext
from playground.request import read_context

LONGEST_NAME, LONGEST_NOTE = 100, 2_000  # characters
LONGEST_CONTEXT = 100_000  # bytes of JSON
MOST_IN_A_PROJECT = 1_000
"""As many can also belong to no project."""


def saved_context_problems(saved: SavedContext) -> Iterator[Problem]:
    """Problems of a saved context. Replaces its context with the one that the playground makes of it."""
    if not saved.name:
        yield Problem("name", "a name is required")
    elif len(saved.name) > LONGEST_NAME:
        yield Problem("name", f"must have at most {LONGEST_NAME} characters")
    if len(saved.note) > LONGEST_NOTE:
        yield Problem("note", f"must have at most {LONGEST_NOTE:,} characters")
    problems: list[Problem] = []
    saved.context = read_context({"context": saved.context}, problems)
    yield from problems
    stored = orjson.dumps(saved.context)
    if b"\\u0000" in stored:
        yield Problem("context", "must not contain a NUL character (\\u0000)")
    if len(stored) > LONGEST_CONTEXT:
        yield Problem("context", f"must have at most {LONGEST_CONTEXT:,} bytes as JSON")
