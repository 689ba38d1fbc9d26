"""Lists the known tags, and creates and deletes tags independently of flags."""

from django.db.models import Exists, OuterRef

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import NameExists, NotFound
from groups.access import Caller
from groups.permissions import Permission
from projects.access import lock_projects
from projects.flags.tags.actions import apply_tags, check_tags
from projects.models import Flag, FlagTag, Tag
from projects.project_scope import name_is_free


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
