"""Bodies and answers of the URL that the list of a segment is kept in step with."""

from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers

from flagadmin.core.http.fields import Body
from flagadmin.core.http.responses import iso
from projects.models import ListSource
from projects.segments.source_actions import source_document
from projects.segments.source_rules import MAX_MINUTES, MAX_URL_LENGTH, MIN_MINUTES

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
