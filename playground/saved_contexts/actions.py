"""Creates, changes and deletes saved contexts.

They do not affect evaluation. In a project, changing them requires permission to change its flags; outside projects,
permission to change context fields everywhere.

Validation rules for saved contexts, used by the API and the console.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import orjson
from django.db.models import Q, QuerySet

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import NotFound, Problem, ValidationError, check_problems
from flagadmin.core.hook import Hook
from flagadmin.core.unreadable_values import drop_unreadable
from groups.access import Caller, Permission
from playground.context_body import read_context
from playground.models import SavedContext
from playground.saved_contexts.enforcement import (
    check_may_state,
    enforce,
    list_enforcing_projects,
    read_flag_projects,
)
from playground.saved_contexts.queries import (
    build_visible_document,
    make_saved_context_document,
    select_visible_expectations,
)
from projects.access import check_project, list_projects_with
from projects.deletion.kept_names import ENVIRONMENT, FLAG, PROJECT
from projects.models import Environment, Flag
from projects.project_scope import check_scope, lock_scope, name_is_free
from projects.strategies.rules import payload_problems

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


check_watched: Hook[[SavedContext, Document | None, Document | None, Caller], None] = Hook(
    "playground.saved_contexts.actions.check_watched", lambda saved, before, after, caller: None
)
"""Checks the change of a saved context from one document to another (None: there is none). Raises Refusal."""
EVERYWHERE = Permission.UPDATE_CONTEXT_FIELD
OWN_PROJECT = Permission.UPDATE_FEATURE


@transactional
def create_saved_context(values: Mapping[str, Any], *, caller: Caller) -> SavedContext:
    """``values`` are keyed by model field. Raises ValidationError, NameExists, NoAccess."""
    saved = SavedContext(**values, created_by=caller.name)
    saved.expectations = make_expectation_documents(saved.expectations)
    check_may_change(caller, saved.project_id)
    if saved.project_id:
        check_project(caller, saved.project_id)
    lock_scope(saved.project_id, caller=caller)
    if SavedContext.objects.filter(project=saved.project_id).count() >= MAX_IN_A_PROJECT:
        where = f"project {saved.project_id}" if saved.project_id else "no project"
        raise ValidationError(f"There are {MAX_IN_A_PROJECT:,} saved contexts of {where}; delete one first.")
    check_saved_context(saved, caller)
    enforce(saved, caller, before=None, projects=read_flag_projects(saved.expectations))
    _save(saved, caller)
    record(
        make_event(
            EventType.SAVED_CONTEXT_CREATED, saved, after=make_saved_context_document(saved), caller=caller
        ),
        actor=caller,
    )
    return saved


@transactional
def update_saved_context(
    context_id: int, changes: Mapping[str, Any], *, expected: Expected = None, caller: Caller
) -> SavedContext:
    """Changes the given model fields; the project stays.

    Raises NotFound, NoAccess, EditConflict, ValidationError, NameExists.
    """
    saved = access_saved_context_for_update(caller, context_id)
    before = make_saved_context_document(saved)
    stored = {"context": saved.context, "expectations": saved.expectations}
    check_expected(expected, build_visible_document(caller, saved))
    visible = select_visible_expectations(caller, [saved])[saved.pk]
    for key, value in changes.items():
        setattr(saved, key, value)
    if "expectations" in changes:
        hidden = [expectation for expectation in stored["expectations"] if expectation not in visible]
        saved.expectations = make_expectation_documents([*changes["expectations"], *hidden])
    check_saved_context(saved, caller, stored=stored["expectations"])
    enforce(saved, caller, before=stored, projects=read_flag_projects(saved.expectations))
    if any(before[key] != value for key, value in make_saved_context_document(saved).items()):
        _save(saved, caller)
        after = make_saved_context_document(saved)
        record(
            make_event(EventType.SAVED_CONTEXT_UPDATED, saved, before=before, after=after, caller=caller),
            actor=caller,
        )
    return saved


@transactional
def add_expectation(context_id: int, expectation: Mapping[str, Any], *, caller: Caller) -> SavedContext:
    """Adds an expectation to a saved context. Raises the errors of ``update_saved_context``."""
    saved = access_saved_context_for_update(caller, context_id)
    visible = select_visible_expectations(caller, [saved])[saved.pk]
    return update_saved_context(context_id, {"expectations": [*visible, expectation]}, caller=caller)


@transactional
def delete_saved_context(context_id: int, *, expected: Expected = None, caller: Caller) -> None:
    """Raises NotFound, NoAccess, EditConflict."""
    saved = access_saved_context_for_update(caller, context_id)
    before = make_saved_context_document(saved)
    check_expected(expected, build_visible_document(caller, saved))
    check_may_state(caller, list_enforcing_projects(saved, saved.expectations))
    record(make_event(EventType.SAVED_CONTEXT_DELETED, saved, before=before, caller=caller), actor=caller)
    saved.delete()


def access_saved_context(caller: Caller, context_id: int) -> SavedContext:
    """A saved context that the caller may read. Raises NotFound."""
    saved = SavedContext.objects.readable_by(caller).filter(pk=context_id).first()
    if saved is None:
        raise _no_context(context_id)
    return saved


def access_saved_context_to_change(caller: Caller, context_id: int) -> SavedContext:
    """A saved context that the caller may change. Raises NotFound, NoAccess."""
    saved = access_saved_context(caller, context_id)
    check_may_change(caller, saved.project_id)
    return saved


def check_may_change(caller: Caller, project_id: str | None) -> None:
    """Raises NoAccess if the caller may not change saved contexts of the project (None: of no project)."""
    check_scope(caller, EVERYWHERE, OWN_PROJECT, project_id)


def may_change(caller: Caller, project_id: str | None) -> bool:
    own = bool(project_id) and caller.can(OWN_PROJECT, project=project_id)
    return own or caller.can(EVERYWHERE)


def may_save(caller: Caller) -> bool:
    """Whether the caller may save contexts anywhere."""
    return caller.can(EVERYWHERE) or bool(list_projects_with(caller, OWN_PROJECT))


def access_saved_context_for_update(caller: Caller, context_id: int) -> SavedContext:
    """A saved context that the caller may change, locked with its project. Raises NotFound, NoAccess."""
    lock_scope(access_saved_context_to_change(caller, context_id).project_id, caller=caller)
    saved = SavedContext.objects.select_for_update().filter(pk=context_id).first()
    if saved is None:
        raise _no_context(context_id)
    return saved


def check_saved_context(
    saved: SavedContext, caller: Caller, stored: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Normalizes and validates; ``stored`` are its previous expectations. Raises ValidationError with every problem."""
    saved.name, saved.note = saved.name.strip(), saved.note.strip()
    problems = list(saved_context_problems(saved))
    if saved.expectations != list(stored):
        known = _load_known(caller, saved.expectations)
        problems += expectation_problems(
            saved.expectations, stored=stored, project=saved.project_id, known=known
        )
    check_problems(problems)


