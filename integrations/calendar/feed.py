"""Entries of the calendar feed: scheduled change requests, and flags that reach their type's lifetime."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.urls import reverse
from icalendar import Calendar, Event

from flagadmin import __version__
from groups.access import Caller
from integrations.messages.message import absolute
from integrations.models import CalendarFeed
from projects.console import flag_url
from projects.models import Flag, FlagType, Project
from releases.models import Schedule

PAST, AHEAD = timedelta(days=90), timedelta(days=365)
MAX_ENTRIES = 1_000  # of each kind
LENGTH = timedelta(minutes=15)


def find_caller(token_hash: str) -> Caller | None:
    """Finds the caller who owns the calendar. None if there is none, or if the person may no longer log in."""
    feed = CalendarFeed.objects.select_related("user").filter(token_hash=token_hash).first()
    return Caller(user=feed.user) if feed and feed.user.is_active else None


def write_calendar(caller: Caller, project: str, now: datetime) -> bytes:
    """``project`` limits the calendar to one project; "" includes everything that the caller may read."""
    projects = Project.objects.readable_by(caller).filter(archived_at=None)
    if project:
        projects = projects.filter(pk=project)
    ids = list(projects.values_list("pk", flat=True))
    calendar = Calendar()
    calendar.add("prodid", f"-//flagadmin//{__version__}//EN")
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", f"flagadmin {project}".strip())
    for event in (*_list_scheduled(ids, now), *_list_lifetimes(ids, now)):
        calendar.add_component(event)
    return calendar.to_ical()


def _list_scheduled(projects: list[str], now: datetime) -> Iterator[Event]:
    pending = Schedule.objects.filter(status=Schedule.Status.PENDING, request__project__in=projects)
    for schedule in pending.filter(at__lt=now + AHEAD).select_related("request")[:MAX_ENTRIES]:
        request = schedule.request
        page = reverse("change-request", args=[request.project_id, request.pk])
        event = _make_entry(f"request-{request.pk}", page, now)
        title = f": {request.title}" if request.title else ""
        event.add(
            "summary", f"Change request #{request.pk}{title} ({request.project_id}, {request.environment_id})"
        )
        event.add("dtstart", schedule.at)
        event.add("dtend", schedule.at + LENGTH)
        event.add("description", f"Scheduled by {schedule.by_name}. {schedule.comment}".strip())
        yield event


def _list_lifetimes(projects: list[str], now: datetime) -> Iterator[Event]:
    """Yields the entries of active flags that are not yet marked as stale."""
    for kind, days in FlagType.objects.exclude(lifetime_days=None).values_list("id", "lifetime_days"):
        lifetime = timedelta(days=days or 0)
        flags = Flag.objects.active().filter(project__in=projects, type=kind, stale=False)
        due = flags.filter(created_at__gte=now - PAST - lifetime, created_at__lt=now + AHEAD - lifetime)
        for name, project, created_at in due.order_by("created_at", "name").values_list(
            "name", "project_id", "created_at"
        )[:MAX_ENTRIES]:
            event = _make_entry(f"lifetime-{project}-{name}", flag_url(project, name), now)
            event.add("summary", f"{name} may be stale ({project})")
            event.add("dtstart", (created_at + lifetime).date())
            event.add("transp", "TRANSPARENT")
            event.add("description", f"A flag of the type {kind} is expected to be gone after {days} days.")
            yield event


def _make_entry(uid: str, path: str, now: datetime) -> Event:
    url = absolute(path)
    event = Event()
    event.add("uid", f"{uid}@{urlsplit(url).hostname or 'flagadmin'}")
    event.add("dtstamp", now)
    event.add("url", url)
    return event
