"""/api/docs/: the API's operations by subject, and a page for each. They need no login, like the document."""

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.gzip import gzip_page
from django.views.generic.base import ContextMixin, TemplateResponseMixin, View
from rest_framework.permissions import SAFE_METHODS

from flagadmin.console.api_docs.document import get_openapi_document
from flagadmin.console.api_docs.operations import (
    Call,
    Operation,
    as_curl,
    as_json,
    as_python,
    fill_path,
    find_operation,
    group_by_subject,
    list_operations,
    make_path_value,
    read_document,
)
from flagadmin.console.api_docs.shapes import (
    as_html,
    describe_limits,
    describe_shape,
    describe_type,
    inline_html,
    make_example,
)
from flagadmin.core.http.openapi import read_first_sentence
from groups.console import not_allowed

STREAM = "text/event-stream"


@method_decorator([gzip_page, never_cache], name="dispatch")
class OpenPage(TemplateResponseMixin, ContextMixin, View):
    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        raise not_allowed(["GET", "HEAD"])

    def head(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return self.get(request, *args, **kwargs)

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        raise NotImplementedError


class OperationsPage(OpenPage):
    """The list of operations. ``?q=`` narrows it to those that contain every word."""

    template_name = "api_docs/operations.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        text = request.GET.get("q", "").strip()
        subjects = group_by_subject(text)
        context = self.get_context_data(
            title="API",
            q=text,
            subjects=subjects,
            total=sum(len(operations) for _, operations in subjects),
            address=request.build_absolute_uri("/").rstrip("/"),
        )
        return self.render_to_response(context)


@method_decorator(ensure_csrf_cookie, name="dispatch")
class OperationPage(OpenPage):
    """One operation: its callers, parameters, responses and examples, and a form that sends a request."""

    template_name = "api_docs/operation.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        operation = find_operation(kwargs["operation_id"])
        if operation is None:
            query = urlencode({"q": kwargs["operation_id"]})
            return HttpResponseRedirect(f"{reverse('docs')}?{query}")
        return self.render_to_response(self.get_context_data(**describe(request, operation)))


def describe(request: HttpRequest, operation: Operation) -> dict[str, Any]:
    document = read_document()
    described = document["paths"][operation.path][operation.method.lower()]
    callers = get_openapi_document().callers[operation.id]
    parameters = described.get("parameters", [])
    media, content = read_content(described.get("requestBody", {}))
    body = make_body_example(document, content) if "json" in media else None
    path = fill_path(operation.path, parameters)
    header = "Authorization" if callers.tokens else ""
    call = Call(operation.method, request.build_absolute_uri(path), media, body, header)
    answers = list(describe_answers(document, described["responses"]))
    listed = reverse("docs")
    return {
        "title": operation.summary,
        "breadcrumbs": [("API", listed), (operation.subject, f"{listed}#{slugify(operation.subject)}")],
        "operation": operation,
        "description": as_html(drop_summary(described.get("description", ""), operation.summary)),
        "callers": callers,
        "parameters": [describe_parameter(document, operation.path, parameter) for parameter in parameters],
        "media": media,
        "is_json": body is not None,
        "body": describe_shape(document, content["schema"]) if content else None,
        "example_text": as_json(body),
        "curl": "",
        "curl_command": as_curl(call),
        "python": as_python(call),
        "answers": [answer for answer in answers if answer["status"] < "400"],
        "refusals": [answer for answer in answers if answer["status"] >= "400"],
        "others": [other for other in list_operations() if other.subject == operation.subject],
        "can_be_tried": body is not None
        or not (media or any(answer["media"] == STREAM for answer in answers)),
        "is_write": operation.method not in SAFE_METHODS,
    }


def describe_parameter(
    document: Mapping[str, Any], path: str, parameter: Mapping[str, Any]
) -> dict[str, Any]:
    schema = parameter["schema"]
    return {
        "name": parameter["name"],
        "place": parameter["in"],
        "type": describe_type(document, schema),
        "text": inline_html(parameter.get("description", "")),
        "limits": describe_limits(schema),
        "is_required": parameter.get("required", False),
        "example": make_path_value(path, parameter["name"]) if parameter["in"] == "path" else "",
    }


def read_content(described: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The media type and its content in the document; ("", {}) without a body."""
    contents: Mapping[str, Mapping[str, Any]] = described.get("content", {})
    return next(iter(contents.items()), ("", {}))


def make_body_example(document: Mapping[str, Any], content: Mapping[str, Any]) -> Any:
    example = next((value["value"] for value in content.get("examples", {}).values()), None)
    return make_example(document, content["schema"]) if example is None else example


def describe_answers(document: Mapping[str, Any], responses: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for status, response in sorted(responses.items()):
        media, content = read_content(response)
        is_json = media == "application/json"
        yield {
            "status": status,
            "phrase": HTTPStatus(int(status)).phrase,
            "text": inline_html(response.get("description", "")),
            "media": media,
            "shape": describe_shape(document, content["schema"]) if is_json else None,
            "example_text": as_json(make_body_example(document, content)) if is_json else "",
        }


def drop_summary(description: str, summary: str) -> str:
    """The description without its first sentence, if that is the summary."""
    if read_first_sentence(description) != summary:
        return description
    return re.sub(r"\A(?:[^.:;]|[.:;](?!\s|\Z))*[.:;]?\s*", "", description)
