"""Creates, changes and deletes tag types, and tags independently of flags. Both are global."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Exists, OuterRef

from flagadmin.core.audit.record import Event, EventType, record, record_change
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import Conflict, NameExists, NotFound, check_problems, name_flags
from groups.access import Caller, Permission
from projects.access import lock_projects
from projects.flags.actions import apply_tags, check_tags
from projects.models import Flag, FlagTag, Tag, TagType
from projects.project_scope import name_is_free
from projects.tag_types.rules import tag_type_problems
from projects.used_by.queries import HIDDEN_PLACE


@transactional
def create_tag_type(values: Mapping[str, Any], *, caller: Caller) -> TagType:
    """``values`` are keyed by model field. Raises ValidationError, NameExists, NoAccess."""
    caller.check(Permission.CREATE_TAG_TYPE)
    tag_type = TagType(**values)
    check_tag_type(tag_type)
    with name_is_free(f"There already exists a tag type with the name {tag_type.name}."):
        tag_type.save(force_insert=True)
    after = tag_type.document()
    record(Event(type=EventType.TAG_TYPE_CREATED, subject=tag_type.name, after=after), actor=caller)
    return tag_type


@transactional
def update_tag_type(
    name: str, changes: Mapping[str, Any], *, expected: Expected = None, caller: Caller
) -> TagType:
    """Changes the given model fields. Raises NotFound, NoAccess, EditConflict, ValidationError."""
    tag_type = access_tag_type_for_update(caller, name, Permission.UPDATE_TAG_TYPE)
    before = tag_type.document()
    check_expected(expected, before)
    for key, value in changes.items():
        setattr(tag_type, key, value)
    check_tag_type(tag_type)
    tag_type.save()
    after = tag_type.document()
    event = Event(type=EventType.TAG_TYPE_UPDATED, subject=name, before=before, after=after)
    record_change(event, actor=caller)
    return tag_type


@transactional
def delete_tag_type(name: str, *, expected: Expected = None, caller: Caller) -> None:
    """Deletes a tag type. Raises EditConflict, and Conflict if flags have tags of this type."""
    tag_type = access_tag_type_for_update(caller, name, Permission.DELETE_TAG_TYPE)
    before = tag_type.document()
    check_expected(expected, before)
    check_tag_type_is_unused(tag_type, caller)
    record(Event(type=EventType.TAG_TYPE_DELETED, subject=name, before=before), actor=caller)
    tag_type.delete()


def check_tag_type_is_unused(tag_type: TagType, caller: Caller | None = None) -> None:
    """Raises Conflict with the flags that have tags of this type and that the caller may read (None: all)."""
    used = set(FlagTag.objects.filter(tag_type=tag_type).values_list("flag__name", "flag__project_id"))
    names = {name for name, project in used if caller is None or caller.can_read(project)}
    if used:
        where = f"on {name_flags(names)}" if names else HIDDEN_PLACE
        raise Conflict(f"Tag type {tag_type.name} is in use {where}. Remove those tags first.")


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


def list_known_tags(caller: Caller) -> list[tuple[str, str]]:
    """Sorted (type, value) pairs of the created tags and of those on flags that the caller may read."""
    used = FlagTag.objects.filter(flag__in=Flag.objects.readable_by(caller)).order_by()
    created = Tag.objects.order_by()
    rows = used.values_list("tag_type_id", "value").union(created.values_list("tag_type_id", "value"))
    return sorted(rows)


@transactional
def create_tag(kind: str, value: str, *, caller: Caller) -> None:
    """Creates a tag. Raises NoAccess, ValidationError, NameExists."""
    check_may_change_tags(caller)
    check_tags([(kind, value)])
    message = f"Tag {kind}:{value} already exists."
    if (kind, value) in list_known_tags(caller):
        raise NameExists(message)
    with name_is_free(message):
        Tag.objects.create(tag_type_id=kind, value=value)
    after = {"type": kind, "value": value}
    record(Event(type=EventType.TAG_CREATED, subject=f"{kind}:{value}", after=after), actor=caller)


@transactional
def delete_tag(kind: str, value: str, *, caller: Caller) -> None:
    """Deletes the tag and removes it from every flag that the caller may read.

    Raises NotFound, and NoAccess unless the caller may change all of these flags.
    """
    check_may_change_tags(caller)
    flags = _lock_tagged_flags(caller, kind, value)
    deleted, _ = Tag.objects.filter(tag_type_id=kind, value=value).delete()
    if not deleted and not flags:
        raise NotFound(f"Tag {kind}:{value} not found.")
    apply_tags(flags, [], [(kind, value)], caller=caller)
    before = {"type": kind, "value": value}
    record(Event(type=EventType.TAG_DELETED, subject=f"{kind}:{value}", before=before), actor=caller)


def check_may_change_tags(caller: Caller) -> None:
    """Raises NoAccess unless the caller may tag flags in at least one project."""
    caller.check_anywhere([Permission.UPDATE_FEATURE])


def _lock_tagged_flags(caller: Caller, kind: str, value: str) -> list[Flag]:
    tagged = Exists(FlagTag.objects.filter(flag=OuterRef("pk"), tag_type_id=kind, value=value))
    project_ids = Flag.objects.readable_by(caller).filter(tagged).values_list("project_id", flat=True)
    projects = lock_projects(caller, project_ids)
    for project in projects:
        caller.check(Permission.UPDATE_FEATURE, project=project)
    flags = Flag.objects.select_for_update(no_key=True).filter(tagged, project__in=projects)
    return list(flags.order_by("name"))
