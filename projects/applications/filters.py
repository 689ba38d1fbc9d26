"""Filters and sort orders of the applications lists."""

from collections.abc import Callable, Iterable

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from flagadmin.core.lists.filters import MAX_LENGTH, Direction, ListFilter, Text, WholeNumber
from projects.applications import queries

MAX_TERMS = 100


def split_terms(query: str) -> list[str]:
    """The comma-separated search terms, without empty ones."""
    return [term.strip() for term in query.split(",") if term.strip()]


def check_terms(query: str) -> None:
    """Raises a form ValidationError for too many terms."""
    if len(split_terms(query)) > MAX_TERMS:
        raise forms.ValidationError(f"Must have at most {MAX_TERMS} terms.")


def search_in_project(lines: QuerySet, name: str, query: str) -> QuerySet:
    return queries.search(lines, split_terms(query))


def search_by_name(applications: QuerySet, name: str, query: str) -> QuerySet:
    matches = Q()
    for term in split_terms(query):
        matches |= Q(folded_name__contains=term.casefold())
    return applications.filter(matches)


def query_filter(search: Callable[..., QuerySet], searched: str) -> django_filters.CharFilter:
    help_text = f"Search in {searched}, ignoring case. A comma means or."
    return django_filters.CharFilter(method=search, validators=[check_terms], help_text=help_text)


def make_length_field(default: int) -> WholeNumber:
    help_text = f"Number of applications per page, 1 to {MAX_LENGTH}."
    return WholeNumber(
        min_value=1, max_value=MAX_LENGTH, initial=default, is_strict=True, help_text=help_text
    )


def sort_key(sorts: str, keys: Iterable[str]) -> Text:
    return Text(initial="appName", help_text=f"{sorts} {', '.join(keys)}; anything else counts as appName.")


class ProjectApplicationOptions(forms.Form):
    sortOrder = Direction(is_strict=True, help_text="Sort order for `sortBy`.")
    offset = WholeNumber(min_value=0, initial=0, is_strict=True, help_text="Number of applications to skip.")
    limit = make_length_field(50)
    sortBy = sort_key("Field to sort by; lists are sorted by their length, ties by name:", queries.SORT_KEYS)


class ApplicationOptions(ProjectApplicationOptions):
    limit = make_length_field(1000)
    sortBy = sort_key("Field to sort by:", ["appName"])


class ProjectApplicationFilter(ListFilter):
    once_only = True
    query = query_filter(search_in_project, "application name, SDK and environment")

    class Meta:
        form = ProjectApplicationOptions


class ApplicationFilter(ListFilter):
    once_only = True
    query = query_filter(search_by_name, "application names")

    class Meta:
        form = ApplicationOptions
