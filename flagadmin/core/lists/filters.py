"""The parameters of the API's lists. Reports all invalid ones at once; ignores empty ones.

A list has one `ListFilter`. Its filters narrow the rows, both in the API and on the corresponding console page. Its
options, the fields of `Meta.form`, sort and page them. The OpenAPI document describes both.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import django_filters
from django import forms
from django.db.models import QuerySet
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from flagadmin.core.errors import Problem, check_problems
from flagadmin.core.wording import choices

MAX_LENGTH = 1000
MAX_OFFSET = 2**31 - 1  # beyond the end of any list


class Option:
    """A field of a list's options. If the parameter is missing, its value is ``initial``.

    An invalid value counts as missing, because clients send values meant for other servers, unless it ``is_strict``.
    """

    initial: Any
    valid_values: Any = ""  # for the error of a strict field

    def __init__(self, *, is_strict: bool = False, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)  # type: ignore[call-arg]
        self.is_strict = is_strict

    def clean(self, value: Any) -> Any:
        try:
            cleaned = super().clean(value)  # type: ignore[misc]
        except forms.ValidationError:
            if self.is_strict:
                raise forms.ValidationError(f"must be {self.valid_values}, not {value!r}") from None
            return self.initial
        return self.initial if cleaned in (None, "") else cleaned


class WholeNumber(Option, forms.IntegerField):
    def to_python(self, value: Any) -> int | None:
        """Refuses spellings that only Python reads as numbers: `1_0`, and digits of other scripts."""
        if isinstance(value, str) and ("_" in value or not value.isascii()):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)

    @property
    def valid_values(self) -> str:
        limits = f", {self.min_value} or greater"
        if self.max_value is not None:
            limits = f" from {self.min_value} to {self.max_value}"
        return f"a whole number{limits}"

    @property
    def openapi_type(self) -> Any:
        limits = {"minimum": self.min_value, "maximum": self.max_value}
        bounds = {name: limit for name, limit in limits.items() if limit is not None}
        return {"type": "integer", **bounds} if self.is_strict else int


class Direction(Option, forms.ChoiceField):
    valid_values = "one of asc, desc"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=[("asc", "asc"), ("desc", "desc")], initial="asc", **kwargs)


class Text(Option, forms.CharField):
    pass


class ListFilter(django_filters.FilterSet):
    """``Meta.form`` has the list's options, among them ``offset`` and ``limit``."""

    once_only: ClassVar[bool] = False  # whether a parameter that is sent twice is an error

    def filter_queryset(self, rows: QuerySet) -> QuerySet:
        for name, list_filter in self.filters.items():  # the form's other fields are options
            rows = list_filter.filter(rows, self.form.cleaned_data[name])
        return rows

    @classmethod
    def narrow(cls, rows: QuerySet, **values: Any) -> QuerySet:
        """The rows that match these values of filters, which have been validated."""
        for name, value in values.items():
            rows = cls.base_filters[name].filter(rows, value)
        return rows

    def check(self) -> dict[str, Any]:
        """The values of all parameters. Raises ValidationError with all invalid ones."""
        check_problems(self.problems())
        return self.form.cleaned_data

    def problems(self) -> Iterator[Problem]:
        data: QueryDict = self.data
        yield from find_unknown_parameters(data, self.known)
        if self.once_only:
            repeated = [name for name in data if name in self.known and len(data.getlist(name)) > 1]
            yield from (Problem(name, "must be given only once") for name in repeated)
        for name, texts in self.form.errors.items():
            yield from (Problem(name, text) for text in texts)

    @property
    def known(self) -> list[str]:
        """The names that parameters may have."""
        return list(self.form.fields)

    def cut_page(self, rows: QuerySet) -> QuerySet:
        """The rows of the requested page."""
        start = min(self.form.cleaned_data["offset"], MAX_OFFSET)
        return rows[start : start + self.form.cleaned_data["limit"]]

    def total(self, page: Sequence[Any]) -> int:
        """The number of all rows. Counted only if it does not follow from the page."""
        start, limit = self.form.cleaned_data["offset"], self.form.cleaned_data["limit"]
        if len(page) < limit and (page or not start):
            return int(start) + len(page)
        return self.qs.count()

    @classmethod
    def parameters(cls) -> list[OpenApiParameter]:
        """The list's parameters in the OpenAPI document."""
        filters = {name: list_filter.field for name, list_filter in cls.base_filters.items()}
        return [
            _make_parameter(name, field) for name, field in (filters | cls._meta.form.base_fields).items()
        ]


def _make_parameter(name: str, field: Any) -> OpenApiParameter:
    return OpenApiParameter(
        name,
        getattr(field, "openapi_type", str),
        description=str(field.help_text),
        default=field.initial,
        enum=[key for key, _ in getattr(field, "choices", ())] or None,
        many=getattr(field, "many", None),
    )


def find_unknown_parameters(names: Iterable[str], known: Iterable[str]) -> Iterator[Problem]:
    """A problem for each unknown name: ignoring it would return rows that the client meant to exclude."""
    known = list(known)
    for name in names:
        if name not in known:
            yield Problem(name, f"is not a valid parameter. Available: {choices(known)}.")
