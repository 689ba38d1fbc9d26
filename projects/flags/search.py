"""Searching flags: the filters of ``GET /api/admin/search/features``.

A filter is written ``OPERATOR:value`` or ``OPERATOR:value, value``, as the reference's clients do.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_

from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.expressions import Expression, OrderBy
from django.db.models.functions import Coalesce, Concat, NullIf
from django.utils.dateparse import parse_date

from flagadmin.errors import Problem, check_problems, choices
from projects.models import (
    FavouriteFlag,
    Flag,
    FlagEnvironment,
    FlagLastSeen,
    FlagTag,
    LifecycleStage,
    StrategySegment,
)

MOST_VALUES = 50
SortKey = Expression | F | Subquery
SORT_KEYS: dict[str, SortKey] = {
    "name": F("name"),
    "type": F("type"),
    "stale": F("stale"),
    "createdAt": F("created_at"),
    "archivedAt": F("archived_at"),
    "lastSeenAt": Subquery(
        FlagLastSeen.objects.filter(flag=OuterRef("pk")).order_by("-seen_at").values("seen_at")[:1]
    ),
    "project": F("project_id"),
    "description": F("description"),
    "createdBy": Coalesce(NullIf("created_by__name", Value("")), "created_by__username"),
}
BY_ENVIRONMENT = "environment:"
ARCHIVED = LifecycleStage.Stage.ARCHIVED.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """``filters`` by parameter name and ``status`` ("environment:enabled") as sent; terms of ``query`` are or-ed.

    ``sort_by``: one of SORT_KEYS, or "environment:production" for off before on there; anything else counts as
    createdAt, because clients send keys of their own. ``favourites_of``: id of the user whose favourites come first.
    """

    query: str = ""
    filters: Mapping[str, str] = field(default_factory=dict)
    status: Sequence[str] = ()
    sort_by: str = "createdAt"
    descending: bool = False
    favourites_of: int | None = None
    offset: int = 0
    limit: int = 50


def search_flags(flags: QuerySet[Flag], search: Search) -> tuple[list[Flag], int]:
    """The page of these flags that match, and how many match in all. Two queries. Raises ValidationError."""
    check_problems(_problems(search))
    found = flags.filter(text_query(search.query), _status(search.status))
    if not _asks_for_archived(search.filters):
        found = found.filter(archived_at=None)
    for name, text in search.filters.items():
        found = found.filter(FILTERS[name].condition(*_parts(text)))
    total = found.count()
    if search.favourites_of is not None:
        mine = FavouriteFlag.objects.filter(user_id=search.favourites_of, flag=OuterRef("pk"))
        found = found.annotate(favourite=Exists(mine))
    page = found.order_by(*_order(search))[search.offset : search.offset + search.limit]
    return list(page.select_related("created_by")), total


def _asks_for_archived(filters: Mapping[str, str]) -> bool:
    """The filter ``archived`` decides, or the stage of that name: the reference's archive asks for the stage alone."""
    operator, stages = _parts(filters.get("lifecycle", ""))
    return "archived" in filters or (operator not in _NEGATIVE and ARCHIVED in stages)


def _order(search: Search) -> Iterator[str | OrderBy]:
    if search.favourites_of is not None:
        yield "-favourite"
    key = _sort_key(search.sort_by)
    yield OrderBy(key, descending=search.descending, nulls_last=True)
    yield from ("created_at", "name")


def _sort_key(name: str) -> SortKey:
    if name.startswith(BY_ENVIRONMENT):
        place = FlagEnvironment.objects.filter(environment=name.removeprefix(BY_ENVIRONMENT), enabled=True)
        return Exists(place.filter(flag=OuterRef("pk")))
    return SORT_KEYS.get(name, SORT_KEYS["createdAt"])


def text_query(text: str) -> Q:
    """Name, description or a tag (``type:value``) contains one of the terms."""
    terms = [term.strip() for term in text.split(",") if term.strip()]
    tags = FlagTag.objects.annotate(whole=Concat("tag_type_id", Value(":"), "value"))
    matches = (
        Q(name__icontains=term)
        | Q(description__icontains=term)
        | Q(pk__in=tags.filter(whole__icontains=term).values("flag"))
        for term in terms
    )
    return reduce(or_, matches) if terms else Q()


def _status(statuses: Sequence[str]) -> Q:
    conditions = []
    for status in statuses:
        environment, _, state = status.rpartition(":")
        rows = FlagEnvironment.objects.filter(environment_id=environment, enabled=True).values("flag")
        conditions.append(Q(pk__in=rows) if state == "enabled" else ~Q(pk__in=rows))
    return reduce(or_, conditions) if conditions else Q()


# Filters --------------------------------------------------------------------------------------------------

Condition = Callable[[str, list[str]], Q]
IS = ("IS", "IS_NOT", "IS_ANY_OF", "IS_NONE_OF")
DATE = ("IS_ON_OR_AFTER", "IS_BEFORE")
INCLUDE = (
    "INCLUDE",
    "DO_NOT_INCLUDE",
    "INCLUDE_ALL_OF",
    "INCLUDE_ANY_OF",
    "EXCLUDE_IF_ANY_OF",
    "EXCLUDE_ALL",
)
_NEGATIVE = {"IS_NOT", "IS_NONE_OF", "DO_NOT_INCLUDE", "EXCLUDE_IF_ANY_OF", "EXCLUDE_ALL"}
_ALL = {"INCLUDE_ALL_OF", "EXCLUDE_ALL"}


