"""The kinds of rows that a search finds, and its hits with the matching text marked."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, QuerySet
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from flagadmin.core.db.lookups import find_best_matches
from flagadmin.core.errors import NoAccess, pluralize
from groups.access import Caller
from groups.models import ApiToken, Role, User
from groups.models import Group as UserGroup
from groups.permissions import ROLE_READERS, Permission
from playground.models import SavedContext
from projects.applications.documents import find_readable_applications
from projects.console import application_url, flag_url, project_url
from projects.flags.lists.cells import read_flag_cells
from projects.flags.queries import MAX_RANKED, search_flags
from projects.models import ContextField, Flag, Segment, StrategyType
from projects.projects.queries import count_flags, search_projects
from projects.tokens.access import find_visible_tokens
from releases.models import ReleasePlan
from releases.plans.queries import search_plans
from releases.requests.conflicts import name_request
from releases.requests.queries import search_requests


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. ``place`` is its location; ``theme`` makes it a button that switches to that theme.

    ``state`` is its current state: for a flag, "50 %" in production, and ``is_on`` whether it is on there.
    """

    name: SafeString
    url: str
    place: str = ""
    theme: str = ""
    state: str = ""
    is_on: bool | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The first hits of one kind, and the number of all. ``rank`` is the best hit's."""

    key: str
    label: str
    icon: str
    hits: Sequence[Hit]
    total: int
    rank: int
    is_cut: bool = False  # too many matched to rank them all

    @property
    def has_more(self) -> bool:
        return self.total > len(self.hits)


def mark_words(name: str, words: Sequence[str]) -> SafeString:
    """The name with every occurrence of a word in ``<mark>``, ignoring case."""
    longest_first = sorted(words, key=len, reverse=True)
    parts = (
        re.split(f"({'|'.join(map(re.escape, longest_first))})", name, flags=re.IGNORECASE)
        if words
        else [name]
    )
    return format_html_join("", "{}{}{}", (_wrap(part, odd % 2) for odd, part in enumerate(parts)))


def _wrap(part: str, is_match: int) -> tuple[str, str, str]:
    return (SafeString("<mark>"), part, SafeString("</mark>")) if is_match else ("", part, "")


Words = Sequence[str]
Search = Callable[[Caller, Words], QuerySet[Any]]
State = tuple[str, bool | None]
NO_STATE: State = ("", None)
MAX_HITS = 5  # hits of each kind, unless only one kind is shown


@dataclass(frozen=True, slots=True)
class Kind:
    """``describe(row, caller)`` returns the name, the URL, and a description or location.

    ``states(rows)`` returns each row's current state and whether it is on, in a fixed number of queries.
    """

    key: str
    label: str
    icon: str
    search: Search
    describe: Callable[[Any, Caller], tuple[str, str, Iterable[str | None]]]
    most: int | None = None  # number of rows that its search ranks
    states: Callable[[Sequence[Any]], Sequence[State]] | None = None

    def group(self, caller: Caller, words: Words) -> Group | None:
        """The best hits and their number, in one query; None if there are none."""
        rows = list(self.search(caller, words)[:MAX_HITS])
        return self.group_of(rows, rows[0].match_count, caller, words) if rows else None

    def group_of(self, rows: Iterable[Any], total: int, caller: Caller, words: Words) -> Group:
        rows = list(rows)
        states = self.states(rows) if self.states else [NO_STATE] * len(rows)
        hits = [self._make_hit(row, caller, words, *state) for row, state in zip(rows, states, strict=True)]
        is_cut = self.most is not None and total >= self.most
        rank = getattr(rows[0], "rank", 0) if rows else 0
        return Group(self.key, self.label, self.icon, hits, total, rank, is_cut)

    def _make_hit(self, row: Any, caller: Caller, words: Words, state: str, is_on: bool | None) -> Hit:
        name, url, details = self.describe(row, caller)
        joined = " · ".join(part for part in details if part)
        return Hit(mark_words(name, words), url, joined, state=state, is_on=is_on)


def _search(
    find_rows: Callable[[Caller], QuerySet[Any]],
    names: Sequence[str] = ("name",),
    also: Sequence[str] = ("description",),
    first: Sequence[str] = (),
) -> Search:
    """A search in the rows that the caller may read. `find_best_matches` documents the columns."""
    return lambda caller, words: find_best_matches(find_rows(caller), words, *names, also=also, first=first)


def _search_accounts(accounts: Callable[[], QuerySet[User]]) -> Search:
    """A search that only admins may use, like the lists of accounts."""

    def find(caller: Caller) -> QuerySet[User]:
        return accounts() if caller.is_admin else User.objects.none()

    return _search(find, ("username", "name"), also=["email"], first=["-is_active"])


def _find_groups(caller: Caller) -> QuerySet[UserGroup]:
    """Finds groups with their number of members as ``size``."""
    groups = UserGroup.objects.annotate(size=Count("memberships"))
    return groups if any(map(caller.can, ROLE_READERS)) else groups.none()


def _find_roles(caller: Caller) -> QuerySet[Role]:
    return Role.objects.all() if any(map(caller.can, ROLE_READERS)) else Role.objects.none()


def _find_tokens(caller: Caller) -> QuerySet[ApiToken]:
    try:
        return find_visible_tokens(caller)
    except NoAccess:
        return ApiToken.objects.none()


_search_context_fields = _search(ContextField.objects.readable_by)
_search_saved_contexts = _search(SavedContext.objects.readable_by, also=["note"])
_search_people = _search_accounts(User.objects.people)
_search_service_accounts = _search_accounts(User.objects.service_accounts)
_search_tokens = _search(_find_tokens, also=(), first=["-created_at"])  # never by their secret
_search_strategy_types = _search(lambda _: StrategyType.objects.all(), ("name", "title"))


