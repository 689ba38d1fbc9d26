"""Flag search: the filters of ``GET /api/admin/search/features``; console pages reuse some of them.

A filter has the form ``OPERATOR:value`` or ``OPERATOR:value, value``, as sent by clients of the reference.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import django_filters
from django import forms
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import OrderBy
from rest_framework.serializers import BooleanField

from flagadmin.core.errors import Problem, check_problems, choices
from flagadmin.core.http.list_queries import (
    FAR,
    MAX_COUNT,
    LenientChoiceFilter,
    LenientIntegerFilter,
    unknown_parameters,
)
from projects.flags.search_conditions import (
    ARCHIVED,
    DATE,
    INCLUDE,
    IS,
    NEGATIVE,
    Condition,
    created,
    in_stage,
    in_status,
    includes,
    is_day,
    is_one_of,
    last_seen,
    parts,
    sort_key,
    tagged,
    text_query,
    with_segment,
)
from projects.models import FavoriteFlag, Flag, LifecycleStage

MAX_VALUES = 50
DEFAULT_LIMIT = 50
TRUE = sorted(value for value in BooleanField.TRUE_VALUES if isinstance(value, str))


def few_values(text: str) -> None:
    """Limits the number of values. Raises a form ValidationError."""
    if text.count(",") >= MAX_VALUES:
        raise forms.ValidationError(f"must have at most {MAX_VALUES} values")


class OperatorFilter(django_filters.CharFilter):
    """A filter written as an operator and values.

    ``condition`` builds the query from the operator, one of ``operators``, and the values, each of which
    ``reads`` must accept. ``wants`` describes a valid value in error messages.
    """

    def __init__(
        self,
        operators: Sequence[str],
        condition: Condition,
        reads: Callable[[str], object] = bool,
        wants: str = "a value",
    ) -> None:
        super().__init__(strip=False, validators=[few_values, self.check])
        self.operators, self.condition, self.reads, self.wants = operators, condition, reads, wants

    def filter(self, flags: QuerySet[Flag], text: str) -> QuerySet[Flag]:
        return flags.filter(self.condition(*parts(text))) if text else flags

    def check(self, text: str) -> None:
        """Raises a form ValidationError listing every problem."""
        operator, values = parts(text)
        if operator not in self.operators:
            known = choices(self.operators)
            raise forms.ValidationError(f"{operator} is not an operator. Available: {known}")
        if wrong := [f"{value!r} is not {self.wants}" for value in values if not self.reads(value)]:
            raise forms.ValidationError(wrong)


class StatusWidget(forms.Widget):
    def value_from_datadict(self, data: Any, files: object, name: str) -> list[str]:
        return [*data.getlist(name), *data.getlist(f"{name}[]")]


class StatusField(forms.Field):
    """``environment:enabled`` or ``environment:disabled``, repeatable, sent as ``status`` or ``status[]``."""

    widget = StatusWidget

    def validate(self, statuses: list[str]) -> None:
        wrong = [status for status in statuses if status.rpartition(":")[2] not in ("enabled", "disabled")]
        problems = [f"{status} is not environment:enabled or environment:disabled" for status in wrong]
        if len(statuses) > MAX_VALUES:
            problems.insert(0, f"must have at most {MAX_VALUES} values")
        if problems:
            raise forms.ValidationError(problems)


class StatusFilter(django_filters.Filter):
    field_class = StatusField

    def filter(self, flags: QuerySet[Flag], statuses: list[str]) -> QuerySet[Flag]:
        return flags.filter(in_status(statuses))


class FlagFilter(django_filters.FilterSet):
    """Filters combined with AND; the terms of ``query`` and the values of ``status`` are combined with OR.

    ``sortBy`` is one of SORT_KEYS, or for example "environment:production" to list flags that are off there
    first. Any other value means createdAt, because clients send sort keys of their own.
    """

    query = django_filters.CharFilter(method="matching", validators=[few_values])
    status = StatusFilter()
    project = OperatorFilter(IS, is_one_of(lambda value: Q(project=value)))
    type = OperatorFilter(IS, is_one_of(lambda value: Q(type=value)))
    state = OperatorFilter(
        IS,
        is_one_of(lambda value: Q(stale=value == "stale")),
        {"active", "stale"}.__contains__,
        "active or stale",
    )
    archived = OperatorFilter(
        ("IS",),
        is_one_of(lambda value: Q(archived_at__isnull=value == "false")),
        {"true", "false"}.__contains__,
        "true or false",
    )
    createdBy = OperatorFilter(
        IS,
        is_one_of(lambda value: Q(created_by=int(value))),
        lambda text: text.isdecimal() and len(text) < 19,
        "an id",
    )
    createdAt = OperatorFilter(DATE, created, is_day, "a day like 2026-11-21")
    lastSeenAt = OperatorFilter(DATE, last_seen, is_day, "a day like 2026-11-21")
    lifecycle = OperatorFilter(
        IS,
        is_one_of(in_stage),
        set(LifecycleStage.Stage.values).__contains__,
        choices(LifecycleStage.Stage.values),
    )
    tag = OperatorFilter(INCLUDE, includes(tagged), lambda text: ":" in text, "type:value")
    segment = OperatorFilter(INCLUDE, includes(with_segment))
    sortBy = django_filters.CharFilter(method="leave")
    sortOrder = LenientChoiceFilter(method="leave", choices=[("asc", "asc"), ("desc", "desc")])
    favoritesFirst = LenientChoiceFilter(method="leave", choices=[(value, value) for value in TRUE])
    offset = LenientIntegerFilter(method="leave", min_value=0, max_value=FAR)
    limit = LenientIntegerFilter(method="leave", min_value=1, max_value=MAX_COUNT)

    def matching(self, flags: QuerySet[Flag], name: str, text: str) -> QuerySet[Flag]:
        return flags.filter(text_query(text))

    def leave(self, flags: QuerySet[Flag], name: str, value: object) -> QuerySet[Flag]:
        return flags

    def filter_queryset(self, flags: QuerySet[Flag]) -> QuerySet[Flag]:
        found = super().filter_queryset(flags)
        return found if self._asks_for_archived() else found.filter(archived_at=None)

    def page(self, user_id: int | None) -> tuple[list[Flag], int]:
        """One page of the matching flags, and the total number of matches.

        The user's favorites come first if requested. Two queries. Raises ValidationError.
        """
        check_problems(
            [
                *unknown_parameters(self.data, [*self.filters, "status[]"]),
                *(Problem(name, text) for name, texts in self.form.errors.items() for text in texts),
            ]
        )
        data, found = self.form.cleaned_data, self.qs
        total = found.count()
        if favorites := bool(data["favoritesFirst"]) and user_id is not None:
            mine = FavoriteFlag.objects.filter(user_id=user_id, flag=OuterRef("pk"))
            found = found.annotate(favorite=Exists(mine))
        start, length = data["offset"] or 0, data["limit"] or DEFAULT_LIMIT
        page = found.order_by(*self._order(favorites))[start : start + length]
        return list(page.select_related("created_by")), total

    def _asks_for_archived(self) -> bool:
        """Whether archived flags are requested, by ``archived`` or by the lifecycle stage "archived".

        The archive page of the reference sends only the stage.
        """
        data = self.form.cleaned_data
        operator, stages = parts(data["lifecycle"])
        return bool(data["archived"]) or (operator not in NEGATIVE and ARCHIVED in stages)

    def _order(self, favorites: bool) -> Iterator[str | OrderBy]:
        data = self.form.cleaned_data
        if favorites:
            yield "-favorite"
        yield OrderBy(sort_key(data["sortBy"]), descending=data["sortOrder"] == "desc", nulls_last=True)
        yield from ("created_at", "name")
