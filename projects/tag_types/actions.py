"""Creates, changes and deletes tag types, which are global."""

from collections.abc import Mapping
from typing import Any

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record, record_change
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import Conflict, check_problems
from flagadmin.core.wording import name_flags
from groups.access import Caller
from groups.permissions import Permission
from projects.models import FlagTag, TagType
from projects.project_scope import name_is_free
from projects.tag_types.documents import tag_type_document
from projects.tag_types.rules import tag_type_problems


@transactional
def create_tag_type(values: Mapping[str, Any], *, caller: Caller) -> TagType:
    """``values`` are keyed by model field. Raises ValidationError, NameExists, NoAccess."""
    caller.check(Permission.CREATE_TAG_TYPE)
    tag_type = TagType(**values)
    check_tag_type(tag_type)
    with name_is_free(f"There already exists a tag type with the name {tag_type.name}."):
        tag_type.save(force_insert=True)
    after = tag_type_document(tag_type)
    record(Event(type=EventType.TAG_TYPE_CREATED, subject=tag_type.name, after=after), actor=caller)
    return tag_type


@transactional
def update_tag_type(
    name: str, changes: Mapping[str, Any], *, expected: Expected = None, caller: Caller
) -> TagType:
    """Changes the given model fields. Raises NotFound, NoAccess, EditConflict, ValidationError."""
    tag_type = access_tag_type_for_update(caller, name, Permission.UPDATE_TAG_TYPE)
    before = tag_type_document(tag_type)
    check_expected(expected, before)
    for key, value in changes.items():
        setattr(tag_type, key, value)
    check_tag_type(tag_type)
    tag_type.save()
    after = tag_type_document(tag_type)
    event = Event(type=EventType.TAG_TYPE_UPDATED, subject=name, before=before, after=after)
    record_change(event, actor=caller)
    return tag_type


@transactional
def delete_tag_type(name: str, *, expected: Expected = None, caller: Caller) -> None:
    """Deletes a tag type. Raises EditConflict, and Conflict if flags have tags of this type."""
    tag_type = access_tag_type_for_update(caller, name, Permission.DELETE_TAG_TYPE)
    before = tag_type_document(tag_type)
    check_expected(expected, before)
    check_tag_type_is_unused(tag_type)
    record(Event(type=EventType.TAG_TYPE_DELETED, subject=name, before=before), actor=caller)
    tag_type.delete()


def check_tag_type_is_unused(tag_type: TagType) -> None:
    """Raises Conflict with the flags that have tags of this type."""
    if flags := set(FlagTag.objects.filter(tag_type=tag_type).values_list("flag__name", flat=True)):
        raise Conflict(f"Tag type {tag_type.name} is in use on {name_flags(flags)}. Remove those tags first.")


def access_tag_type(name: str) -> TagType:
    """A tag type. Raises NotFound."""
    return get_or_404(TagType.objects, f"Tag type {name} not found.", pk=name)


def access_tag_type_for_update(caller: Caller, name: str, permission: Permission) -> TagType:
    """The tag type, locked. Raises NotFound, NoAccess."""
    access_tag_type(name)
    caller.check(permission)
    return get_or_404(TagType.objects.select_for_update(), f"Tag type {name} not found.", pk=name)


def check_tag_type(tag_type: TagType) -> None:
    """Validates the tag type. Raises ValidationError with every problem."""
    check_problems(tag_type_problems(tag_type))
