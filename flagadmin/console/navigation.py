"""What stands around every page: navigation, theme, who is logged in. A context processor.

Nothing here reads the database: error pages are drawn with it while the database is away.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from groups.access import Caller
from groups.authentication import caller_of
from groups.permissions import Permission

THEMES = ("light", "dark")


@dataclass(frozen=True, slots=True)
class Section:
    """An entry of the navigation, with the pages below it. ``prefixes`` are the addresses it is responsible for."""

    label: str
    href: str
    prefixes: tuple[str, ...]
    pages: tuple[tuple[str, str], ...] = ()
    admins_only: bool = False


# Pages that are offered to those alone who hold one of these.
NEEDS = {
    "/access/roles/": (Permission.ADMIN, Permission.READ_ROLE),
    "/access/groups/": (Permission.ADMIN, Permission.READ_ROLE),
    "/access/people/": (Permission.ADMIN,),
    "/access/service-accounts/": (Permission.ADMIN,),
}


SECTIONS = (
    Section(
        "Playground",
        "/playground/",
        ("/playground/",),
        (("Evaluate", "/playground/"), ("Compare", "/playground/compare/")),
    ),
    Section(
        "Projects",
        "/projects/",
        ("/projects/", "/applications/", "/segments/", "/context-fields/", "/strategy-types/", "/tag-types/"),
        (
            ("Projects", "/projects/"),
            ("Segments", "/segments/"),
            ("Context fields", "/context-fields/"),
            ("Strategy types", "/strategy-types/"),
            ("Tag types", "/tag-types/"),
        ),
    ),
    Section(
        "Import",
        "/import/",
        ("/import/", "/imports/"),
        (("Import", "/import/"), ("Past imports", "/imports/")),
    ),
    Section(
        "Access",
        "/access/roles/",
        ("/access/",),
        (
            ("Roles", "/access/roles/"),
            ("Groups", "/access/groups/"),
            ("People", "/access/people/"),
            ("Service accounts", "/access/service-accounts/"),
            ("API tokens", "/access/tokens/"),
        ),
    ),
    Section("Activity", "/activity/", ("/activity/",)),
    Section("API", "/api/docs/", ("/api/docs/",)),
    Section("Data fixes", "/admin/", ("/admin/",), admins_only=True),
)


def chrome(request: HttpRequest) -> dict[str, Any]:
    """``theme`` ("", light, dark), ``visitor``, ``sections`` and ``subpages`` that they may open, ``section`` and
    ``subpage`` (address) of this page."""
    theme = request.COOKIES.get("theme", "")
    section = next((s for s in SECTIONS if request.path.startswith(s.prefixes)), None)
    visitor: Any = SimpleLazyObject(lambda: visitor_of(request))
    return {
        "theme": theme if theme in THEMES else "",
        "sections": SimpleLazyObject(lambda: list(sections_of(visitor))),
        "section": section,
        "subpages": SimpleLazyObject(lambda: pages_of(section, visitor) if section else ()),
        "subpage": _subpage(section, request.path),
        "visitor": visitor,
    }


def sections_of(visitor: Caller) -> Iterator[tuple[Section, str]]:
    """The sections that have something for the visitor, each with the first page that they may open."""
    for section in SECTIONS:
        if not section.admins_only or visitor.is_admin:
            pages = pages_of(section, visitor)
            yield section, (pages[0][1] if pages else section.href)


def pages_of(section: Section, visitor: Caller) -> list[tuple[str, str]]:
    return [
        (label, href)
        for label, href in section.pages
        if href not in NEEDS or any(visitor.can(permission) for permission in NEEDS[href])
    ]


def _subpage(section: Section | None, path: str) -> str:
    """The address of the listed page that this one belongs to: the longest that it begins with."""
    pages = [href for _, href in section.pages if path.startswith(href)] if section else []
    return max(pages, key=len, default="")


def visitor_of(request: HttpRequest) -> Caller | None:
    inner = getattr(request, "_request", request)  # the API's page brings DRF's own
    user = getattr(inner, "user", None)
    if user is None or isinstance(user, Caller):
        return user
    return caller_of(inner) if user.is_authenticated and user.is_active else None
