"""Parts of the OpenAPI document shared by all operations: security scheme, error record, 4xx responses.

An operation declares a 4xx response itself only to give a more specific description:

>>> @extend_schema(responses={200: None, 409: refusal(409, "Flags have tags of this type.")})

Reads what the OpenAPI document says about operations from Markdown files beside their APIs.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import get_lib_doc_excludes, is_list_serializer
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import serializers

from flagadmin.core import errors
from flagadmin.core.change_checks.comments import list_header_parameters
from flagadmin.core.change_checks.override import query_parameters
from flagadmin.core.http.fields import Body, Texts

NUMBERED = frozenset(
    {
        "groupId",
        "roleId",
        *(f"{kind}_id" for kind in ("role", "user", "account", "segment", "holder", "token")),
    }
)
"""Ids that count rows: strings in a URL, according to the specification, but consisting of digits."""
_SENTENCE_END = re.compile(r"(?<=[.:;])\s|\n\n")
ETAG = {"schema": {"type": "string"}, "description": "For `If-Match` and `If-None-Match`."}


class ApiSchema(AutoSchema):
    """Adds the usual 4xx responses, the maximum length of lists in request bodies, and the types of ids.

    ``tags`` of a view set apply to all of its operations. ``header_parameters`` are the request headers of the current
    operation; conditional ones add the corresponding responses.
    """

    def get_operation(self, path: str, *args: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(path, *args)
        if operation is not None:
            answers = operation["responses"]
            headers = {parameter["name"] for parameter in self._header_parameters}
            conditional = (412,) if "If-Match" in headers else ()
            for status in (*list_usual_statuses(path, has_body="requestBody" in operation), *conditional):
                if str(status) not in answers:
                    answers[str(status)] = self._get_response_for_code(refusal(status), str(status))
            if "If-None-Match" in headers:
                answers["200"]["headers"] = {"ETag": ETAG}
                answers["304"] = {"description": "Not modified: the response matches `If-None-Match`."}
            operation["responses"] = dict(sorted(answers.items()))
        return operation

    def get_operation_id(self) -> str:
        """The action's id in the view set's ``operation_ids``, if any: inherited actions need it."""
        ids: dict[str | None, str] = getattr(self.view, "operation_ids", {})
        return ids.get(getattr(self.view, "action", None)) or super().get_operation_id()

    def get_summary(self) -> str:
        """The first sentence of the description, or its part before a colon or semicolon."""
        return read_first_sentence(self.get_description())

    def get_tags(self) -> list[str]:
        return list(getattr(self.view, "tags", ())) or super().get_tags()

    def _is_list_view(self, serializer: Any = None) -> bool:
        """Only ``many=True`` makes a response a list; drf-spectacular assumes a list for every ``list`` action."""
        answer = self.get_response_serializers() if serializer is None else serializer
        if isinstance(answer, dict) and answer:
            answer = min(answer.items(), key=lambda item: str(item[0]))[1]
        return is_list_serializer(answer)

    def _get_examples(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Unwraps examples of lists, which drf-spectacular puts into another list."""
        examples: dict[str, Any] = super()._get_examples(*args, **kwargs)
        for example in examples.values():
            match example.get("value"):
                case [[*items]]:
                    example["value"] = items
        return examples

    def _get_parameters(self) -> list[dict[str, Any]]:
        parameters = super()._get_parameters()
        for parameter in parameters:
            if parameter["in"] == "path" and parameter["name"] in NUMBERED:
                parameter["schema"]["pattern"] = "^[0-9]{1,19}$"
        return [
            *parameters,
            *self._header_parameters,
            *query_parameters(self.path, self.method),
            *list_header_parameters(self.path, self.method),
        ]

    @property
    def _header_parameters(self) -> Sequence[dict[str, Any]]:
        return getattr(self.view, "header_parameters", ())

    def _unwrap_list_serializer(self, serializer: Any, direction: Any) -> Any:
        schema = super()._unwrap_list_serializer(serializer, direction)
        max_length = getattr(serializer, "max_length", None)
        if (
            schema is not None
            and direction == "request"
            and isinstance(serializer, serializers.ListSerializer)
            and max_length
        ):
            schema["maxItems"] = max_length
        return schema


def read_first_sentence(description: str) -> str:
    return " ".join(_SENTENCE_END.split(description, maxsplit=1)[0].split()).rstrip(".:;")


class ApiKeyScheme(OpenApiAuthenticationExtension):
    """The only security scheme: ``Authorization: TOKEN``."""

    target_class = "groups.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "An API token: `Authorization: TOKEN` or `Authorization: Bearer TOKEN`.",
        }


class ErrorProblem(serializers.Serializer):
    """One problem of a request and its path."""

    path = serializers.CharField(help_text="JSON path of the problem, or a parameter's name.")
    message = serializers.CharField(help_text="What is wrong.")


