"""Adds and removes tags, on one flag or on several flags of a project."""

from collections.abc import Iterable, Sequence

from flagadmin.core.audit.record import Event, EventType, record_all
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import check_problems
from groups.access import Caller, Permission
from projects.access import access_flag_for_update, access_flags_for_update
from projects.models import Flag, FlagTag, TagType
from projects.strategies.known_names import KnownNames
from projects.tag_types.rules import tag_problems

Tag = tuple[str, str]
"""A tag type and a value."""


@transactional
def change_tags(name: str, add: Sequence[Tag], remove: Sequence[Tag] = (), *, caller: Caller) -> Flag:
    """Adds and removes tags of one flag, found by name alone because the API's tag URLs contain no project.

    Adding a tag that is present or removing one that is not is not an error. Raises NotFound, NoAccess,
    ValidationError.
    """
    check_tags(add)
    flag_seen = access_named_flag(caller, name)
    flag = access_flag_for_update(caller, flag_seen.project_id, name, Permission.UPDATE_FEATURE)
    apply_tags([flag], add, remove, caller=caller)
    return flag


@transactional
def change_tags_of_many(
    project_id: str, names: Iterable[str], add: Sequence[Tag], remove: Sequence[Tag] = (), *, caller: Caller
) -> list[Flag]:
    """Like ``change_tags``, for active flags of a project, in a fixed number of queries.

    Raises InvalidOperation unless all are.
    """
    check_tags(add, "tags.addedTags[{}]")
    flags = access_flags_for_update(caller, project_id, names, Permission.UPDATE_FEATURE, archived=False)
    apply_tags(flags, add, remove, caller=caller)
    return flags


def access_named_flag(caller: Caller, name: str) -> Flag:
    """Finds a flag by name alone, archived or not. Raises NotFound."""
    return get_or_404(Flag.objects.readable_by(caller), f"Flag {name} not found.", name=name)


def check_tags(tags: Sequence[Tag], path: str = "") -> None:
    """Raises ValidationError. ``path`` is the path of a tag in the request, with ``{}`` for its index."""
    known_names = KnownNames(tag_types=frozenset(TagType.objects.values_list("name", flat=True)))
    check_problems(
        problem
        for index, (kind, value) in enumerate(tags)
        for problem in tag_problems(kind, value, path.format(index), known_names=known_names)
    )


def apply_tags(flags: Sequence[Flag], add: Sequence[Tag], remove: Sequence[Tag], *, caller: Caller) -> None:
    """Adds and removes tags of locked flags, recording an event for each change."""
    stored = set(
        FlagTag.objects.filter(flag__in=flags).values_list("flag__name", "tag_type_id", "value").order_by()
    )
    added = [(flag, tag) for flag in flags for tag in dict.fromkeys(add) if (flag.name, *tag) not in stored]
    removed = [(flag, tag) for flag in flags for tag in dict.fromkeys(remove) if (flag.name, *tag) in stored]
    FlagTag.objects.bulk_create(
        FlagTag(flag=flag, tag_type_id=kind, value=value) for flag, (kind, value) in added
    )
    unwanted = {(flag.pk, *tag) for flag, tag in removed}
    rows = FlagTag.objects.filter(flag__in=flags, value__in={value for _, value in remove})
    FlagTag.objects.filter(
        pk__in=[row.pk for row in rows if (row.flag_id, row.tag_type_id, row.value) in unwanted]
    ).delete()
    record_all(
        [_make_event(EventType.FEATURE_TAGGED, flag, after=tag) for flag, tag in added]
        + [_make_event(EventType.FEATURE_UNTAGGED, flag, before=tag) for flag, tag in removed],
        actor=caller,
    )


def _make_event(kind: EventType, flag: Flag, *, before: Tag | None = None, after: Tag | None = None) -> Event:
    return Event.of_flag(
        kind,
        flag,
        before={"type": before[0], "value": before[1]} if before else None,
        after={"type": after[0], "value": after[1]} if after else None,
    )
