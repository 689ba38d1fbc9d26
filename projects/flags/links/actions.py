"""Adds, changes and removes the links of a flag, for example to its ticket or its design."""

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import ValidationError
from groups.access import Caller, Permission
from projects.access import access_flag_for_update
from projects.flags.links.rules import normalize_url
from projects.flags.queries import make_link_document
from projects.limits import Limits
from projects.models import Flag, FlagLink
from projects.projects.links import make_links


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