class ErrorRecord(serializers.Serializer):
    """The response body of every failed request."""

    id = serializers.CharField(help_text="Id of this error, also in the server's log.")
    name = serializers.CharField(help_text="Name of the error kind.")
    message = serializers.CharField(help_text="Description of what went wrong.")
    details = ErrorProblem(many=True, required=False, help_text="All problems, if there are several.")
    permissions = Texts(
        required=False,
        help_text="The missing permissions (NoAccessError).",
    )
    expectations = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        help_text="What would break, as comparisons list it (BrokenExpectationsError).",
    )


_KINDS: dict[int, tuple[type[errors.AppError], str]] = {
    400: (errors.ValidationError, "The request is not valid."),
    401: (errors.AuthenticationRequired, "Authorization information is missing or invalid."),
    403: (errors.NoAccess, "The credentials are valid, but a permission is missing."),
    404: (errors.NotFound, "Not found, or not readable by the caller."),
    409: (errors.Conflict, "It conflicts with existing data."),
    412: (
        errors.PreconditionFailed,
        "It has changed since the `ETag` of `If-Match` was read. The record has what is there now as `current`, and "
        "the answer its `ETag`.",
    ),
    413: (errors.PayloadTooLarge, "The body is too large."),
    415: (errors.ContentTypeNotAccepted, "The body is not JSON."),
    429: (errors.TooManyRequests, "Too many requests; `Retry-After` says how long to wait."),
}


def refusal(status: int, description: str | None = None, *, name: str | None = None) -> OpenApiResponse:
    """An error response. ``name`` is needed only if it differs from the usual error name of that status."""
    kind, general = _KINDS[status]
    message = description or general
    example = {"id": "9c40958a-daac-400e-98fb-3bb438567008", "name": name or kind.name, "message": message}
    return OpenApiResponse(
        ErrorRecord,
        description=message,
        examples=[OpenApiExample(name or kind.name, value=example, response_only=True)],
    )


def list_usual_statuses(path: str, *, has_body: bool) -> tuple[int, ...]:
    """The 4xx statuses that any operation at this path may return."""
    statuses = (400, 401, 403, 404, 409) if path.startswith("/api/admin") else (400, 401, 403)
    return (*statuses, 413, 415) if has_body else statuses


def list_undescribing_classes() -> list[type]:
    """The classes whose docstrings do not describe the schemas of their subclasses."""
    return [*get_lib_doc_excludes(), Body]


# The main operations, which readers should find without scrolling.
MAIN_OPERATIONS = (
    ("/api/admin/playground", "post"),
    ("/api/admin/playground/advanced", "post"),
    ("/api/admin/playground/compare", "post"),
    ("/api/admin/features-batch/import", "post"),
    ("/api/admin/projects/{projectId}", "delete"),
    ("/api/admin/projects/{projectId}/applications", "get"),
    ("/api/admin/projects/roles/{roleId}/access", "get"),
    ("/api/admin/groups/{groupId}", "delete"),
)


def main_operations_first(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A postprocessing hook that puts the main operations, and their tags, first in the document."""
    paths = result["paths"]
    first = {path: paths[path] for path, _ in MAIN_OPERATIONS if path in paths}
    result["paths"] = first | {path: paths[path] for path in paths if path not in first}
    for path, method in MAIN_OPERATIONS:
        if path in first:
            first[path] = result["paths"][path] = _put_first(first[path], method)
    main = [paths[path][method]["tags"][0] for path, method in MAIN_OPERATIONS if path in paths]
    others = sorted({operation["tags"][0] for item in paths.values() for operation in item.values()})
    result["tags"] = [{"name": name} for name in dict.fromkeys((*main, *others))]
    return result


def _put_first(item: dict[str, Any], method: str) -> dict[str, Any]:
    return {method: item[method], **item}


_HEADING = re.compile(r"^## (.+)\n+", re.MULTILINE)
_JSON = re.compile(r"```json\n(.*)```\n*", re.DOTALL)


def read_sections(api: str, **values: object) -> dict[str, Any]:
    """The sections of the file ``operations.md`` beside the module ``api`` (its ``__file__``), by their headings.

    A section that is one block of JSON is parsed, an example for instance; any other is text, in which ``values``
    replace names in braces.
    """
    _, *parts = _HEADING.split(Path(api).with_name("operations.md").read_text(encoding="utf-8"))
    return {
        heading: _read_section(body, values) for heading, body in zip(parts[::2], parts[1::2], strict=True)
    }


def _read_section(body: str, values: dict[str, object]) -> Any:
    if example := _JSON.fullmatch(body):
        return orjson.loads(example[1])
    for name, value in values.items():
        body = body.replace(f"{{{name}}}", str(value))
    return body.rstrip("\n") + "\n"
