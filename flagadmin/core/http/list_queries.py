"""Query parameters of paginated API lists. All errors are reported at once; empty values are ignored."""

from collections.abc import Iterable, Iterator
from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from flagadmin.core.errors import Problem, ValidationError, choices

MAX_COUNT = 1000
MAX_TERMS = 100
FAR = 2**31 - 1  # the maximum offset, beyond the end of any list
FROM_0 = {"type": "integer", "minimum": 0}
FROM_1 = {"type": "integer", "minimum": 1, "maximum": MAX_COUNT}


class IntegerFilter(django_filters.Filter):
    field_class = forms.IntegerField


class KnownChoiceField(django_filters.fields.ChoiceField):
    """A choice field that ignores unknown values."""

    def clean(self, value: Any) -> Any:
        return super().clean(value if self.valid_value(value) else None)


class LenientChoiceFilter(django_filters.ChoiceFilter):
    field_class = KnownChoiceField


class LenientIntegerField(forms.IntegerField):
    """An integer field that ignores invalid values, because clients send odd limits."""

    def clean(self, value: Any) -> int | None:
        try:
            return super().clean(value)
        except forms.ValidationError:
            return None


class LenientIntegerFilter(django_filters.Filter):
    field_class = LenientIntegerField


def sort_keys(*keys: str) -> LenientChoiceFilter:
    """The ``sortBy`` filter.

    Unknown keys sort by the first key: clients send keys of other lists (``createdAt``).
    """
    return LenientChoiceFilter(method="leave", choices=_choices(keys))


def _choices(keys: Iterable[str]) -> list[tuple[str, str]]:
    return [(key, key) for key in keys]


class ListFilter(django_filters.FilterSet):
    """``query``, ``offset``, ``limit``, ``sortBy`` and ``sortOrder``.

    Subclasses define keep_matches and sortBy.
    """

    default_limit = 50

    query = django_filters.CharFilter(method="keep_matches")
    sortOrder = django_filters.ChoiceFilter(method="leave", choices=_choices(("asc", "desc")))
    offset = IntegerFilter(method="leave", min_value=0)
    limit = IntegerFilter(method="leave", min_value=1, max_value=MAX_COUNT)

    def keep_matches(self, rows: QuerySet, name: str, value: str) -> QuerySet:
        raise NotImplementedError

    def leave(self, rows: QuerySet, name: str, value: Any) -> QuerySet:
        return rows

    def check(self) -> None:
        """Raises ValidationError with all invalid parameters."""
        problems = [*self._misnamed(), *self._misread()]
        if problems:
            raise ValidationError.of(problems)

    @property
    def descending(self) -> bool:
        return bool(self.form.cleaned_data["sortOrder"] == "desc")

    @property
    def start(self) -> int:
        return min(self.form.cleaned_data["offset"] or 0, FAR)

    @property
    def length(self) -> int:
        return self.form.cleaned_data["limit"] or self.default_limit

    def page(self, rows: QuerySet) -> list[Any]:
        """The rows of the requested page; an empty list beyond the end."""
        return list(rows[self.start : self.start + self.length])

    def _misnamed(self) -> Iterator[Problem]:
        data: QueryDict = self.data
        yield from unknown_parameters(data, self.filters)
        for name in data:
            if name in self.filters and len(data.getlist(name)) > 1:
                yield Problem(name, "must be given only once")

    def _misread(self) -> Iterator[Problem]:
        for name in self.form.errors:
            yield Problem(name, f"must be {self._expected(name)}, not {self.data[name]!r}")
        if len(terms_of(self.data.get("query", ""))) > MAX_TERMS:
            yield Problem("query", f"Must have at most {MAX_TERMS} terms.")

    def _expected(self, name: str) -> str:
        offered = self.filters[name].extra.get("choices")
        if offered:
            return "one of " + ", ".join(key for key, _ in offered)
        return f"a whole number from 1 to {MAX_COUNT}" if name == "limit" else "a whole number, 0 or greater"


def unknown_parameters(given: Iterable[str], known: Iterable[str]) -> Iterator[Problem]:
    """A problem for each unknown name: the list would otherwise contain rows that were not asked for."""
    known = list(known)
    for name in given:
        if name not in known:
            yield Problem(name, f"is not a valid parameter. Available: {choices(known)}.")


def terms_of(query: str) -> list[str]:
    """The comma-separated search terms, without empty ones."""
    return [term.strip() for term in query.split(",") if term.strip()]


def list_parameters(kind: type[ListFilter], *, query: str, sort_by: str) -> list[OpenApiParameter]:
    """The OpenAPI parameters of a list. ``query`` and ``sort_by`` describe what it searches and sorts by."""
    keys = [key for key, _ in kind.base_filters["sortBy"].extra["choices"]]
    limit = f"Number of applications per page, 1 to {MAX_COUNT}."
    return [
        OpenApiParameter("query", str, description=query),
        OpenApiParameter("offset", FROM_0, description="Number of applications to skip.", default=0),
        OpenApiParameter("limit", FROM_1, description=limit, default=kind.default_limit),
        OpenApiParameter(
            "sortBy",
            str,
            description=f"{sort_by} {', '.join(keys)}; anything else counts as {keys[0]}.",
            default=keys[0],
        ),
        OpenApiParameter(
            "sortOrder", str, enum=["asc", "desc"], description="Sort order for `sortBy`.", default="asc"
        ),
    ]
