"""The last changes of a flag, in all environments or in one, for its page."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent, AuditEvents
from flagadmin.core.http.responses import iso
from groups.access import Caller
from projects.console import flag_url
from projects.history.changes import GroupedChange, change_page
from projects.history.definitions_at import just_before
from projects.history.descriptions import Part
from projects.history.queries import TYPES, readable_events
from projects.models import Flag
from projects.reverts.change_plan import add_reverts
from projects.reverts.parts import may_revert

SHOWN = 3
MAX_OWN = 200  # events read to find the flag's own in the changes of a page
MAX_SEGMENTS = 8  # environments offered; a project with more links to the activity page
_LINKING = (" of ", " to ", " from ")


class Version(NamedTuple):
    """The flag after a change: for pages that evaluate it, compare it, and revert to it.

    ``revert`` is "" without permission, and for the present version. ``event`` is the flag's last one in the change.
    ``url`` chooses it in the history, where only the chosen one has the links; that of the chosen one closes it.
    """

    event: int
    url: str
    is_chosen: bool
    evaluate: str
    compare: str
    whom: str
    revert: str


@dataclass(frozen=True, slots=True)
class FlagHistory:
    """``changes``: each with its version and its sentence, which omits the flag. ``number`` counts all events."""

    changes: Sequence[tuple[GroupedChange, Sequence[Part], Version | None]]
    number: int
    all_url: str
    older_url: str
    newest_url: str
    versions_url: str
    segments: Sequence[tuple[str, str, None, bool]]


def read_flag_history(
    flag: Flag,
    environments: Sequence[str],
    chosen: str,
    *,
    before: int | None = None,
    version: int | None = None,
    caller: Caller,
) -> FlagHistory:
    """The changes in the ``chosen`` environment, or in all; ``before``: the ``next`` of the previous page; ``version``:
    the event of the one that has its links.
    """
    everywhere = readable_events(caller).filter(project=flag.project_id, feature=flag.name)
    if chosen not in environments:
        chosen = ""
    events = everywhere.filter(environment=chosen) if chosen else everywhere
    page = change_page(events, caller=caller, before=before, size=SHOWN)
    back = flag_url(flag.project_id, flag.name)
    changes = add_reverts(page.changes, back=back, flag=flag.name, caller=caller)
    query = {"project": flag.project_id, "flag": flag.name} | ({"environment": chosen} if chosen else {})
    parameters = {"history": chosen} if chosen else {}
    listed = urlencode(parameters | ({"before": before} if before else {}))
    versions = _make_versions(
        flag, changes, everywhere, chosen, environments, version=version, listed=listed, caller=caller
    )
    return FlagHistory(
        changes=[
            (change, list(drop_flag(change.sentence, flag.name)), versions.get(change.event.pk))
            for change in changes
        ],
        number=events.count(),
        all_url=f"{reverse('activity')}?{urlencode(query)}",
        older_url=f"?{urlencode({**parameters, 'before': page.next})}#history" if page.next else "",
        newest_url=f"?{urlencode(parameters)}#history" if before else "",
        versions_url=_make_versions_url(flag, versions.values()),
        segments=list(_make_segments(environments, chosen)),
    )


def _make_versions(
    flag: Flag,
    changes: Sequence[GroupedChange],
    events: AuditEvents,
    chosen: str,
    environments: Sequence[str],
    *,
    version: int | None,
    listed: str,
    caller: Caller,
) -> dict[int, Version]:
    """The versions by the newest event of their change. ``listed``: the query of this page of the history.

    None for a change that does not affect evaluation, such as a tag's, or after which the flag does not exist.
    """
    if flag.is_archived:
        return {}
    last = events.filter(type__in=TYPES).order_by("-pk").values_list("pk", flat=True).first()
    can_revert = may_revert(caller, flag.project_id)
    versions = {}
    for change, own_events in zip(changes, _list_own_events(changes, events), strict=True):
        if not own_events or own_events[0].type == EventType.FEATURE_ARCHIVED:
            continue
        own = own_events[0]
        revert = f"{flag_url(flag.project_id, flag.name, 'flag-revert')}?event={own.pk}"
        versions[change.event.pk] = Version(
            own.pk,
            f"?{listed if own.pk == version else f'{listed}&version={own.pk}'.lstrip('&')}#history",
            own.pk == version,
            *_link_pages(flag, own_events, chosen, environments),
            revert if can_revert and own.pk != last else "",
        )
    return versions


def _make_versions_url(flag: Flag, versions: Collection[Version]) -> str:
    """The URL of the users affected by the versions; "" without any."""
    events = urlencode([("event", version.event) for version in versions])
    return f"{flag_url(flag.project_id, flag.name, 'flag-versions')}?{events}" if events else ""


def _list_own_events(changes: Sequence[GroupedChange], events: AuditEvents) -> Iterator[list[AuditEvent]]:
    """Yields the flag's events that may change results, for each change, newest first. A change may affect
    many flags.
    """
    requests = {change.event.request_id for change in changes if change.event.request_id}
    of_requests = events.filter(request_id__in=requests, type__in=TYPES)
    listed = list(
        of_requests.only("pk", "type", "environment", "request_id", "created_at").order_by("-pk")[:MAX_OWN]
    )
    for change in changes:
        event = change.event
        if not event.request_id:
            yield [event] if event.type in TYPES else []
            continue
        hour = event.created_at.replace(minute=0, second=0, microsecond=0)
        of_request = (
            other for other in listed if other.request_id == event.request_id and other.pk <= event.pk
        )
        yield [other for other in of_request if other.created_at >= hour]


def _link_pages(
    flag: Flag, own_events: Sequence[AuditEvent], chosen: str, environments: Sequence[str]
) -> tuple[str, str, str]:
    usual = "production" if "production" in environments else next(iter(environments), "")
    own = own_events[0]
    environment = own.environment if own.environment in environments else chosen or usual
    before, at = iso(just_before(own_events[-1].created_at)), iso(own.created_at)
    evaluate = urlencode({"project": flag.project_id, "environment": environment, "at": at})
    states = {"from": environment, "from-at": at, "to": environment, "project": flag.project_id}
    states["flag"] = flag.name
    changed = states | {"from-at": before, "to-at": at}
    return (
        f"{reverse('playground-flag', args=[flag.name])}?{evaluate}",
        f"{reverse('who-changes')}?{urlencode(states)}",
        f"{reverse('who-changes')}?{urlencode(changed)}",
    )


def _make_segments(environments: Sequence[str], chosen: str) -> Iterator[tuple[str, str, None, bool]]:
    if 1 < len(environments) <= MAX_SEGMENTS:
        yield "All", "?#history", None, not chosen
        for name in environments:
            yield name, f"?{urlencode({'history': name})}#history", None, name == chosen


def _put_first(parts: list[Part], name: str) -> list[Part]:
    """ "archived 2 flags: gift and cart" → "archived cart and gift", if all are named and it is one of them."""
    texts = [part.text for part in parts]
    if ": " not in texts or name not in texts or texts[-1].endswith(" more"):
        return parts
    number = next((index for index, text in enumerate(texts) if text.endswith(" flags")), None)
    if number is None:
        return parts
    start = texts.index(": ") + 1
    flags = sorted(parts[start::2], key=lambda part: part.text != name)
    listed = [Part(", ")] * (len(flags) - 2) + [Part(" and ")]
    joined = [piece for pair in zip(flags, [*listed, Part("")], strict=True) for piece in pair]
    return [*parts[:number], *joined[:-1], *parts[number + 1 : start - 1]]


def drop_flag(sentence: Sequence[Part], name: str) -> Iterator[Part]:
    """The sentence for this flag's own page: "changed strategy 1 of cart" → "changed strategy 1"."""
    parts = _put_first(list(sentence), name)
    words = "this flag" if any(part.text in (", ", " and ") for part in parts) else "the flag"
    for index, part in enumerate(parts):
        following = parts[index + 1] if index + 1 < len(parts) else None
        linking = next((end for end in _LINKING if part.text.endswith(end)), "")
        if linking and following is not None and following.url and following.text == name:
            yield Part(part.text.removesuffix(linking), part.url, part.mark)
        elif part.url and part.text == name:
            if not (index and parts[index - 1].text.endswith(_LINKING)):
                yield Part(words)
        else:
            yield part
