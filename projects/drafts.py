"""Unsaved edits: the values that a form would store, to show their effect.

Pages whose forms can preview the effect of saving. Each registers with its route.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from django.http import HttpRequest
from django.urls import Resolver404, URLPattern, path, resolve

from flagadmin.core.change_checks import KnownChange
from flagadmin.core.errors import AppError, NotFound, ValidationError
from groups.access import Caller
from groups.console import ConsolePage
from playground.engine.definitions import ConstraintDefinition, FlagDefinition
from projects.access import find_project_environment
from projects.definitions import Definitions
from projects.models import Environment, Flag, FlagEnvironment
from projects.strategies.planned import PlannedFlag
from projects.strategies.rules import StrategyPlanner
from projects.strategies.write import read_planned


@dataclass(frozen=True, slots=True)
class Draft:
    """An unsaved edit. `changes` replace members of the flag's document, in stored form.

    `segments` are constraints by the id of their segment.
    """

    flag: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    archived: bool = False
    segments: Mapping[int, list[ConstraintDefinition]] = field(default_factory=dict)

    def used_segments(self) -> Iterator[int]:
        """The segments that it changes or its strategies use."""
        yield from self.segments
        for strategy in self.changes.get("strategies", ()):
            yield from strategy["segments"]

    def apply_to(self, stored: Definitions) -> Definitions:
        """Stored definitions with the draft applied."""
        flags = {(self.flag, ""): None if self.archived else self.changes}
        segments = {key: {"constraints": constraints} for key, constraints in self.segments.items()}
        return stored.after(KnownChange(flags, segments), "")


class FlagEdit(NamedTuple):
    """A draft, and a flag whose result it may change in an environment."""

    project: str
    flag: str
    environment: str
    draft: Draft


class NewFlagEdit(NamedTuple):
    """A flag that does not exist, before and after an edit."""

    project: str
    environment: str
    before: FlagDefinition
    after: FlagDefinition


def draft_plan(
    flags: Sequence[Flag], environment: str, plan: Callable[[PlannedFlag], object], *, caller: Caller
) -> Iterator[FlagEdit]:
    """The edit of each of the project's flags by the changes that ``plan`` plans. Raises the errors of making them."""
    link = find_project_environment(flags[0].project_id, environment)
    for planned in read_planned(flags, link, StrategyPlanner(link.project_id), caller=caller):
        plan(planned)
        planned.check_room()
        draft = Draft(planned.flag.name, planned.state)
        yield FlagEdit(link.project_id, planned.flag.name, environment, draft)


def find_enabled_places(flags: Sequence[Flag]) -> list[tuple[str, str]]:
    """(flag, environment) where flags of one project are on, production first."""
    rows = FlagEnvironment.objects.filter(flag__in=flags, enabled=True)
    rows = rows.filter(environment__projects=flags[0].project_id)
    names = Environment.objects.names()
    places = rows.values_list("flag__name", "environment_id")
    return sorted(places, key=lambda place: (names.index(place[1]), place[0]))


class DraftingPage(ConsolePage):
    """A page with a form. ``unchanged`` explains that saving it would change nothing.

    ``shown_by`` is the method that shows the form again with the same values.
    """

    unchanged = ""
    shown_by: Literal["get", "post"]

    def get_edits(self) -> Sequence[FlagEdit | NewFlagEdit]:
        """The changes of saving the form. Raises the errors of saving."""
        raise NotImplementedError


_pages: dict[str, type[DraftingPage]] = {}  # by the names of their routes


def drafting_path(route: str, page: type[DraftingPage], *, name: str) -> URLPattern:
    """A route, like ``django.urls.path``, for a form with a preview."""
    _pages[name] = page
    return path(route, page.as_view(), name=name)


def describe_refusal(error: AppError) -> list[str]:
    """Why a draft cannot be saved: the problem of each value, or the broken rule."""
    problems = error.details if isinstance(error, ValidationError) else ()
    return [problem.message for problem in problems] or [error.message]


def open_form(address: str, request: HttpRequest, caller: Caller) -> DraftingPage:
    """The page at this path, as if requested directly. Raises NotFound if its form has no preview."""
    try:
        match = resolve(address)
        page = _pages[match.url_name or ""]()
    except (Resolver404, KeyError):
        raise NotFound("Form not found.") from None
    page.setup(request, **match.kwargs)
    page.caller = caller
    return page
