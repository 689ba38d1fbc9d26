"""Query parameters and response bodies of the audit event API, in the reference's format."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.utils.dateparse import parse_date, parse_datetime
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.sentences import make_sentence
from flagadmin.core.errors import check_problems
from flagadmin.core.http.fields import Body, is_id
from flagadmin.core.http.responses import iso
from flagadmin.core.lists.filters import find_unknown_parameters
from projects.history.queries import EventFilter

MAX_EVENTS = 1000
OPERATORS = "`IS:one`, `IS_ANY_OF:one,two`, or just the value."
DATES = "`IS:2026-11-21` or, to the second, `IS:2026-11-21T14:30:00Z`."
ONE_DAY, LAST_DAY = timedelta(days=1), date.max


class UsersChangedRecord(serializers.Serializer):
    environment = serializers.CharField()
    users = serializers.IntegerField(help_text="The number of generated users.")
    changed = serializers.IntegerField(
        allow_null=True,
        help_text="Those who get another result. Null if conditions have too many values to count.",
    )
    changes = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Their number by kind: `offToOn`, `onToOff`, `variant`, `payload`, `share` or `unknown`.",
    )
    unmeasured = serializers.ListField(
        child=serializers.CharField(), help_text="Why generated users cannot measure some conditions."
    )


class EventRecord(serializers.Serializer):
    """An audit event: who did what, the state before (`preData`) and after (`data`)."""

    id = serializers.IntegerField()
    type = serializers.CharField()
    createdBy = serializers.CharField()
    createdByUserId = serializers.IntegerField(allow_null=True)
    createdAt = serializers.DateTimeField()
    data = serializers.JSONField(help_text="Null if there is no data.")  # type: ignore[assignment]
    preData = serializers.JSONField(help_text="Null if there was none before.")
    project = serializers.CharField(allow_null=True)
    environment = serializers.CharField(allow_null=True)
    featureName = serializers.CharField(allow_null=True)
    label = serializers.CharField(help_text="The type as text.")  # type: ignore[assignment]
    summary = serializers.CharField(help_text="The event as a sentence.")
    requestId = serializers.CharField(help_text="The X-Request-Id of the request that made the change.")
    comment = serializers.CharField(help_text="Why: the comment on the change. Empty if there is none.")
    whoChanges = UsersChangedRecord(
        many=True,
        required=False,
        help_text="The generated users whose result the event's transaction changed, in each environment. They are "
        "counted within minutes, and for older changes when someone looks at the flag's history. Missing until then.",
    )


class EventList(serializers.Serializer):
    version = serializers.IntegerField()
    events = EventRecord(many=True)
    totalEvents = serializers.IntegerField()
    total = serializers.IntegerField(help_text="Number of matching events on all pages.")


class FeatureEventList(EventList):
    toggleName = serializers.CharField(help_text="The flag's name.")


@extend_schema_field(str)
class IsAnyOf(serializers.Field):
    """A filter in the form ``IS:one``, ``IS_ANY_OF:one,two``, or just the value."""

    def __init__(self, *, help_text: str = OPERATORS, **kwargs: Any) -> None:
        super().__init__(required=False, help_text=help_text, **kwargs)

    def to_internal_value(self, data: Any) -> list[str]:
        operator, colon, rest = str(data).partition(":")
        if colon and operator == "IS":
            return [rest]
        if colon and operator == "IS_ANY_OF":
            return [part.strip() for part in rest.split(",") if part.strip()]
        if colon and operator.isupper():
            raise serializers.ValidationError(f"{operator} is not an operator. Available: IS, IS_ANY_OF.")
        return [str(data)]

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(str)
class Day(serializers.Field):
    """A date or datetime, optionally as ``IS:2026-11-21``. A date at the end includes its day."""

    def __init__(self, *, is_end: bool = False, **kwargs: Any) -> None:
        self.is_end = is_end
        super().__init__(required=False, **kwargs)

    def to_internal_value(self, data: Any) -> datetime:
        text = str(data).removeprefix("IS:")
        try:
            moment = self._moment(text)
        except (ValueError, OverflowError):  # no such day, or outside the range of datetime in UTC
            moment = None
        if moment is None:
            raise serializers.ValidationError(
                f"{text} is not a date like 2026-11-21 or a time like 2026-11-21T14:30:00Z."
            )
        return moment

    def _moment(self, text: str) -> datetime | None:
        if day := parse_date(text):
            # datetime cannot represent the day after the last one.
            first = min(day, LAST_DAY - ONE_DAY) + ONE_DAY if self.is_end else day
            return datetime.combine(first, time(), UTC)
        moment = parse_datetime(text)
        if moment is None:
            return None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

    def to_representation(self, value: Any) -> Any:
        return value


class EventQuery(serializers.Serializer):
    """The parameters of lists of events. Refuses others, because ignoring them would return unwanted events."""

    type = IsAnyOf(help_text=f"{OPERATORS} A type that does not exist matches nothing: clients ask for many.")
    project = IsAnyOf()
    environment = IsAnyOf()
    feature = IsAnyOf()
    createdBy = IsAnyOf(help_text=f"Id of the account. {OPERATORS}")
    query = serializers.CharField(
        required=False, allow_blank=True, max_length=1000, help_text="Part of a name, ignoring case."
    )
    limit = serializers.IntegerField(required=False, min_value=1, max_value=MAX_EVENTS, default=50)
    offset = serializers.IntegerField(required=False, min_value=0, max_value=2**31, default=0)

    def get_fields(self) -> dict[str, serializers.Field]:
        # "from" is a Python keyword, so it cannot be a class attribute.
        since = Day(help_text=f"{DATES} Included.")
        until = Day(is_end=True, help_text=f"{DATES} A day is included, events at a time are not.")
        return super().get_fields() | {"from": since, "to": until}

    def is_valid(self, *, raise_exception: bool = False) -> bool:
        check_problems(find_unknown_parameters(self.initial_data, self.fields))
        return super().is_valid(raise_exception=raise_exception)

    def validate_createdBy(self, value: list[str]) -> list[int]:  # noqa: N802 - the field's name
        if not all(map(is_id, value)):
            raise serializers.ValidationError("Give the id of an account.")
        return list(map(int, value))

    def filter(self) -> EventFilter:
        data = self.validated_data
        return EventFilter(
            types=data.get("type", ()),
            projects=data.get("project", ()),
            environments=data.get("environment", ()),
            features=data.get("feature", ()),
            actors=data.get("createdBy", ()),
            since=data.get("from"),
            until=data.get("to"),
            text=data.get("query", "").strip(),
        )


class EventLinesQuery(EventQuery):
    cursor = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=2**63 - 1,
        help_text="Answers `application/x-ndjson`, one event a line, oldest first: those after the event with this "
        "id. 0 begins with the oldest. The header `X-Next-Cursor` is the cursor to go on with. An event is there as "
        "soon as no earlier one can still appear, so that none is missed.",
    )


class EventSearchBody(Body):
    type = serializers.CharField(required=False)
    project = serializers.CharField(required=False)
    feature = serializers.CharField(required=False)
    query = serializers.CharField(required=False, allow_blank=True)
    limit = serializers.IntegerField(required=False, min_value=1, max_value=MAX_EVENTS)
    offset = serializers.IntegerField(required=False, min_value=0)


def make_event_record(event: AuditEvent) -> dict[str, Any]:
    return {
        "id": event.pk,
        "type": event.type,
        "createdBy": event.actor_name,
        "createdByUserId": event.actor_id,
        "createdAt": iso(event.created_at),
        "data": event.after,
        "preData": event.before,
        "project": event.project,
        "environment": event.environment,
        "featureName": event.feature,
        "label": event.type.replace("-", " ").capitalize(),
        "summary": f"{event.actor_name} {make_sentence(event)}",
        "requestId": event.request_id,
        "comment": event.comment,
    }
