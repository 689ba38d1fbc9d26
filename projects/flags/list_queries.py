"""Filters and sorting of a project's list of flags in the console.

The conditions are those of the flag search (``projects.flags.search``) and some that only the console has.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    BooleanField,
    Case,
    Count,
    FilteredRelation,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    When,
)
from django.db.models.expressions import RawSQL
from django.http import QueryDict
from django.utils import timezone

from flagadmin.core.lists.pages import Column, Filter
from projects.flags.flag_cells import CONDITIONAL
from projects.flags.search import FlagFilter
from projects.flags.search_conditions import in_status, overdue, text_query
from projects.models import Flag, FlagLastSeen, FlagTag, FlagType, Project

MAX_MATCHING = 900  # flags of a list that can be changed at once; a form has at most 1,000 fields
SEEN = (
    ("1", "In the last 24 hours"),
    ("not-7", "Not in the last 7 days"),
    ("not-30", "Not in the last 30 days"),
    ("not-90", "Not in the last 90 days"),
    ("never", "Never"),
)
STALE = (("active", "Not stale"), ("stale", "Stale"), ("overdue", "Past expected lifetime"))
STATES = (("on", "On"), ("off", "Off"), ("all", "On for everyone"), ("some", "On for some"))

# The largest share of a flag's strategies in an environment.
_SHARE = """(
    SELECT CASE WHEN count(*) = 0 THEN 100 ELSE coalesce(max(s.share) FILTER (WHERE NOT s.disabled), 0) END
      FROM projects_strategy s WHERE s.flag_id = projects_flag.id AND s.environment_id = %s)"""
_FOR_EVERYONE = f"""(
    projects_flag.id NOT IN (SELECT s.flag_id FROM projects_strategy s WHERE s.environment_id = %s)
    OR projects_flag.id IN (SELECT s.flag_id FROM projects_strategy s WHERE s.environment_id = %s
                               AND NOT s.disabled AND s.share = 100 AND NOT {CONDITIONAL}))"""  # noqa: S608 - constants


def in_environment(environment: str) -> str:
    """The key of an environment's column, and the name of its filter, in the URL."""
    return f"in-{environment}"


def list_columns(environments: Sequence[str]) -> tuple[Column, ...]:
    """Name, type, one column for each environment (sorted by share), last evaluated, stale, created."""
    return (
        Column("name", "Flag", by=("name",)),
        Column("type", "Type", by=("type", "name")),
        *(
            Column(in_environment(name), name, by=(f"share_{index}", "name"))
            for index, name in enumerate(environments)
        ),
        Column("seen", "Last evaluated", by=("last_evaluated", "name")),
        Column("stale", "Stale", by=("stale", "name")),
        Column("created", "Created", by=("created_at", "name")),
    )


def list_filters(project: Project, environments: Sequence[str]) -> tuple[Filter, ...]:
    """Text, type, tag, stale, last evaluated, and the state in each environment. Three queries."""
    here = Flag.objects.filter(project=project).order_by().values_list("type", flat=True).distinct()
    types = {name: name for name in here} | dict(FlagType.objects.values_list("id", "name"))
    pairs = FlagTag.objects.filter(flag__project=project).order_by("tag_type", "value")
    tags = [f"{kind}:{value}" for kind, value in pairs.values_list("tag_type", "value").distinct()]
    return (
        Filter("q", "Name, description or tag"),
        Filter("type", "Type", sorted(types.items())),
        Filter("tag", "Tag", [(tag, tag) for tag in tags]),
        Filter("state", "Lifetime", STALE),
        Filter("seen", "Last evaluated", SEEN),
        *(Filter(in_environment(name), name, STATES) for name in environments),
    )


def filter_flags(
    flags: QuerySet[Flag], values: dict[str, str], environments: Sequence[str]
) -> QuerySet[Flag]:
    """The flags that match all values of ``list_filters``. Empty ones do not filter."""
    if values.get("q"):
        flags = flags.filter(text_query(values["q"]))
    if values.get("state") == "overdue":
        flags = flags.filter(overdue(timezone.now()))
    for name, operator in (("type", "IS"), ("tag", "INCLUDE"), ("state", "IS")):
        if values.get(name) and values[name] != "overdue":
            flags = flags.filter(FlagFilter.base_filters[name].condition(operator, [values[name]]))
    if values.get("seen"):
        flags = flags.filter(_seen(values["seen"]))
    for environment in environments:
        if state := values.get(in_environment(environment)):
            flags = flags.filter(_STATES[state](environment))
    return flags


def matching_flags(flags: QuerySet[Flag], project: Project, query: QueryDict) -> QuerySet[Flag]:
    """The flags of the list with this query string, on all its pages. Raises ValidationError."""
    environments = environment_names(project)
    filters = list_filters(project, environments)
    return filter_flags(flags, {field.name: field.value(query) for field in filters}, environments)


def environment_names(project: Project) -> list[str]:
    """The names of the environments that the project uses, in their order."""
    return list(project.environments.order_by("sort_order", "name").values_list("name", flat=True))


def sortable(flags: QuerySet[Any], environments: Sequence[str], sort: str) -> QuerySet[Any]:
    """Adds what ``sort`` (a key of ``list_columns``, descending with "-") sorts by, and nothing else.

    In an environment that is the largest share of the flag's strategies, or -1 if it is off there.
    """
    key = sort.removeprefix("-")
    if key == "seen":
        last = FlagLastSeen.objects.filter(flag=OuterRef("pk")).order_by("-seen_at")
        return flags.annotate(last_evaluated=Subquery(last.values("seen_at")[:1]))
    for index, name in enumerate(environments):
        if key == in_environment(name):
            here = Q(environments__environment=name)
            share = When(place__enabled=True, then=RawSQL(_SHARE, [name], IntegerField()))  # noqa: S611 - constants
            joined = flags.annotate(place=FilteredRelation("environments", condition=here))
            return joined.annotate(**{f"share_{index}": Case(share, default=-1)})
    return flags


def stale_flag_counts(flags: QuerySet[Flag], *, now: datetime) -> QuerySet[Any, Any]:
    """The numbers of ``stale`` and ``overdue`` flags of each project that has any, most stale ones first."""
    rows = flags.order_by().values("project_id", "project__name")
    counted = rows.annotate(
        overdue=Count("pk", filter=overdue(now)), stale_flags=Count("pk", filter=Q(stale=True))
    )
    counts = counted.filter(Q(stale_flags__gt=0) | Q(overdue__gt=0))
    return counts.order_by("-stale_flags", "-overdue", "project_id")


def _seen(value: str) -> Q:
    if value == "never":
        return ~Q(pk__in=FlagLastSeen.objects.values("flag"))
    days = int(value.removeprefix("not-"))
    recent = FlagLastSeen.objects.filter(seen_at__gte=timezone.now() - timedelta(days=days)).values("flag")
    return ~Q(pk__in=recent) if value.startswith("not-") else Q(pk__in=recent)


def _on(environment: str) -> Q:
    return in_status([f"{environment}:enabled"])


def _for_everyone(environment: str) -> Q:
    return Q(RawSQL(_FOR_EVERYONE, [environment, environment], BooleanField()))  # noqa: S611 - constants


_STATES: dict[str, Callable[[str], Q]] = {
    "on": _on,
    "off": lambda environment: in_status([f"{environment}:disabled"]),
    "all": lambda environment: _on(environment) & _for_everyone(environment),
    "some": lambda environment: _on(environment) & ~_for_everyone(environment),
}
