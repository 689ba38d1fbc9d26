"""…/NAME/versions?event=ID&event=ID: the part of a flag's page that shows whose results each version changed."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponseBase

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import ValidationError
from flagadmin.core.http.parameters import is_id
from groups.console import ConsolePage
from playground.comparison.versions import ChangedPlace, Version, VersionChanges, find_version_changes
from playground.pages.lines import Count, count_looks
from projects.access import access_flag
from projects.history.queries import readable_events

MAX_VERSIONS = 10


class PlaceView(NamedTuple):
    environment: str
    changed: int
    counts: Sequence[Count]
    is_known: bool
    unmeasured: Sequence[str]
    users: int


class VersionView(NamedTuple):
    event: int
    places: Sequence[PlaceView]
    more: int

    @property
    def changed(self) -> Sequence[PlaceView]:
        """The environments in which results changed or may have changed."""
        return [place for place in self.places if place.counts or place.unmeasured or not place.is_known]


class VersionsPart(ConsolePage):
    """Loaded by the history once it is visible: comparing takes longer than the page."""

    template_name = "playground/versions.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        flag = access_flag(self.caller, kwargs["project_id"], kwargs["name"])
        event_ids = request.GET.getlist("event")[:MAX_VERSIONS]
        if not all(map(is_id, event_ids)):
            raise ValidationError.at("event", "must be the number of an event")
        events = readable_events(self.caller).filter(project=flag.project_id, feature=flag.name)
        events_asked = list(events.filter(pk__in=list(map(int, event_ids))))
        versions = {event.pk: version for event, version in _pair_with_versions(events, events_asked)}
        changes = find_version_changes(flag, list(versions.values()))
        views = [_view(pk, changes[version]) for pk, version in versions.items() if version in changes]
        return self.render_to_response({"versions": views})


def _pair_with_versions(events: Any, chosen: Sequence[AuditEvent]) -> Iterator[tuple[AuditEvent, Version]]:
    """Pairs each event with its version: the flag's preceding events from the same request."""
    requests = {event.request_id for event in chosen if event.request_id}
    rows = list(
        events.filter(request_id__in=requests).order_by("-pk").values_list("pk", "request_id", "created_at")
    )
    for event in chosen:
        hour = event.created_at.replace(minute=0, second=0, microsecond=0)
        same = [
            at for pk, request, at in rows if request == event.request_id and pk <= event.pk and at >= hour
        ]
        yield event, Version.of_events([*same, event.created_at])


def _view(event: int, changes: VersionChanges) -> VersionView:
    return VersionView(event, [_make_view(place) for place in changes.places], changes.more)


def _make_view(changed: ChangedPlace) -> PlaceView:
    counts = count_looks(changed.counts or {})
    return PlaceView(
        changed.environment,
        changed.changed,
        counts,
        changed.counts is not None,
        changed.unmeasured,
        changed.users,
    )
