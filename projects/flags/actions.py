"""Creates flags and changes their metadata, links and tags, also the tags of several flags of a project.

Checks the limits on the number of flags in a project and in the installation.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction

from flagadmin.core.audit.record import Event, EventType, read_transaction_time, record, record_all
from flagadmin.core.change_checks import KnownChange
from flagadmin.core.change_checks.comments import foresee
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import UNIQUE_VIOLATION, get_sqlstate, transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import (
    InvalidOperation,
    NameExists,
    Problem,
    ValidationError,
    check_problems,
    choices,
)
from groups.access import Caller, Permission
from projects.access import access_flag_for_update, access_flags_of_projects, access_project_for_update
from projects.flags.links.rules import normalize_url
from projects.flags.name_rules import find_name_problem, find_pattern_problem, owner_problems
from projects.flags.queries import check_arrivals, make_link_document, make_metadata_document
from projects.models import (
    Flag,
    FlagEnvironment,
    FlagLink,
    FlagTag,
    FlagType,
    LifecycleStage,
    Project,
    ProjectEnvironment,
    TagType,
)
from projects.projects.links import make_links
from projects.rules import Limits
from projects.strategies.known_names import KnownNames
from projects.tag_types.rules import tag_problems

CHANGEABLE = frozenset({"type", "description", "stale", "impression_data", "owner_user_id", "owner_group_id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFlag:
    """The values of a flag to be created. ``tags`` are (type, value) pairs."""

    name: str
    type: str = "release"
    description: str | None = None
    impression_data: bool = False
    stale: bool = False
    owner_user_id: int | None = None
    owner_group_id: int | None = None
    tags: Sequence[tuple[str, str]] = field(default_factory=tuple)


@transactional
def create_flag(project_id: str, new: NewFlag, *, caller: Caller) -> Flag:
    """Creates a flag that is off in every environment of the project.

    Raises NotFound, NoAccess, ValidationError, NameExists, and InvalidOperation if the project is full.
    """
    project = access_project_for_update(caller, project_id, Permission.CREATE_FEATURE, flags=[new.name])
    check_problems(
        [
            *new_name_problems(new.name, project),
            *type_problems(new.type),
            *_tags_problems(new.tags),
            *owner_problems({"owner_user_id": new.owner_user_id, "owner_group_id": new.owner_group_id}),
        ]
    )
    check_room(project, 1)
    flag = insert_flag(project, new, caller=caller)
    record(Event.of_flag(EventType.FEATURE_CREATED, flag, after=make_metadata_document(flag)), actor=caller)
    add_first_links(flag, caller=caller)
    return flag


def insert_flag(project: Project, new: NewFlag, *, caller: Caller) -> Flag:
    """Inserts the rows of a new flag. The caller has validated everything except whether the name is free.

    Raises NameExists.
    """
    check_arrivals([new.name], project.pk, None, caller)
    now = read_transaction_time()
    flag = Flag(
        name=new.name,
        project=project,
        type=new.type or "release",
        description=new.description or None,
        impression_data=new.impression_data,
        stale=new.stale,
        owner_user_id=new.owner_user_id,
        owner_group_id=new.owner_group_id,
        created_at=now,
        created_by=caller.user,
    )
    try:
        with transaction.atomic():
            flag.save(force_insert=True)
    except IntegrityError as exc:
        if get_sqlstate(exc) != UNIQUE_VIOLATION:
            raise
        raise name_taken(new.name, caller) from exc
    places = ProjectEnvironment.objects.filter(project=project).values_list("environment_id", flat=True)
    FlagEnvironment.objects.bulk_create(FlagEnvironment(flag=flag, environment_id=place) for place in places)
    LifecycleStage.objects.create(flag=flag, stage=LifecycleStage.Stage.INITIAL, entered_at=now)
    FlagTag.objects.bulk_create(
        FlagTag(flag=flag, tag_type_id=kind, value=value) for kind, value in dict.fromkeys(new.tags)
    )
    return flag


def check_new_name(project: Project, name: str, *, caller: Caller) -> None:
    """Checks that a flag with this name could be created. Raises ValidationError, NameExists."""
    check_problems(new_name_problems(name, project))
    if Flag.objects.filter(name=name).exists():
        raise name_taken(name, caller)


def new_name_problems(name: str, project: Project) -> Iterable[Problem]:
    message = find_name_problem(name) or find_pattern_problem(name, project)
    return [Problem("name", message)] if message else []


def name_taken(name: str, caller: Caller) -> NameExists:
    """The error for a taken name. It names the flag's project only if the caller may see it."""
    flag = Flag.objects.filter(name=name).only("project_id", "archived_at").first()
    if flag is None or not caller.can_read(flag.project_id):
        return NameExists(f"A flag named {name} already exists. Names are unique across all projects.")
    state = ", archived" if flag.is_archived else ""
    return NameExists(f"A flag named {name} already exists (in project {flag.project_id}{state}).")


