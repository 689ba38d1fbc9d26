"""Bodies and answers of the list of a segment, and the forms in which it is sent: lines, CSV and JSON.

Bodies and answers of the URL that the list of a segment is kept in step with.
"""

from dataclasses import replace
from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers
from rest_framework.parsers import BaseParser

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.fields import Body, ListOf, Texts
from flagadmin.core.http.json_bodies import Bounds
from flagadmin.core.http.request_bodies import StrictJSONParser
from flagadmin.core.http.responses import iso
from projects.models import ListSource, Segment
from projects.rules import Limits
from projects.segments.actions import Weight, weigh
from projects.segments.lists import (
    BODY_LIMIT,
    EMPTY,
    MODES,
    Difference,
    SentList,
    decode,
    find_list,
    read_csv,
    read_lines,
    read_values,
)
from projects.segments.rules import MAX_MINUTES, MAX_URL_LENGTH, MIN_MINUTES
from projects.segments.source_task import source_document

MAX_VALUES = max(settings.SEGMENT_LIST_LIMIT, settings.SEGMENT_VALUES_LIMIT)
TEXT = {"type": "string", "maxLength": BODY_LIMIT}
CSV_EXAMPLE = "userId,country\n42,NO\n7,DE\n"


class ListBody(Body):
    values = ListOf(
        child=serializers.CharField(), max_length=MAX_VALUES, help_text="Repeated values count once."
    )


class ListQuery(Body):
    mode = serializers.ChoiceField(
        MODES, default="replace", help_text="Replace the list, add the values to it, or remove them from it."
    )
    field = serializers.CharField(
        max_length=100,
        required=False,
        help_text="The context field, for a segment without constraints: `userId` by default.",
    )
    column = serializers.CharField(
        max_length=255, required=False, help_text="The column of a CSV file, if it has several."
    )
    dryRun = serializers.BooleanField(default=False, help_text="Only tell what would change.")


class WeightRecord(serializers.Serializer[Any]):
    bytes = serializers.IntegerField(help_text="Of the segment in one answer to an SDK, not compressed.")
    environments = Texts(help_text="Those whose answers have it.")
    strategies = serializers.IntegerField(
        help_text="Strategies that use it. SDKs that do not know segments get it with each of them."
    )
    totalBytes = serializers.IntegerField(help_text="Bytes times environments.")
    warning = serializers.CharField(required=False, help_text="Only for more than 5,000 values.")


class ListRecord(serializers.Serializer[Any]):
    contextName = serializers.CharField(allow_null=True)
    values = Texts()
    weight = WeightRecord()


class ListChanged(serializers.Serializer[Any]):
    contextName = serializers.CharField()
    values = serializers.IntegerField(help_text="The number of values after the change.")
    added = serializers.IntegerField()
    removed = serializers.IntegerField()
    firstAdded = Texts(help_text="The first of the values that were added.")
    firstRemoved = Texts()
    weight = WeightRecord()


class LinesParser(BaseParser):
    media_type = "text/plain"
    member = "lines"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return {self.member: decode(stream.read())}


class CsvParser(LinesParser):
    media_type = "text/csv"
    member = "csv"


class ListParser(StrictJSONParser):
    bounds = Bounds(items=MAX_VALUES, values=2 * MAX_VALUES)


def read_sent(body: Any, query: dict[str, Any], segment: Segment) -> SentList:
    """The list of a parsed body. Raises ValidationError."""
    limits = Limits.from_settings()
    field = query.get("field", "")
    stored = segment.constraints[0]["contextName"] if segment.constraints else ""
    if not body:
        raise ValidationError.at("values", EMPTY)
    if isinstance(body, dict) and "lines" in body:
        sent = read_lines(body["lines"], limits)
    elif isinstance(body, dict) and "csv" in body:
        named = {"field": stored or field} if stored or field else {}
        sent = read_csv(body["csv"], limits, column=query.get("column", ""), **named)
    else:
        serializer = ListBody(data=body)
        serializer.is_valid(raise_exception=True)
        sent = read_values(serializer.validated_data["values"], limits)
    return replace(sent, field=field or sent.field)


def weight_document(weight: Weight) -> dict[str, Any]:
    document = {
        "bytes": weight.size,
        "environments": weight.environments,
        "strategies": weight.strategies,
        "totalBytes": weight.total,
    }
    return document | ({"warning": weight.warning} if weight.warning else {})


def list_document(segment: Segment) -> dict[str, Any]:
    return {
        "contextName": segment.constraints[0]["contextName"] if segment.constraints else None,
        "values": find_list(segment.constraints),
        "weight": weight_document(weigh(segment, segment.constraints)),
    }


def changed_document(segment: Segment, constraints: Any, difference: Difference) -> dict[str, Any]:
    return {
        "contextName": constraints[0]["contextName"],
        "values": len(find_list(constraints)),
        **difference.document(),
        "weight": weight_document(weigh(segment, constraints)),
    }


SOURCE_EXAMPLE = OpenApiExample(
    "A column of a CSV file, each hour",
    {
        "url": "https://crm.example.com/beta.csv",
        "format": "csv",
        "column": "userId",
        "intervalMinutes": 60,
    },
    request_only=True,
)


class ListSourceBody(Body):
    url = serializers.CharField(
        max_length=MAX_URL_LENGTH,
        help_text="https, at a public address or one of `FLAGADMIN_INTEGRATION_NETWORKS`. Answers show it without its "
        "query. If you send that back, the query stays.",
    )
    format = serializers.ChoiceField(ListSource.Format.choices, default=ListSource.Format.LINES)
    column = serializers.CharField(
        max_length=255,
        allow_blank=True,
        default="",
        help_text="The column of a CSV file, if it has several, or the member of the objects in a JSON list.",
    )
    intervalMinutes = serializers.IntegerField(
        source="minutes", min_value=MIN_MINUTES, max_value=MAX_MINUTES, default=60
    )


class ListSourceRecord(serializers.Serializer[Any]):
    url = serializers.CharField(allow_null=True, help_text="Without its query; null if there is no source.")
    format = serializers.ChoiceField(ListSource.Format.choices, allow_null=True)
    column = serializers.CharField(allow_null=True)
    intervalMinutes = serializers.IntegerField(allow_null=True)
    setBy = serializers.CharField(allow_null=True)
    setAt = serializers.DateTimeField(allow_null=True)
    checkedAt = serializers.DateTimeField(allow_null=True, help_text="The last fetch.")
    result = serializers.CharField(
        allow_null=True, help_text="What the last fetch changed; empty if it failed."
    )
    problem = serializers.CharField(
        allow_null=True, help_text="Why the last fetch changed nothing; empty if it succeeded."
    )


def record_source(source: ListSource | None) -> dict[str, Any]:
    return source_document(source) | {
        "checkedAt": source and iso(source.checked_at),
        "result": source and source.result,
        "problem": source and source.problem,
    }
