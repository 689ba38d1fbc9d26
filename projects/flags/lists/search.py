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

from flagadmin.core.errors import choices
from flagadmin.core.http.fields import is_id
from flagadmin.core.lists.filters import (
    MAX_LENGTH,
    MAX_OFFSET,
    Direction,
    ListFilter,
    Option,
    Text,
    WholeNumber,
)
from projects.flags.lists.conditions import (
    ARCHIVED,
    DATE,
    INCLUDE,
    IS,
    LIFETIMES,
    NEGATIVE,
    ROLLOUTS,
    SORT_KEYS,
    Condition,
    created,
    in_lifetime,
    in_stage,
    in_status,
    includes,
    is_day,
    is_one_of,
    last_seen,
    names_owner,
    never_evaluated,
    owned_by,
    parts,
    rolled_out,
    sort_key,
    tagged,
    text_query,
    with_segment,
)
from projects.models import FavoriteFlag, Flag, LifecycleStage

MAX_VALUES = 50
DEFAULT_LIMIT = 50


def check_number_of_values(text: str) -> None:
    """Limits the number of values. Raises a form ValidationError."""
    if text.count(",") >= MAX_VALUES:
        raise forms.ValidationError(f"must have at most {MAX_VALUES} values")


class OperatorFilter(django_filters.CharFilter):
    """A filter written as an operator and values.

    ``condition`` builds the query from the operator, one of ``operators``, and the values, each of which must pass
    ``reads``. ``wants`` describes a valid value in error messages; ``explained`` is added to the help.
    """

    def __init__(
        self,
        operators: Sequence[str],
        condition: Condition,
        reads: Callable[[str], object] = bool,
        wants: str = "a value",
        explained: str = "",
    ) -> None:
        help_text = f"{' or '.join(operators)}, a colon, and values separated by commas. {explained}".rstrip()
        super().__init__(strip=False, validators=[check_number_of_values, self.check], help_text=help_text)
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
    many = True

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


class Truth(Option, forms.Field):
    openapi_type = bool

    def to_python(self, text: str | None) -> bool:
        return text in BooleanField.TRUE_VALUES


class SearchOptions(forms.Form):
    """Invalid values count as the default, because clients send values of their own."""

    sortBy = Text(
        initial="createdAt",
        help_text=f"{', '.join(SORT_KEYS)}, or `environment:` and the name of one, where flags that are off "
        "come before those that are on. Anything else counts as createdAt.",
    )
    sortOrder = Direction()
    favoritesFirst = Truth(help_text="List the caller's favorites first.")
    offset = WholeNumber(min_value=0, max_value=MAX_OFFSET, initial=0)
    limit = WholeNumber(
        min_value=1,
        max_value=MAX_LENGTH,
        initial=DEFAULT_LIMIT,
        help_text=f"1 to {MAX_LENGTH}; anything else counts as {DEFAULT_LIMIT}.",
    )


class FlagFilter(ListFilter):
    """Filters combined with AND; the terms of ``query`` and the values of ``status`` are combined with OR."""

    query = django_filters.CharFilter(
        method=lambda flags, name, text: flags.filter(text_query(text)),
        validators=[check_number_of_values],
        help_text="Terms, separated by commas: part of a name, a description or a tag (type:value).",
    )
    status = StatusFilter(help_text="environment:enabled or environment:disabled; flags with one of these.")
    project = OperatorFilter(IS, is_one_of(lambda value: Q(project=value)))
    type = OperatorFilter(IS, is_one_of(lambda value: Q(type=value)))
    state = OperatorFilter(
        IS,
        is_one_of(in_lifetime),
        set(LIFETIMES).__contains__,
        choices(LIFETIMES),
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
        is_id,
        "an id",
    )
    owner = OperatorFilter(IS, is_one_of(owned_by), names_owner, "user:ID, group:ID or none")
    createdAt = OperatorFilter(DATE, created, is_day, "a day like 2026-11-21")
    lastSeenAt = OperatorFilter(DATE, last_seen, is_day, "a day like 2026-11-21")
    evaluated = OperatorFilter(
        ("IS",), is_one_of(lambda value: never_evaluated()), {"never"}.__contains__, "never"
    )
    rollout = OperatorFilter(
        IS,
        is_one_of(rolled_out),
        set(ROLLOUTS).__contains__,
        choices(ROLLOUTS),
        explained="off: off everywhere. full: on for everyone in production, unchanged there for 30 days. differs: "
        "on in some environments only, or with other strategies or variants there. rolling: on in a production "
        "environment with a percentage below 100.",
    )
    lifecycle = OperatorFilter(
        IS,
        is_one_of(in_stage),
        set(LifecycleStage.Stage.values).__contains__,
        choices(LifecycleStage.Stage.values),
    )
    tag = OperatorFilter(INCLUDE, includes(tagged), lambda text: ":" in text, "type:value")
    segment = OperatorFilter(INCLUDE, includes(with_segment))

    class Meta:
        form = SearchOptions

    @property
    def known(self) -> list[str]:
        return [*super().known, "status[]"]

    def filter_queryset(self, flags: QuerySet[Flag]) -> QuerySet[Flag]:
        matching = super().filter_queryset(flags)
        return matching if self._asks_for_archived() else matching.filter(archived_at=None)

    def page(self, user_id: int | None) -> tuple[list[Flag], int]:
        """One page of the matching flags, and the total number of matches.

        The user's favorites come first if requested. Two queries. Raises ValidationError.
        """
        options, flags = self.check(), self.qs
        total = flags.count()
        if favorites := options["favoritesFirst"] and user_id is not None:
            own_favorites = FavoriteFlag.objects.filter(user_id=user_id, flag=OuterRef("pk"))
            flags = flags.annotate(favorite=Exists(own_favorites))
        ordered = flags.order_by(*self._list_order(favorites)).select_related(
            "created_by", "owner_user", "owner_group"
        )
        return list(self.cut_page(ordered)), total

    def _asks_for_archived(self) -> bool:
        """Whether archived flags are requested, by ``archived`` or by the lifecycle stage "archived".

        The archive page of the reference sends only the stage.
        """
        data = self.form.cleaned_data
        operator, stages = parts(data["lifecycle"])
        return bool(data["archived"]) or (operator not in NEGATIVE and ARCHIVED in stages)

    def _list_order(self, favorites: bool) -> Iterator[str | OrderBy]:
        data = self.form.cleaned_data
        if favorites:
            yield "-favorite"
        yield OrderBy(sort_key(data["sortBy"]), descending=data["sortOrder"] == "desc", nulls_last=True)
        yield from ("created_at", "name")
