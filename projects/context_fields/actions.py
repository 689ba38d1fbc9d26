"""Creates, changes and deletes context fields.

Changing a field of a project locks the project and requires its permission. Changing a global field locks
only the field and requires a root permission.

Validation rules for context fields, used by the API, the console, the admin site and the import.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from flagadmin.core.audit.record import Event, EventType, record, record_change
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import NotFound, Problem, ValidationError, check_problems
from groups.access import Caller, Permission
from projects.access import check_project
from projects.models import ContextField
from projects.project_scope import check_scope, lock_scope, name_is_free
from projects.rules import name_problems, text_problems, tidy

OWN_PROJECT = Permission.UPDATE_PROJECT_CONTEXT
LEGAL_VALUE_KEYS = ("value", "description")


@transactional
def create_context_field(values: Mapping[str, Any], *, caller: Caller) -> ContextField:
    """``values`` are keyed by model field. Raises ValidationError, NameExists, NoAccess."""
    field = ContextField(**values)
    check_may_create(caller, field.project_id)
    if field.project_id:
        check_project(caller, field.project_id)
    lock_scope(field.project_id, caller=caller)
    check_context_field(field)
    with name_is_free(f"A context field named {field.name} already exists."):
        field.save(force_insert=True)
    after = field.document()
    record(_make_event(EventType.CONTEXT_FIELD_CREATED, field, after=after), actor=caller)
    return field


@transactional
def update_context_field(
    name: str,
    changes: Mapping[str, Any],
    *,
    expected: Expected = None,
    caller: Caller,
    project: str | None = None,
) -> ContextField:
    """Changes the given model fields. The name and the project cannot be changed.

    Raises NotFound, NoAccess, EditConflict, ValidationError.
    """
    field = access_context_field_for_update(caller, name, Permission.UPDATE_CONTEXT_FIELD, project=project)
    before = field.document()
    check_expected(expected, before)
    for key, value in changes.items():
        setattr(field, key, value)
    check_context_field(field)
    field.save()
    after = field.document()
    record_change(
        _make_event(EventType.CONTEXT_FIELD_UPDATED, field, before=before, after=after), actor=caller
    )
    return field


def put_legal_value(
    name: str,
    value: Mapping[str, Any],
    *,
    expected: Expected = None,
    caller: Caller,
    project: str | None = None,
) -> ContextField:
    """Adds a legal value, or replaces the description of an existing one."""
    if problems := list(legal_value_problems([value], "body")):
        raise ValidationError.of(Problem(p.path.removeprefix("body[0]."), p.message) for p in problems)

    def change(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
        replaced = [dict(value) if old["value"] == value["value"] else old for old in values]
        return replaced if any(old["value"] == value["value"] for old in values) else [*values, dict(value)]

    return _change_legal_values(name, change, expected=expected, caller=caller, project=project)


def remove_legal_value(
    name: str, value: str, *, expected: Expected = None, caller: Caller, project: str | None = None
) -> ContextField:
    """Removes a legal value. Does nothing if the field does not have it."""
    return _change_legal_values(
        name,
        lambda values: [old for old in values if old["value"] != value],
        expected=expected,
        caller=caller,
        project=project,
    )


@transactional
def _change_legal_values(
    name: str, change: Any, *, expected: Expected, caller: Caller, project: str | None
) -> ContextField:
    field = access_context_field_for_update(caller, name, Permission.UPDATE_CONTEXT_FIELD, project=project)
    changes = {"legal_values": change(field.legal_values)}
    return update_context_field(name, changes, expected=expected, caller=caller, project=project)


@transactional
def delete_context_field(
    name: str, *, expected: Expected = None, caller: Caller, project: str | None = None
) -> None:
    """Deletes the field. Constraints that name it keep working with the values in the context."""
    field = access_context_field_for_update(caller, name, Permission.DELETE_CONTEXT_FIELD, project=project)
    before = field.document()
    check_expected(expected, before)
    record(_make_event(EventType.CONTEXT_FIELD_DELETED, field, before=before), actor=caller)
    field.delete()


def access_context_field(caller: Caller, name: str, *, project: str | None = None) -> ContextField:
    """A field that the caller may read; with ``project``, only a field of that project. Raises NotFound."""
    fields = ContextField.objects.readable_by(caller).filter(name=name)
    if project is not None:
        fields = fields.filter(project_id=project)
    field = fields.first()
    if field is None:
        raise _no_field(name)
    return field


def check_may_create(caller: Caller, project_id: str | None) -> None:
    """Raises NoAccess if the caller may not create context fields in the project (None: global ones)."""
    check_scope(caller, Permission.CREATE_CONTEXT_FIELD, OWN_PROJECT, project_id)


def access_context_field_with(
    caller: Caller, name: str, permission: Permission, *, project: str | None = None
) -> ContextField:
    """A field for which the caller has the permission. Raises NotFound, NoAccess."""
    field = access_context_field(caller, name, project=project)
    check_scope(caller, permission, OWN_PROJECT, field.project_id)
    return field


def access_context_field_for_update(
    caller: Caller, name: str, permission: Permission, *, project: str | None = None
) -> ContextField:
    """The field, locked with its project. Raises NotFound, NoAccess."""
    unlocked = access_context_field_with(caller, name, permission, project=project)
    lock_scope(unlocked.project_id, caller=caller)
    field = ContextField.objects.select_for_update().filter(pk=name, project_id=unlocked.project_id).first()
    if field is None:
        raise _no_field(name)
    return field


def check_context_field(field: ContextField) -> None:
    """Normalizes the legal values and validates the field. Raises ValidationError with every problem."""
    check_problems(context_field_problems(field))
    field.legal_values = tidy(field.legal_values, LEGAL_VALUE_KEYS)


def _no_field(name: str) -> NotFound:
    return NotFound(f"Context field {name} not found.")


def _make_event(kind: EventType, field: ContextField, *, before: Any = None, after: Any = None) -> Event:
    return Event(type=kind, project=field.project_id, subject=field.name, before=before, after=after)


MAX_LEGAL_VALUE_LENGTH = 100
RESERVED_FIELDS = ("validate",)  # used in place of a name in URLs below /api/admin/context/


def context_field_problems(field: ContextField) -> Iterator[Problem]:
    # A field of an earlier version may have such a name, and can be edited.
    yield from name_problems(field.name, reserved=RESERVED_FIELDS if field._state.adding else ())
    yield from legal_value_problems(field.legal_values)


def legal_value_problems(values: Any, path: str = "legalValues") -> Iterator[Problem]:
    """Problems of ``[{"value": string, "description": string or null}]``. Values must be unique."""
    if not isinstance(values, list):
        yield Problem(path, "must be a list")
        return
    seen: set[str] = set()
    for index, item in enumerate(values):
        value_path = f"{path}[{index}]"
        value = item.get("value") if isinstance(item, dict) else None
        if not isinstance(value, str):
            yield Problem(f"{value_path}.value", "is required and must be a string")
            continue
        if not 1 <= len(value) <= MAX_LEGAL_VALUE_LENGTH:
            yield Problem(f"{value_path}.value", f"must have 1 to {MAX_LEGAL_VALUE_LENGTH} characters")
        if value in seen:
            yield Problem(f"{value_path}.value", f'"{value}" is listed more than once')
        seen.add(value)
        yield from text_problems(item.get("description"), f"{value_path}.description")
