"""What stands around every page: navigation, theme, who is logged in. A context processor.

Nothing here reads the database: error pages are drawn with it while the database is away.
"""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from groups.access import Caller
from groups.authentication import caller_of

THEMES = ("light", "dark")


@dataclass(frozen=True, slots=True)
class Section:
    """An entry of the navigation, with the pages below it. ``prefixes`` are the addresses it is responsible for."""

    label: str
    href: str
    prefixes: tuple[str, ...]
    pages: tuple[tuple[str, str], ...] = ()
    admins_only: bool = False


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
    """``theme`` ("", light, dark), ``sections``, ``section`` and ``subpage`` (address) of this page, ``visitor``."""
    theme = request.COOKIES.get("theme", "")
    section = next((s for s in SECTIONS if request.path.startswith(s.prefixes)), None)
    return {
        "theme": theme if theme in THEMES else "",
        "sections": SECTIONS,
        "section": section,
        "subpage": _subpage(section, request.path),
        "visitor": SimpleLazyObject(lambda: visitor_of(request)),
    }


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
