"""Context processor for the navigation, theme and visitor of every page.

Everything that needs the database is evaluated lazily, because error pages must also render while it is down.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from flagadmin import __version__
from flagadmin.core.installation.state import is_in_maintenance
from groups.access import Caller, Permission
from groups.authentication import get_caller
from playground.lens import find_lens

THEMES = ("light", "dark")


@dataclass(frozen=True, slots=True)
class Page:
    """A page in the navigation, for visitors with at least one of the permissions in ``needs`` anywhere."""

    label: str
    url: str
    needs: tuple[Permission, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A navigation entry. Lists its pages below it if it has several."""

    label: str
    pages: tuple[Page, ...]
    more_prefixes: tuple[str, ...] = ()  # further URL prefixes of the section, besides its pages

    def has(self, path: str) -> bool:
        return path.startswith((*self.more_prefixes, *(page.url for page in self.pages)))


@cache
def list_sections() -> tuple[Section, ...]:
    of_tokens = (
        Permission.READ_CLIENT_API_TOKEN,
        Permission.READ_FRONTEND_API_TOKEN,
        Permission.READ_PROJECT_API_TOKEN,
    )
    of_roles = (Permission.ADMIN, Permission.READ_ROLE)
    of_integrations = (Permission.CREATE_ADDON, Permission.UPDATE_ADDON, Permission.DELETE_ADDON)
    of_installation = (Permission.ADMIN, Permission.UPDATE_MAINTENANCE_MODE, Permission.UPDATE_CORS)
    return (
        Section(
            "Projects",
            (
                Page("Projects", reverse("projects")),
                Page("All flags", reverse("all-flags")),
                Page("Stale flags", reverse("stale-flags")),
                Page("Applications", reverse("applications")),
                Page("Environments", reverse("environments")),
                Page("Segments", reverse("segments")),
                Page("Context fields", reverse("context-fields")),
                Page("Strategy types", reverse("strategy-types")),
                Page("Tag types", reverse("tag-types")),
                Page("Release plans", reverse("release-plans")),
                Page("Release templates", reverse("release-templates")),
            ),
            more_prefixes=(reverse("application", args=["*"]).partition("*")[0],),
        ),
        Section(
            "What happened",
            (
                Page("What happened", reverse("what-happened")),
                Page("Which change did this", reverse("incidents")),
                Page("Audit log", reverse("activity")),
                Page("Calendar", reverse("calendar")),
                Page("Impact metrics", reverse("charts")),
            ),
        ),
        Section(
            "Playground",
            (
                Page("Evaluate", reverse("playground")),
                Page("Side by side", reverse("playground-compare")),
                Page("Who changes", reverse("who-changes")),
                Page("Many users", reverse("users")),
                Page("Who had it", reverse("assignments")),
                Page("Saved contexts", reverse("saved-contexts")),
                Page("Expectations", reverse("expectations")),
            ),
        ),
        Section(
            "Import",
            (
                Page("Import", reverse("import")),
                Page("Past imports", reverse("imports")),
                Page("Move from Unleash", reverse("move"), (Permission.ADMIN,)),
            ),
        ),
        Section(
            "Access",
            (
                Page("Roles", reverse("roles"), of_roles),
                Page("Groups", reverse("groups"), of_roles),
                Page("People", reverse("people"), (Permission.ADMIN,)),
                Page("Invite links", reverse("invite-links"), (Permission.ADMIN,)),
                Page("Provisioning", reverse("scim"), (Permission.ADMIN,)),
                Page("Service accounts", reverse("service-accounts"), (Permission.ADMIN,)),
                Page("API tokens", reverse("tokens"), of_tokens),
            ),
        ),
        Section(
            "Settings",
            (
                Page("Integrations", reverse("integrations"), of_integrations),
                Page("Signals", reverse("signals"), of_integrations),
                Page("Relays", reverse("relays"), (Permission.ADMIN,)),
                Page("Installation", reverse("installation"), of_installation),
                Page("Data fixes", reverse("admin:index"), (Permission.ADMIN,)),
            ),
        ),
        Section("API", (Page("API", reverse("docs")),)),
    )


def navigation(request: HttpRequest) -> dict[str, Any]:
    """The variables for the templates.

    ``version``, ``theme`` (light, dark, "" for the system's), ``visitor``, the ``lens``, the ``sections`` and
    ``subpages`` that the visitor may open, and the current ``section`` and ``subpage``.
    """
    theme = request.COOKIES.get("theme", "")
    section = next((s for s in list_sections() if s.has(request.path)), None)
    visitor: Any = SimpleLazyObject(lambda: get_visitor(request))
    return {
        "version": __version__,
        "theme": theme if theme in THEMES else "",
        "sections": SimpleLazyObject(lambda: list(list_sections_of(visitor))),
        "section": section,
        "subpages": SimpleLazyObject(lambda: list_subpages(section, visitor)),
        "subpage": _find_subpage(section, request.path),
        "visitor": visitor,
        "lens": SimpleLazyObject(lambda: find_lens(request, visitor) if visitor else None),
        "is_in_maintenance": SimpleLazyObject(is_in_maintenance),
    }


def list_sections_of(visitor: Caller) -> Iterator[tuple[Section, str]]:
    """The sections that the visitor may open, each with the URL of its first accessible page."""
    for section in list_sections():
        if pages := list_pages(section, visitor):
            yield section, pages[0].url


def list_subpages(section: Section | None, visitor: Caller) -> list[Page]:
    return list_pages(section, visitor) if section and len(section.pages) > 1 else []


def list_pages(section: Section, visitor: Caller) -> list[Page]:
    return [page for page in section.pages if not page.needs or visitor.can_anywhere(page.needs)]


def _find_subpage(section: Section | None, path: str) -> Page | None:
    """The listed page with the longest URL that is a prefix of ``path``."""
    pages = [page for page in section.pages if path.startswith(page.url)] if section else []
    return max(pages, key=lambda page: len(page.url), default=None)


def get_visitor(request: HttpRequest) -> Caller | None:
    inner = getattr(request, "_request", request)  # in the API browser, this is a DRF request
    user = getattr(inner, "user", None)
    if user is None or isinstance(user, Caller):
        return user
    return get_caller(inner) if user.is_authenticated and user.is_active else None
