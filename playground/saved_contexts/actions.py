"""Creates, changes and deletes saved contexts.

They do not affect evaluation. In a project, changing them requires permission to change its flags; outside projects,
permission to change context fields everywhere.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import NotFound, ValidationError, check_problems
from flagadmin.core.hook import Hook
from groups.access import Caller, Permission
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
from playground.saved_contexts.rules import (
    MAX_IN_A_PROJECT,
    Known,
    expectation_problems,
    make_expectation_documents,
    saved_context_problems,
)
from projects.access import check_project, list_projects_with
from projects.deletion.kept_names import ENVIRONMENT, FLAG, PROJECT
from projects.models import Environment, Flag
from projects.project_scope import check_scope, lock_scope, name_is_free

check_watched: Hook[[SavedContext, Document | None, Document | None], None] = Hook(
    "playground.saved_contexts.actions.check_watched", lambda saved, before, after: None
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
    lock_scope(saved.project_id)
    if SavedContext.objects.filter(project=saved.project_id).count() >= MAX_IN_A_PROJECT:
        where = f"project {saved.project_id}" if saved.project_id else "no project"
        raise ValidationError(f"There are {MAX_IN_A_PROJECT:,} saved contexts of {where}; delete one first.")
    check_saved_context(saved, caller)
    enforce(saved, caller, before=None, projects=read_flag_projects(saved.expectations))
    _save(saved, caller)
    record(
        make_event(EventType.SAVED_CONTEXT_CREATED, saved, after=make_saved_context_document(saved)),
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
        record(make_event(EventType.SAVED_CONTEXT_UPDATED, saved, before=before, after=after), actor=caller)
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
    record(make_event(EventType.SAVED_CONTEXT_DELETED, saved, before=before), actor=caller)
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
    lock_scope(access_saved_context_to_change(caller, context_id).project_id)
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


def make_event(kind: EventType, saved: SavedContext, *, before: Any = None, after: Any = None) -> Event:
    """The event of a change, after checking that required approvals allow it. Raises Refusal."""
    check_watched(saved, before, after)
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
    record(make_event(EventType.SAVED_CONTEXT_UPDATED, saved, before=before, after=after), actor=caller)


def _find_ended(saved: SavedContext, kind: str, names: Any) -> set[str]:
    """The flags whose expectations would no longer be enforced."""
    if kind == PROJECT:
        return {flag for flag, project in saved.enforced_in.items() if project in names}
    if kind == FLAG:
        among = Flag.objects.filter(name__in=list(saved.enforced_in)).filter(name__in=names)
        return set(among.values_list("name", flat=True))
    return set()
