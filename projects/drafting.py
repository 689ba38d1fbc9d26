"""Pages whose forms can preview the effect of saving. Each registers with its route."""

from collections.abc import Sequence
from typing import Literal

from django.http import HttpRequest
from django.urls import Resolver404, URLPattern, path, resolve

from flagadmin.core.errors import AppError, NotFound, ValidationError
from groups.console import Caller, ConsolePage
from projects.drafts import FlagEdit, NewFlagEdit


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