def type_problems(kind: str) -> Iterable[Problem]:
    types = FlagType.objects.values_list("id", flat=True)
    if kind and kind not in types:
        yield Problem("type", f"flag type {kind} not found. Available: {choices(types)}")


def _tags_problems(tags: Sequence[tuple[str, str]]) -> Iterable[Problem]:
    if not tags:
        return
    known_names = KnownNames(tag_types=frozenset(TagType.objects.values_list("name", flat=True)))
    for index, (kind, value) in enumerate(tags):
        yield from tag_problems(kind, value, f"tags[{index}]", known_names=known_names)


def update_flag(
    project_id: str, name: str, changes: Mapping[str, Any], *, expected: Expected = None, caller: Caller
) -> Flag:
    """Updates the given fields out of ``CHANGEABLE``.

    An imported flag may keep an unknown type until the type is changed. Raises NotFound, NoAccess,
    EditConflict, ValidationError.
    """
    return edit_flag(project_id, name, lambda before: changes, expected=expected, caller=caller)


@transactional
def edit_flag(
    project_id: str,
    name: str,
    edit: Callable[[dict[str, Any]], Mapping[str, Any]],
    *,
    expected: Expected = None,
    caller: Caller,
) -> Flag:
    """Like ``update_flag``, but ``edit`` computes the changes from the metadata of the locked flag."""
    flag = access_flag_for_update(caller, project_id, name, Permission.UPDATE_FEATURE)
    before = make_metadata_document(flag)
    check_expected(expected, before)
    changes = edit(before)
    changed = {key: value for key, value in changes.items() if getattr(flag, key) != value}
    if not changed:
        return flag
    if unknown := changed.keys() - CHANGEABLE:
        raise TypeError(f"these cannot be changed: {sorted(unknown)}")
    check_problems([*type_problems(changed.get("type", "")), *owner_problems(changed)])
    for key, value in changed.items():
        setattr(flag, key, value)
    after = make_metadata_document(flag)
    events = [Event.of_flag(kind, flag, before=before, after=after) for kind in _list_event_types(changed)]
    foresee(events, KnownChange({(name, ""): {"impression_data": flag.impression_data}}))
    flag.save(update_fields=list(changed))
    record_all(events, actor=caller)
    return flag


def _list_event_types(changed: Mapping[str, Any]) -> Iterable[EventType]:
    if changed.keys() - {"stale"}:
        yield EventType.FEATURE_METADATA_UPDATED
    if "stale" in changed:
        yield _choose_stale_event(changed["stale"])


def _choose_stale_event(stale: bool) -> EventType:
    return EventType.FEATURE_STALE_ON if stale else EventType.FEATURE_STALE_OFF


@transactional
def set_stale(names: Mapping[str, Iterable[str]], stale: bool, *, caller: Caller) -> list[Flag]:
    """Marks flags as stale or not stale. ``names`` are by project.

    Raises NotFound, NoAccess, and InvalidOperation unless all are active.
    """
    flags = access_flags_of_projects(caller, names, Permission.UPDATE_FEATURE, archived=False)
    changed = [flag for flag in flags if flag.stale != stale]
    Flag.objects.filter(pk__in=[flag.pk for flag in changed]).update(stale=stale)
    kind = _choose_stale_event(stale)
    record_all([Event.of_flag(kind, flag) for flag in changed], actor=caller)
    return changed