def _describe_flag(flag: Any, _: Caller) -> tuple[str, str, list[str | None]]:
    state = "archived" if flag.is_archived else "stale" if flag.stale else ""
    return flag.name, flag_url(flag.project_id, flag.name), [flag.project.name, state]


def _read_flag_states(flags: Sequence[Flag]) -> list[State]:
    """Reads the state in production: the percentage, or the smallest one if there are several such environments."""
    states = []
    for row in read_flag_cells(flags):
        production = [cell for cell in row.cells if cell.production]
        if row.flag.is_archived or not production:
            states.append(NO_STATE)
            continue
        least = min(production, key=lambda cell: (cell.enabled, cell.share if cell.share is not None else 50))
        states.append((least.text, least.enabled))
    return states


def _read_project_states(projects: Sequence[Any]) -> list[State]:
    counts = count_flags([project.pk for project in projects])
    return [(pluralize(counts[project.pk]["featureCount"], "flag"), None) for project in projects]


def _describe_project(project: Any, _: Caller) -> tuple[str, str, list[str | None]]:
    other_id = project.pk if project.pk.casefold() != project.name.casefold() else ""
    return project.name, project_url(project.pk), [other_id, "archived" if project.archived_at else ""]


def _describe_segment(segment: Any, _: Caller) -> tuple[str, str, list[str | None]]:
    return segment.name, reverse("segment", args=[segment.pk]), [segment.project_id]


def _describe_request(request: Any, _: Caller) -> tuple[str, str, list[str | None]]:
    url = reverse("change-request", args=[request.project_id, request.pk])
    where = [request.project_id, request.environment_id, request.state.lower()]
    return name_request(request), url, [f"request {request.pk}", *where]


def _plan(plan: ReleasePlan, _: Caller) -> tuple[str, str, list[str | None]]:
    url = reverse("plan", args=[plan.flag.project_id, plan.flag.name, plan.pk])
    state = "" if plan.state == ReleasePlan.State.RUNNING else plan.state
    return f"{plan.flag.name} {plan.name}", url, [plan.flag.project_id, plan.environment_id, state]


def _plan_states(plans: Sequence[ReleasePlan]) -> list[State]:
    return [(plan.active.name, None) if plan.active else NO_STATE for plan in plans]


def _describe_context_field(field: Any, _: Caller) -> tuple[str, str, list[str | None]]:
    return field.name, reverse("context-field", args=[field.name]), [field.project_id]


def _describe_saved_context(saved_context: Any, _: Caller) -> tuple[str, str, list[str | None]]:
    return saved_context.name, reverse("saved-context", args=[saved_context.pk]), [saved_context.project_id]


def _describe_account(user: Any, _: Caller) -> tuple[str, str, list[str | None]]:
    page = "service-account" if user.is_service else "person"
    other_name = user.username if user.username != user.display_name else ""
    state = "" if user.is_active else "disabled"
    return user.display_name, reverse(page, args=[user.pk]), [other_name, user.email, state]


def _group(group: Any, _: Caller) -> tuple[str, str, list[str | None]]:
    return group.name, reverse("group", args=[group.pk]), [pluralize(group.size, "member")]


def _describe_role(role: Any, _: Caller) -> tuple[str, str, list[str | None]]:
    return role.name, reverse("role", args=[role.pk]), [role.get_type_display()]


def _describe_application(application: Any, _: Caller) -> tuple[str, str, list[str | None]]:
    return application.name, application_url(application.name), []


def _describe_token(token: Any, _: Caller) -> tuple[str, str, list[str | None]]:
    url = f"{reverse('tokens')}?{urlencode({'q': token.name})}"
    return token.name, url, [token.kind, token.environment_id or "all environments"]


def _describe_strategy_type(row: Any, caller: Caller) -> tuple[str, str, list[str | None]]:
    may_edit = caller.can(Permission.UPDATE_STRATEGY) and not row.built_in
    listed = f"{reverse('strategy-types')}?{urlencode({'q': row.name})}"
    url = reverse("strategy-type", args=[row.name]) if may_edit else listed
    state = "deprecated" if row.deprecated else "built in" if row.built_in else ""
    return row.title or row.name, url, [row.name if row.title else "", state]


KINDS = (
    Kind("flags", "Flags", "flag", search_flags, _describe_flag, MAX_RANKED, _read_flag_states),
    Kind("projects", "Projects", "folder", search_projects, _describe_project, states=_read_project_states),
    Kind("segments", "Segments", "target", _search(Segment.objects.readable_by), _describe_segment),
    Kind("requests", "Change requests", "clock", search_requests, _describe_request),
    Kind("plans", "Release plans", "clock", search_plans, _plan, states=_plan_states),
    Kind("context-fields", "Context fields", "tag", _search_context_fields, _describe_context_field),
    Kind("saved-contexts", "Saved contexts", "user", _search_saved_contexts, _describe_saved_context),
    Kind("people", "People", "user", _search_people, _describe_account),
    Kind("service-accounts", "Service accounts", "user", _search_service_accounts, _describe_account),
    Kind("groups", "Groups", "people", _search(_find_groups), _group),
    Kind("roles", "Roles", "check", _search(_find_roles), _describe_role),
    Kind("applications", "Applications", "code", _search(find_readable_applications), _describe_application),
    Kind("tokens", "API tokens", "key", _search_tokens, _describe_token),
    Kind("strategy-types", "Strategy types", "branch", _search_strategy_types, _describe_strategy_type),
)
