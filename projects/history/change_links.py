"""The users affected by a change, for its page: links, and results that load when visible."""

from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import urlencode

from django.db.models import Max, Min
from django.urls import reverse

from flagadmin.core.audit.models import AuditEvents
from flagadmin.core.http.responses import iso
from projects.console import flag_url
from projects.history.changes import Row
from projects.history.definitions_at import just_before
from projects.history.queries import TYPES
from projects.models import Environment, Flag, ProjectEnvironment


def with_versions(rows: Iterable[Row], change: AuditEvents) -> list[Row]:
    """Rows of one change. The last one of each flag gets the URL of the users affected by its version. Two queries.

    Flags that were archived, deleted or moved since have none.
    """
    rows = list(rows)
    events = [row.event for row in rows]
    last_event_ids = _find_last_events(
        change, {event.feature for event in events if event.feature and event.type in TYPES}
    )
    return [
        replace(row, whom_url=f"{flag_url(event.project, event.feature, 'flag-versions')}?event={event.pk}")
        if (event := row.event).pk in last_event_ids and event.project and event.feature
        else row
        for row in rows
    ]


def _find_last_events(change: AuditEvents, names: set[str]) -> set[int]:
    """The last event of each of these flags that has not moved since."""
    if not names:
        return set()
    of_flags = change.filter(type__in=TYPES, feature__in=names).order_by()
    event_ids = {
        (project, feature): pk
        for project, feature, pk in of_flags.values_list("project", "feature").annotate(Max("pk"))
    }
    present_places = Flag.objects.active().filter(name__in=names).values_list("project_id", "name")
    return {event_ids[place] for place in present_places if place in event_ids}


def make_comparison_url(change: AuditEvents) -> str:
    """The page that compares the flags before and after a change; "" unless all are in one project.

    At most five queries.
    """
    of_flags = change.filter(type__in=TYPES).exclude(feature=None).order_by()
    projects, flags = (
        list(of_flags.values_list(name, flat=True).distinct()[:2]) for name in ("project", "feature")
    )
    if len(projects) != 1 or projects[0] is None:
        return ""
    times = of_flags.aggregate(first=Min("created_at"), last=Max("created_at"))
    environment = _choose_environment(of_flags, projects[0])
    parameters = {
        "from": environment,
        "from-at": iso(just_before(times["first"])),
        "to": environment,
        "to-at": iso(times["last"]),
        "project": projects[0],
    }
    if len(flags) == 1:
        parameters["flag"] = flags[0]
    return f"{reverse('who-changes')}?{urlencode(parameters)}" if environment else ""


def _choose_environment(events: AuditEvents, project: str) -> str:
    """The first of the change's environments, or of the project's; production first."""
    named = set(events.exclude(environment=None).values_list("environment", flat=True).distinct())
    used = set(ProjectEnvironment.objects.filter(project=project).values_list("environment_id", flat=True))
    return next((name for name in Environment.objects.names() if name in (named & used or used)), "")
