"""Requests to every operation, each undone afterwards."""

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from django.utils import timezone

from flagadmin.console.api_docs.operations import read_document
from groups.models import ApiToken
from projects.models import ProjectEnvironment
from tests.flagadmin.security.batches import undone
from tests.flagadmin.security.routes import Route, routes
from tests.support.cast import client, make_token
from tests.support.signals import TOKEN

MISSING = object()


@cache
def described_api() -> Any:
    """The OpenAPI document. Do not change it."""
    return read_document()


ROUTES = [route for prefix in ("api/", "auth/", "edge/", "invite/", "ofrep/") for route in routes(prefix)]


def known_routes() -> dict[str, Route]:
    return {f"{method} {route}": route for route in ROUTES for method in route.methods}


def replaced(body: Any, path: tuple, odd: Any) -> Any:
    if not path:
        return odd
    body = copy.deepcopy(body)
    holder = body
    for key in path[:-1]:
        holder = holder[key]
    if odd is MISSING:
        del holder[path[-1]]
    else:
        holder[path[-1]] = odd
    return body


def is_sound(response: Any) -> bool:
    """Accepted, or refused with a record, or as OFREP refuses."""
    if response.status_code < 400:
        return True
    record = json.loads(response.content)
    forms = ({"id", "name", "message"}, {"errorCode", "errorDetails"})
    return response.status_code < 500 and any(form <= record.keys() for form in forms)


def caller(operation: str, api: Any) -> Any:
    who = api["admin"]
    if "change-request" in operation:
        ProjectEnvironment.objects.filter(environment="production").update(required_approvals=1)
    if " /api/client/" in operation or " /ofrep/" in operation:
        who = client(make_token("backend", environment="production"))
    elif " /api/frontend" in operation:
        who = client(make_token("frontend", environment="production"))
    elif " /api/signals/" in operation:
        who = client(TOKEN)
    # Otherwise each request would note the token's use, and its rollback forget it: a third of all the time.
    ApiToken.objects.exclude(user__username="somebody").update(seen_at=timezone.now())
    return who


def send(who: Any, operation: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body)
    method = getattr(who, operation.partition(" ")[0])
    with undone():
        return method(path, data, content_type="application/json") if data is not None else method(path)


def bodies(document: Any) -> Iterator[tuple[str, Any]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            for media in operation.get("requestBody", {}).get("content", {}).values():
                yield f"{method} {path}", media["schema"]