@transactional
def add_link(project_id: str, name: str, url: str, title: str | None, *, caller: Caller) -> FlagLink:
    """Adds a link to the flag. Raises NotFound, NoAccess, ValidationError."""
    flag = access_flag_for_update(caller, project_id, name, Permission.UPDATE_FEATURE)
    limit = Limits.from_settings().links
    if FlagLink.objects.filter(flag=flag).count() >= limit:
        raise ValidationError(f"{name} has {limit} links, the maximum.")
    link = FlagLink.objects.create(flag=flag, url=check_url(url), title=title or None)
    _record(EventType.FEATURE_LINK_ADDED, flag, after=link, caller=caller)
    return link


@transactional
def update_link(
    project_id: str,
    name: str,
    link_id: str,
    url: str,
    title: str | None,
    *,
    expected: Expected = None,
    caller: Caller,
) -> FlagLink:
    """Changes the URL and the title of a link. Raises NotFound, NoAccess, EditConflict, ValidationError."""
    flag = access_flag_for_update(caller, project_id, name, Permission.UPDATE_FEATURE)
    link = access_link(flag, link_id)
    check_expected(expected, make_link_document(link))
    before = FlagLink(pk=link.pk, flag=flag, url=link.url, title=link.title)
    link.url, link.title = check_url(url), title or None
    link.save(update_fields=["url", "title"])
    _record(EventType.FEATURE_LINK_UPDATED, flag, before=before, after=link, caller=caller)
    return link


@transactional
def remove_link(project_id: str, name: str, link_id: str, *, caller: Caller) -> None:
    """Removes a link from the flag. Raises NotFound, NoAccess."""
    flag = access_flag_for_update(caller, project_id, name, Permission.UPDATE_FEATURE)
    link = access_link(flag, link_id)
    _record(EventType.FEATURE_LINK_REMOVED, flag, before=link, caller=caller)
    link.delete()


def add_first_links(flag: Flag, *, caller: Caller) -> None:
    """Adds the links of the project's templates to a new flag, as part of its creation."""
    for url, title in make_links(flag.project.link_templates, project=flag.project_id, feature=flag.name):
        link = FlagLink.objects.create(flag=flag, url=url, title=title)
        _record(EventType.FEATURE_LINK_ADDED, flag, after=link, caller=caller)


def check_url(url: str) -> str:
    """The URL as stored. Raises ValidationError."""
    normalized = normalize_url(url)
    if normalized is None:
        raise ValidationError.at("url", f"{url} is not a web URL")
    return normalized


def access_link(flag: Flag, link_id: str) -> FlagLink:
    """A link of the flag. Raises NotFound."""
    return get_or_404(FlagLink.objects, f"{flag.name} has no link {link_id}.", pk=link_id, flag=flag)


def _record(
    kind: EventType,
    flag: Flag,
    *,
    caller: Caller,
    before: FlagLink | None = None,
    after: FlagLink | None = None,
) -> None:
    record(
        Event.of_flag(
            kind,
            flag,
            before=make_link_document(before) if before else None,
            after=make_link_document(after) if after else None,
        ),
        actor=caller,
    )


def check_room(project: Project, more: int) -> None:
    """Checks that ``more`` active flags can be added. Archived flags do not count.

    The caller must have locked the project. Raises InvalidOperation if the project is full, ValidationError
    if the installation is.
    """
    if more <= 0:
        return
    active = Flag.objects.active()
    if project.flag_limit is not None:
        number = active.filter(project=project).count()
        if number + more > project.flag_limit:
            raise InvalidOperation(
                f"Project {project.pk} has {number} of at most {project.flag_limit} flags; "
                f"{more} more {'does' if more == 1 else 'do'} not fit."
            )
    limit = Limits.from_settings().flags
    if active.count() + more > limit:
        raise ValidationError(f"At most {limit} flags are allowed here; archive some first.")


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
    names: Mapping[str, Iterable[str]], add: Sequence[Tag], remove: Sequence[Tag] = (), *, caller: Caller
) -> list[Flag]:
    """Like ``change_tags``, for active flags by project, in a fixed number of queries for each project.

    Raises InvalidOperation unless all are.
    """
    check_tags(add, "tags.addedTags[{}]")
    flags = access_flags_of_projects(caller, names, Permission.UPDATE_FEATURE, archived=False)
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