def _load_known(caller: Caller, expectations: Sequence[Mapping[str, Any]]) -> Known:
    named = {expectation["flag"] for expectation in expectations}
    flags = Flag.objects.active().readable_by(caller).filter(name__in=named)
    environments = Environment.objects.values_list("name", flat=True)
    return Known(dict(flags.values_list("name", "project_id")), set(environments))


def _save(saved: SavedContext, caller: Caller) -> None:
    saved.updated_by = caller.name
    with name_is_free(f"A saved context named {saved.name} already exists."):
        saved.save()


def _no_context(context_id: int) -> NotFound:
    return NotFound(f"Saved context with id {context_id} not found.")


def make_event(
    kind: EventType, saved: SavedContext, *, before: Any = None, after: Any = None, caller: Caller
) -> Event:
    """The event of a change, after checking that required approvals allow it. Raises Refusal."""
    check_watched(saved, before, after, caller)
    return Event(type=kind, project=saved.project_id, subject=saved.name, before=before, after=after)


def list_users(kind: str, names: Any, caller: Caller) -> Iterable[str]:
    if kind == ENVIRONMENT:
        expecting = _expecting_in(names).filter(pk__in=SavedContext.objects.readable_by(caller))
        return [f"The expectations of saved context {saved.name}" for saved in expecting]
    return [f"Saved context {saved.name}" for saved in _enforcing() if _find_ended(saved, kind, names)]


def end(kind: str, names: Any, *, caller: Caller) -> None:
    if kind == ENVIRONMENT:
        for saved in _expecting_in(names).select_for_update():
            _remove_expectations(saved, names, caller)
        return
    for saved in _enforcing().select_for_update():
        if ended := _find_ended(saved, kind, names):
            saved.enforced_in = {
                flag: project for flag, project in saved.enforced_in.items() if flag not in ended
            }
            saved.save(update_fields=["enforced_in"])


def _enforcing() -> Any:
    return SavedContext.objects.filter(project=None).exclude(enforced_in={}).order_by("pk")


def _expecting_in(environments: Collection[str]) -> QuerySet[SavedContext]:
    named = (Q(expectations__contains=[{"environment": environment}]) for environment in environments)
    return SavedContext.objects.filter(reduce(or_, named)).order_by("pk")


def _remove_expectations(saved: SavedContext, environments: Collection[str], caller: Caller) -> None:
    before = make_saved_context_document(saved)
    kept = [each for each in saved.expectations if each["environment"] not in environments]
    flags = {each["flag"] for each in kept}
    saved.expectations = kept
    saved.enforced_in = {flag: project for flag, project in saved.enforced_in.items() if flag in flags}
    saved.save(update_fields=["expectations", "enforced_in"])
    after = make_saved_context_document(saved)
    record(
        make_event(EventType.SAVED_CONTEXT_UPDATED, saved, before=before, after=after, caller=caller),
        actor=caller,
    )


def _find_ended(saved: SavedContext, kind: str, names: Any) -> set[str]:
    """The flags whose expectations would no longer be enforced."""
    if kind == PROJECT:
        return {flag for flag, project in saved.enforced_in.items() if project in names}
    if kind == FLAG:
        among = Flag.objects.filter(name__in=list(saved.enforced_in)).filter(name__in=names)
        return set(among.values_list("name", flat=True))
    return set()
