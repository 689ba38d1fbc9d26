"""Reads the flags that SDKs reported in the last two days though they do not exist."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from django.db.models import Exists, Max, OuterRef, QuerySet
from django.utils import timezone

from flagadmin.core.document import Document
from flagadmin.core.http.timestamps import iso
from groups.access import Caller
from projects.applications.details import find_readable_applications
from projects.applications.usage_report import HOURS_KEPT
from projects.history.queries import readable_events
from projects.models import Application, Flag, UnknownFlag

MAX_LISTED = 1000


def list_unknown_flag_documents(caller: Caller) -> list[Document]:
    """Unknown flags by name, with the applications that the caller may read, and their environments. Four queries."""
    rows = find_unknown_flags().filter(application_id__in=find_readable_applications(caller).values("pk"))
    listed = list(rows.order_by("name").values_list("name", flat=True).distinct()[:MAX_LISTED])
    places = list(
        rows.filter(name__in=listed).values_list("name", "application_id", "environment", "seen_at")
    )
    applications = dict(
        Application.objects.filter(pk__in={place[1] for place in places}).values_list("pk", "name")
    )
    uses = sorted(
        (name, applications[application], environment, seen_at)
        for name, application, environment, seen_at in places
        if application in applications  # it may have been deleted since
    )
    events = _read_last_events(caller, listed)
    return [
        _make_document(name, list(by_name), events.get(name))
        for name, by_name in groupby(uses, key=itemgetter(0))
    ]


def read_unknown_flags(application: Application) -> dict[str, list[str]]:
    """Sorted names of the unknown flags that the application reported, by environment. One query."""
    names: dict[str, list[str]] = defaultdict(list)
    rows = find_unknown_flags().filter(application_id=application.pk).order_by("environment", "name")
    for environment, name in rows.values_list("environment", "name"):
        names[environment].append(name)
    return names


def find_unknown_flags() -> QuerySet[UnknownFlag]:
    """Finds unknown flags, without those that have been created since."""
    exists = Exists(Flag.objects.filter(name=OuterRef("name")))
    return UnknownFlag.objects.filter(~exists, seen_at__gt=timezone.now() - HOURS_KEPT)


def _read_last_events(caller: Caller, names: Collection[str]) -> dict[str | None, datetime]:
    """Reads when something last happened to flags of these names, which have been deleted."""
    events = readable_events(caller).filter(feature__in=names).order_by()
    return dict(events.values("feature").annotate(last=Max("created_at")).values_list("feature", "last"))


def _make_document(
    name: str, uses: list[tuple[str, str, str, datetime]], last_event_at: datetime | None
) -> Document:
    return {
        "name": name,
        "lastSeenAt": iso(max(seen_at for *_, seen_at in uses)),
        "lastEventAt": iso(last_event_at),
        "reports": [
            {
                "appName": application,
                "environments": [
                    {"environment": environment, "seenAt": iso(seen_at)}
                    for *_, environment, seen_at in places
                ],
            }
            for application, places in groupby(uses, key=itemgetter(1))
        ],
    }
