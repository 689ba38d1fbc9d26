"""Validation rules for saved contexts, used by the API and the console."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from flagadmin.core.errors import Problem
from flagadmin.core.unreadable_values import drop_unreadable
from playground.context_body import read_context
from playground.models import SavedContext
from projects.strategies.variant_rules import payload_problems

MAX_NAME_LENGTH, MAX_NOTE_LENGTH = 100, 2_000  # characters
MAX_CONTEXT_LENGTH = 100_000  # bytes of JSON
MAX_EXPECTATIONS = 100
MAX_PAYLOAD = 10_000  # characters of an expected payload
MAX_IN_A_PROJECT = 1_000
"""The same limit applies to contexts without a project."""


@dataclass(frozen=True, slots=True)
class Known:
    """The names that expectations may use: flags that the caller may read, with their project, and environments."""

    flags: Mapping[str, str]
    environments: Collection[str]


def saved_context_problems(saved: SavedContext) -> Iterator[Problem]:
    """Problems of a saved context. Replaces its context with the playground's normalized form."""
    if not saved.name:
        yield Problem("name", "a name is required")
    elif len(saved.name) > MAX_NAME_LENGTH:
        yield Problem("name", f"must have at most {MAX_NAME_LENGTH} characters")
    if len(saved.note) > MAX_NOTE_LENGTH:
        yield Problem("note", f"must have at most {MAX_NOTE_LENGTH:,} characters")
    problems: list[Problem] = []
    saved.context = read_context({"context": saved.context}, problems)
    yield from problems
    stored = orjson.dumps(saved.context)
    if b"\\u0000" in stored:
        yield Problem("context", "must not contain a NUL character (\\u0000)")
    if len(stored) > MAX_CONTEXT_LENGTH:
        yield Problem("context", f"must have at most {MAX_CONTEXT_LENGTH:,} bytes as JSON")


def make_expectation_documents(expectations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Expectations in stored form: ``payload`` only if one is expected."""
    return [
        {
            "flag": expectation["flag"],
            "environment": expectation["environment"],
            "enabled": expectation["enabled"],
            "variant": expectation.get("variant") or None,
            **({"payload": dict(expectation["payload"])} if expectation.get("payload") else {}),
        }
        for expectation in expectations
    ]


def expectation_problems(
    expectations: Sequence[Mapping[str, Any]],
    *,
    stored: Sequence[Mapping[str, Any]],
    project: str | None,
    known: Known,
) -> Iterator[Problem]:
    """Problems of the expectations of a saved context. Stored ones may refer to deleted objects."""
    if len(expectations) > MAX_EXPECTATIONS:
        yield Problem("expectations", f"must have at most {MAX_EXPECTATIONS} entries")
        return
    places: set[tuple[str, str]] = set()
    for index, expectation in enumerate(expectations):
        path, key = f"expectations[{index}]", (expectation["flag"], expectation["environment"])
        if key in places:
            yield Problem(path, f"{key[0]} has another expectation in {key[1]}")
        places.add(key)
        if expectation["variant"] and not expectation["enabled"]:
            yield Problem(f"{path}.variant", "a flag that is off gives no variant")
        if expectation.get("payload"):
            yield from _payload_problems(expectation, f"{path}.payload")
        if expectation not in stored:
            yield from _unknown_problems(expectation, path, project, known)


def _payload_problems(expectation: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if not expectation["enabled"]:
        yield Problem(path, "a flag that is off gives no payload")
    if len(expectation["payload"]["value"]) > MAX_PAYLOAD:
        yield Problem(f"{path}.value", f"must have at most {MAX_PAYLOAD:,} characters")
    yield from drop_unreadable(payload_problems(expectation["payload"], path))


def _unknown_problems(
    expectation: Mapping[str, Any], path: str, project: str | None, known: Known
) -> Iterator[Problem]:
    flag, environment = expectation["flag"], expectation["environment"]
    if flag not in known.flags or (project and known.flags[flag] != project):
        yield Problem(f"{path}.flag", f"flag {flag} not found" + (f" in {project}" if project else ""))
    if environment not in known.environments:
        yield Problem(f"{path}.environment", f"environment {environment} not found")
