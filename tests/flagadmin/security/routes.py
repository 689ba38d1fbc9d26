"""Every address of the product, read from the URL map itself: a new one cannot be forgotten."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

METHODS = ("get", "post", "put", "patch", "delete")
_PLACEHOLDER = re.compile(r"<(?:(?P<converter>\w+):)?(?P<name>\w+)>")

# What is for everybody: DESIGN.md, "Errors by name", and what leads in and out.
OPEN = {
    "/health",
    "/healthz",
    "/ready",
    "/readyz",
    "/edge/validate",
    "/calendar/<str:token>.ics",
    "/login/",
    "/login/code/",
    "/login/forgot/",
    "/login/invite/<str:token>/",
    "/login/passkey/",
    "/login/link/<str:token>/",
    "/login/sso/",
    "/login/sso/callback/",
    "/login/sso/logout/",
    "/login/sso/metadata/",
    "/logout/",
    "/theme/",
}


@dataclass(frozen=True)
class Route:
    """``pattern`` is the address as the URL map has it: ``api/admin/groups/<str:groupId>``."""

    pattern: str
    methods: tuple[str, ...]

    def __str__(self) -> str:
        return "/" + self.pattern

    @property
    def names(self) -> list[str]:
        """The placeholders of the address."""
        return [match["name"] for match in _PLACEHOLDER.finditer(self.pattern)]

    def path(self, values: dict[str, Any]) -> str:
        """The address with ``values`` in its placeholders; KeyError for one that has none."""
        return "/" + _PLACEHOLDER.sub(lambda match: str(values[match["name"]]), self.pattern)


def routes(prefix: str) -> list[Route]:
    """Those whose address begins with ``prefix``, without the catch-all of unknown addresses."""
    return [route for route in _walk(get_resolver().url_patterns, "") if route.pattern.startswith(prefix)]


def pages() -> list[Route]:
    """Those of the console; the admin site, OFREP, MCP, SCIM and the metrics have their own tests."""
    return [
        route
        for route in routes("")
        if not route.pattern.startswith(
            (
                "api/",
                "auth/",
                "internal-backstage/",
                "invite/",
                "admin/",
                "static/",
                "mcp",
                ".well-known/",
                "metrics",
                "ofrep/",
                "scim/",
            )
        )
        and str(route) not in OPEN
    ]


def _walk(patterns: Any, before: str) -> Iterator[Route]:
    for pattern in patterns:
        address = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, address)
        elif isinstance(pattern, URLPattern) and not address.startswith("^api"):
            yield Route(address, _methods(pattern.callback))


def _methods(view: Any) -> tuple[str, ...]:
    actions = getattr(view, "actions", None)  # of a view set
    owner = getattr(view, "cls", None) or getattr(view, "view_class", None)
    if actions:
        return tuple(method for method in METHODS if method in actions)
    return tuple(method for method in METHODS if hasattr(owner, method))