@dataclass(frozen=True, slots=True)
class Filter:
    """Which operators a filter takes, what it selects, and which values it reads."""

    operators: tuple[str, ...]
    condition: Condition
    reads: Callable[[str], object] = bool
    wants: str = "a value"


def _parts(text: str) -> tuple[str, list[str]]:
    operator, _, rest = text.partition(":")
    return operator, [value.strip() for value in rest.split(",")]


def _is(one: Callable[[str], Q]) -> Condition:
    """One of the values, or with a negative operator none of them."""
    return lambda operator, values: _signed(operator, reduce(or_, map(one, values)))


def _includes(one: Callable[[str], Q]) -> Condition:
    return lambda operator, values: _signed(
        operator, reduce(and_ if operator in _ALL else or_, map(one, values))
    )


def _signed(operator: str, condition: Q) -> Q:
    return ~condition if operator in _NEGATIVE else condition


def _created(operator: str, values: list[str]) -> Q:
    day = parse_date(values[0])
    return Q(created_at__date__lt=day) if operator == "IS_BEFORE" else Q(created_at__date__gte=day)


def _seen(operator: str, values: list[str]) -> Q:
    """Last asked for before that day, or since. Flags nobody asked for were neither."""
    seen = FlagLastSeen.objects.order_by().values("flag").annotate(last=Max("seen_at"))
    day = parse_date(values[0])
    when = Q(last__date__lt=day) if operator == "IS_BEFORE" else Q(last__date__gte=day)
    return Q(pk__in=seen.filter(when).values("flag"))


def _tagged(text: str) -> Q:
    kind, _, value = text.partition(":")
    return Q(pk__in=FlagTag.objects.filter(tag_type=kind, value=value).values("flag"))


def _with_segment(name: str) -> Q:
    return Q(pk__in=StrategySegment.objects.filter(segment__name=name).values("strategy__flag"))


def _in_stage(stage: str) -> Q:
    """It has entered the stage and none after it; whether it is archived is the flag's own to say."""
    if stage == ARCHIVED:
        return Q(archived_at__isnull=False)
    order = LifecycleStage.Stage.values
    later = order[order.index(stage) + 1 :]
    entered = LifecycleStage.objects.filter(stage=stage).values("flag")
    return Q(pk__in=entered) & ~Q(pk__in=LifecycleStage.objects.filter(stage__in=later).values("flag"))


def _is_day(text: str) -> bool:
    try:
        return parse_date(text) is not None
    except ValueError:
        return False


FILTERS: dict[str, Filter] = {
    "project": Filter(IS, _is(lambda value: Q(project=value))),
    "type": Filter(IS, _is(lambda value: Q(type=value))),
    "state": Filter(
        IS, _is(lambda value: Q(stale=value == "stale")), {"active", "stale"}.__contains__, "active or stale"
    ),
    "archived": Filter(
        ("IS",),
        _is(lambda value: Q(archived_at__isnull=value == "false")),
        {"true", "false"}.__contains__,
        "true or false",
    ),
    "createdBy": Filter(
        IS,
        _is(lambda value: Q(created_by=int(value))),
        lambda text: text.isdecimal() and len(text) < 19,
        "an id",
    ),
    "createdAt": Filter(DATE, _created, _is_day, "a day like 2026-11-21"),
    "lastSeenAt": Filter(DATE, _seen, _is_day, "a day like 2026-11-21"),
    "lifecycle": Filter(
        IS,
        _is(_in_stage),
        set(LifecycleStage.Stage.values).__contains__,
        choices(LifecycleStage.Stage.values),
    ),
    "tag": Filter(INCLUDE, _includes(_tagged), lambda text: ":" in text, "type:value"),
    "segment": Filter(INCLUDE, _includes(_with_segment)),
}


def _problems(search: Search) -> Iterator[Problem]:
    for name, text in {"query": search.query, **search.filters}.items():
        if text.count(",") >= MOST_VALUES:
            yield Problem(name, f"at most {MOST_VALUES} values are allowed")
    if len(search.status) > MOST_VALUES:
        yield Problem("status", f"at most {MOST_VALUES} values are allowed")
    for status in search.status:
        if status.rpartition(":")[2] not in ("enabled", "disabled"):
            yield Problem("status", f"{status} is not environment:enabled or environment:disabled")
    for name, text in search.filters.items():
        yield from _filter_problems(name, text)


def _filter_problems(name: str, text: str) -> Iterator[Problem]:
    known = FILTERS[name]
    operator, values = _parts(text)
    if operator not in known.operators:
        yield Problem(name, f"there is no operator {operator}. There are: {choices(known.operators)}")
        return
    for value in values:
        if not known.reads(value):
            yield Problem(name, f"{value!r} is not {known.wants}")
