"""The activity page (/activity/): who changed what, newest first."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from django.db.models import QuerySet

from flagadmin.audit.events import EventType
from flagadmin.audit.models import AuditEvent
from flagadmin.audit.sentences import sentence
from flagadmin.console.lists import Column, Filter, curl_for, cut
from groups.console import ListPage
from projects.access import readable_projects
from projects.history.queries import EventFilter, narrowed, readable_events

# The prefixes of the event types that each option of the "Kind" filter selects.
KINDS = {
    "flags": ("feature-", "strategy-order"),
    "imports": ("features-", "feature-imported", "import-"),
    "projects": ("project-", "default-strategy", "environment-"),
    "access": ("user-", "service-account-", "group-", "role-", "project-access-", "api-token-", "pat-"),
    "vocabulary": ("segment-", "context-field-", "strategy-", "tag-type-"),
}

MOST_LINES, MOST_LETTERS = 12, 250  # lines per event and characters per line; the API returns the whole event


class ActivityPage(ListPage):
    template_name = "console/activity.html"
    title = "Activity"
    csv_name = "activity"
    default_sort = "-when"
    columns = (
        Column("when", "When", by=("id",)),
        Column("who", "Who"),
        Column("what", "What"),
        Column("project", "Project"),
    )

    def get_filters(self) -> Sequence[Filter]:
        projects = readable_projects(self.caller).values_list("id", flat=True)
        return (
            Filter("q", "Flag or name"),
            Filter("project", "Project", [(project, project) for project in projects]),
            Filter("kind", "Kind", [(kind, kind) for kind in KINDS]),
            Filter("person", "Person"),
        )

    def rows(self, values: dict[str, str]) -> QuerySet[AuditEvent]:
        by = EventFilter(
            projects=list(filter(None, [values["project"]])),
            types=types_of(values["kind"]) if values["kind"] else (),
            actor_name=values["person"],
            text=values["q"],
        )
        return narrowed(readable_events(self.caller), by)

    def csv_cells(self, row: AuditEvent) -> Sequence[Any]:
        return (row.created_at, row.actor_name, sentence(row), row.project)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        rows = context["listing"].rows
        context["events"] = [(event, sentence(event), change_of(event)) for event in rows]
        return context

    def curl(self) -> str:
        return curl_for(self.request, "GET", "/api/admin/events")


def with_sentences(events: Iterable[AuditEvent]) -> list[tuple[AuditEvent, str]]:
    """Pairs each event with its sentence."""
    return [(event, sentence(event)) for event in events]


def change_of(event: AuditEvent) -> str:
    """The changed fields as a diff: a "-" line with the value before, a "+" line with the value after.

    Long values and long diffs are truncated.
    """
    before, after = (value if isinstance(value, dict) else {} for value in (event.before, event.after))
    lines = []
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            lines += [f"- {key}: {_json(before[key])}"] if key in before else []
            lines += [f"+ {key}: {_json(after[key])}"] if key in after else []
    return "\n".join(cut(lines, MOST_LINES))


def _json(value: Any) -> str:
    text = orjson.dumps(value).decode()
    more = len(text) - MOST_LETTERS
    return f"{text[:MOST_LETTERS]}… ({more:,} more characters)" if more > 0 else text


def types_of(kind: str) -> list[str]:
    return [event.value for event in EventType if event.value.startswith(KINDS[kind])]
