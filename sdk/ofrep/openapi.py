"""Serializers and examples that only describe OFREP in the OpenAPI document."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema_field
from rest_framework import serializers as s

from flagadmin.core.http.fields import MapOf
from flagadmin.core.http.prose import read_sections
from playground.context_body import MAX_FIELDS, MAX_TEXT_LENGTH
from sdk.ofrep.reasons import Reason

SECTIONS = read_sections(__file__)


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": True,
        "maxProperties": MAX_FIELDS,
        "properties": {"targetingKey": {"type": "string", "maxLength": MAX_TEXT_LENGTH}},
        "example": {"targetingKey": "42", "country": "NO"},
    }
)
class ContextField(s.JSONField):
    """Any members; ``targetingKey`` identifies the user."""


@extend_schema_field(
    {"oneOf": [{"type": kind} for kind in ("boolean", "string", "number", "object", "array")]}
)
class ValueField(s.JSONField):
    """A value of any type."""


@extend_schema_field({"oneOf": [{"type": kind} for kind in ("boolean", "string", "number")]})
class MetadataField(s.JSONField):
    """A scalar."""


class OfrepRequest(s.Serializer[Any]):
    context = ContextField(required=False, allow_null=True)  # type: ignore[assignment]


class OfrepEvaluation(s.Serializer[Any]):
    key = s.CharField(help_text="Name of the flag.")
    reason = s.ChoiceField(choices=[reason.value for reason in Reason])
    variant = s.CharField(help_text='Name of the variant; "enabled" or "disabled" without one.')
    value = ValueField(help_text="The payload of the variant, or without one whether the flag is on.")
    metadata = MapOf(
        child=MetadataField(), help_text="`why`, `project`, `stale`; `bucket` and `random` if any."
    )


class OfrepFailure(s.Serializer[Any]):
    key = s.CharField(required=False, help_text="Name of the flag.")
    errorCode = s.ChoiceField(
        choices=["PARSE_ERROR", "TARGETING_KEY_MISSING", "INVALID_CONTEXT", "FLAG_NOT_FOUND", "GENERAL"]
    )
    errorDetails = s.CharField(help_text="What is wrong.")


@extend_schema_field(
    {
        "oneOf": [
            {"$ref": "#/components/schemas/OfrepEvaluation"},
            {"$ref": "#/components/schemas/OfrepFailure"},
        ]
    }
)
class ResultField(s.JSONField):
    """An evaluation, or an error."""


class OfrepEndpoint(s.Serializer[Any]):
    requestUri = s.CharField(help_text="Path and query, at the origin of this server.")


class OfrepEventStream(s.Serializer[Any]):
    type = s.ChoiceField(choices=["sse"])
    endpoint = OfrepEndpoint()


class OfrepEvaluations(s.Serializer[Any]):
    flags = s.ListField(child=ResultField())
    eventStreams = OfrepEventStream(many=True)


def describe_response(
    description: str, *examples: tuple[str, Any], serializer: Any = OfrepFailure
) -> OpenApiResponse:
    return OpenApiResponse(
        serializer,
        description=description,
        examples=[OpenApiExample(name, value=value, response_only=True) for name, value in examples],
    )


def describe_refusal(code: str, details: str, key: str | None = None) -> tuple[str, Any]:
    named = {} if key is None else {"key": key}
    return code, {**named, "errorCode": code, "errorDetails": details}


METADATA = {
    "why": "userId 42 is in bucket 8, 60 % rollout",
    "project": "default",
    "stale": False,
    "bucket": 8,
}
ON = {
    "key": "new-checkout",
    "reason": "SPLIT",
    "variant": "enabled",
    "value": True,
    "metadata": METADATA,
}
BLUE = {
    "key": "button",
    "reason": "SPLIT",
    "variant": "blue",
    "value": "#00f",
    "metadata": {"why": "On for everyone", "project": "default", "stale": False},
}
REQUEST = OpenApiExample(
    "A user", value={"context": {"targetingKey": "42", "country": "NO"}}, request_only=True
)
REFUSALS = {
    401: describe_response(
        "No token, or an unknown one.", describe_refusal("GENERAL", "API token not found.")
    ),
    403: describe_response(
        "A token of another kind.",
        describe_refusal(
            "GENERAL", "This is an admin token; this endpoint accepts backend or frontend tokens only."
        ),
    ),
    413: describe_response(
        "The body is too large.",
        describe_refusal("GENERAL", "The body is larger than the 1 MB accepted here."),
    ),
    429: describe_response("Too many requests; `Retry-After` says how long to wait."),
}
KEY = OpenApiParameter("key", str, OpenApiParameter.PATH, description="Name of the flag.")
TICKET = OpenApiParameter(
    "ticket", str, description="As in `eventStreams`; a token in a header will do, too."
)
LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID", str, OpenApiParameter.HEADER, description="The `id` of the last event received."
)
STREAMS = [{"type": "sse", "endpoint": {"requestUri": "/ofrep/v1/events?ticket=12.5f0c…"}}]
EVENT = OpenApiExample(
    "A change",
    value='event: message\nid: 42135\ndata: {"type":"refetchEvaluation"}\n\n',
    response_only=True,
    status_codes=["200"],
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="The ETag of the previous answer."
)
REFETCH = [
    OpenApiParameter(name, str, description="Sent by providers after a change event; not needed here.")
    for name in ("flagConfigEtag", "flagConfigLastModified")
]


class ApiKeyHeaderScheme(OpenApiAuthenticationExtension):
    """``Authorization: Bearer TOKEN`` or ``X-API-Key: TOKEN``."""

    target_class = "groups.authentication.ApiKeyHeaderAuthentication"
    name = ["ofrepBearer", "ofrepApiKey"]

    def get_security_definition(self, auto_schema: Any) -> Any:
        return [
            {"type": "http", "scheme": "bearer", "description": "A backend or frontend token."},
            {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same token."},
        ]
