"""Context processor for the navigation, theme and visitor of every page.

Everything that needs the database is evaluated lazily, because error pages must also render while it is down.
"""

import re
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
from projects.projects.head import INTEGRATION_PERMISSIONS
from projects.tokens.access import LIST_PERMISSIONS

THEMES = ("light", "dark")


@dataclass(frozen=True, slots=True)
class Page:
    """A page in the navigation, for visitors with at least one of the permissions in ``needs`` anywhere."""

    label: str
    url: str
    needs: tuple[Permission, ...] = ()
    about: str = ""  # a line on the overview of the section


@dataclass(frozen=True, slots=True)
class Group:
    """Pages that are tabs of each other. ``more_prefixes``: the URLs of further pages, which have breadcrumbs."""

    label: str
    pages: tuple[Page, ...]
    more_prefixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A navigation entry. ``url``: its overview, which lists all groups; "" to start at the first page.

    ``patterns`` match the URLs of its pages below another section's, such as the requests of one project.
    """

    label: str
    groups: tuple[Group, ...]
    url: str = ""
    patterns: tuple[re.Pattern[str], ...] = ()

    @property
    def pages(self) -> tuple[Page, ...]:
        """The pages of all groups, each once."""
        return tuple(dict.fromkeys(page for group in self.groups for page in group.pages))


@cache
def list_sections() -> tuple[Section, ...]:
    of_roles = (Permission.ADMIN, Permission.READ_ROLE)
    of_installation = (Permission.ADMIN, Permission.UPDATE_MAINTENANCE_MODE, Permission.UPDATE_CORS)
    of_admins = (Permission.ADMIN,)
    playground = Page("Playground", reverse("playground"))
    return (
        Section("Home", (Group("Home", (Page("Home", reverse("start")),)),)),
        Section(
            "Flags",
            (
                Group(
                    "Flags",
                    (
                        Page("Flags", reverse("all-flags")),
                        Page("Projects", reverse("projects")),
                        Page("Applications", reverse("applications")),
                        playground,
                    ),
                    more_prefixes=(reverse("connect-anywhere"), "/in-steps/", "/if-saved/"),
                ),
                Group(
                    "Playground",
                    (
                        playground,
                        Page("Side by side", reverse("playground-compare")),
                        Page("Who changes", reverse("who-changes")),
                        Page("Many users", reverse("users")),
                        Page("Who had it", reverse("assignments")),
                        Page("Saved contexts", reverse("saved-contexts")),
                        Page("Expectations", reverse("expectations")),
                    ),
                    more_prefixes=(reverse("lens"),),
                ),
            ),
        ),
        Section(
            "What happened",
            (
                Group(
                    "What happened",
                    (
                        Page("What happened", reverse("what-happened")),
                        Page("Which change did this", reverse("incidents")),
                        Page("Did it work", reverse("analyses")),
                        Page("Audit log", reverse("activity")),
                        Page("Calendar", reverse("calendar")),
                        Page("Impact metrics", reverse("charts")),
                    ),
                ),
            ),
            patterns=(re.compile(r"/projects/[^/]+/activity/|/environments/[^/]+/revert"),),
        ),
        Section(
            "Requests",
            (
                Group(
                    "Requests",
                    (
                        Page("Requests", reverse("all-change-requests")),
                        Page("Release plans", reverse("release-plans")),
                    ),
                ),
            ),
            patterns=(re.compile(r"/projects/[^/]+/change-requests/"),),
        ),
        Section(
            "Access",
            (
                Group(
                    "Access",
                    (
                        Page("People", reverse("people"), of_admins),
                        Page("Groups", reverse("groups"), of_roles),
                        Page("Roles", reverse("roles"), of_roles),
                        Page("Service accounts", reverse("service-accounts"), of_admins),
                        Page("API tokens", reverse("tokens"), LIST_PERMISSIONS),
                        Page("Agents", reverse("agents")),
                        Page("Invite links", reverse("invite-links"), of_admins),
                        Page("Provisioning", reverse("scim"), of_admins),
                    ),
                ),
            ),
        ),
        Section(
            "Settings",
            (
                Group(
                    "Flags",
                    (
                        Page("Environments", reverse("environments"), (), "Development, production, …"),
                        Page("Segments", reverse("segments"), (), "Groups of users that flags share"),
                        Page(
                            "Context fields", reverse("context-fields"), (), "What conditions can ask about"
                        ),
                        Page("Strategy types", reverse("strategy-types"), (), "Strategies of your own SDKs"),
                        Page("Tag types", reverse("tag-types"), (), "Kinds of tags that flags can have"),
                        Page(
                            "Release templates",
                            reverse("release-templates"),
                            (),
                            "Steps that plans start from",
                        ),
                    ),
                ),
                Group(
                    "Import",
                    (
                        Page("Import", reverse("import"), (), "Flags from a file"),
                        Page("Past imports", reverse("imports"), (), "Results of imports, and undo"),
                        Page("Move from Unleash", reverse("move"), of_admins, "Everything, over its API"),
                    ),
                ),
                Group(
                    "Connections",
                    (
                        Page(
                            "Integrations",
                            reverse("integrations"),
                            INTEGRATION_PERMISSIONS,
                            "Slack, webhooks, Datadog, …",
                        ),
                        Page(
                            "Signals", reverse("signals"), INTEGRATION_PERMISSIONS, "Alerts that act on flags"
                        ),
                        Page(
                            "Relays", reverse("relays"), of_admins, "Copies of the flags close to your SDKs"
                        ),
                        Page("API", reverse("docs"), (), "Every operation, to read and to try"),
                    ),
                ),
                Group(
                    "Installation",
                    (
                        Page(
                            "Installation",
                            reverse("installation"),
                            of_installation,
                            "Maintenance, email, usage",
                        ),
                        Page("Data fixes", reverse("admin:index"), of_admins, "Raw records"),
                    ),
                ),
            ),
            url=reverse("settings"),
        ),
    )


def navigation(request: HttpRequest) -> dict[str, Any]:
    """The variables for the templates.

    ``version``, ``theme`` (light, dark, "" for the system's), ``visitor``, the ``lens``, the ``sections`` and
    ``subpages`` that the visitor may open, and the current ``section`` and ``subpage``.
    """
    theme = request.COOKIES.get("theme", "")
    section, group, page = find_place(request.path)
    visitor: Any = SimpleLazyObject(lambda: get_visitor(request))
    return {
        "version": __version__,
        "theme": theme if theme in THEMES else "",
        "sections": SimpleLazyObject(lambda: list(list_sections_of(visitor))),
        "section": section,
        "subpages": SimpleLazyObject(lambda: list_subpages(group, visitor)),
        "subpage": page,
        "visitor": visitor,
        "lens": SimpleLazyObject(lambda: find_lens(request, visitor) if visitor else None),
        "is_in_maintenance": SimpleLazyObject(is_in_maintenance),
    }


def list_sections_of(visitor: Caller) -> Iterator[tuple[Section, str]]:
    """The sections that the visitor may open, each with the URL of its overview or first accessible page."""
    for section in list_sections():
        if pages := list_pages(section, visitor):
            yield section, section.url or pages[0].url


def list_subpages(group: Group | None, visitor: Caller) -> list[Page]:
    return list_pages(group, visitor) if group and len(group.pages) > 1 else []


def list_pages(place: Section | Group, visitor: Caller) -> list[Page]:
    return [page for page in place.pages if not page.needs or visitor.can_anywhere(page.needs)]


def find_place(path: str) -> tuple[Section | None, Group | None, Page | None]:
    """The section, the group and the page that the path belongs to: those of the longest URL it starts with."""
    best: tuple[int, Section | None, Group | None, Page | None] = (0, None, None, None)
    for section in list_sections():
        if path == section.url or any(pattern.match(path) for pattern in section.patterns):
            return section, None, None
        for group in section.groups:
            places = [(page.url, page) for page in group.pages] + [(url, None) for url in group.more_prefixes]
            for url, page in places:
                if len(url) >= best[0] and (path.startswith(url) if url != "/" else path == url):
                    best = (len(url), section, group, page)
    return best[1:]


def get_visitor(request: HttpRequest) -> Caller | None:
    inner = getattr(request, "_request", request)  # in the API browser, this is a DRF request
    user = getattr(inner, "user", None)
    if user is None or isinstance(user, Caller):
        return user
    return get_caller(inner) if user.is_authenticated and user.is_active else None
