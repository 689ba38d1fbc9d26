"""Filters and sorting of the console's lists of flags: those of one project, and of all projects.

The conditions are the flag search's (``projects.flags.lists.search``) and some that only the console has.

The flags that the user viewed last, kept in the session.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.sessions.backends.base import SessionBase
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
from django.db.models.functions import Coalesce, Lower
from django.http import QueryDict
from django.utils import timezone

from flagadmin.core.lists.pages import MAX_OPTIONS, Column, Filter
from groups.access import Caller
from groups.models import Group, User
from projects.flags.lists.cells import CONDITIONAL
from projects.flags.lists.conditions import (
    DIFFERS,
    FULL,
    NO_OWNER,
    OFF,
    ROLLING,
    changed_since,
    in_status,
    list_reasons,
    never_evaluated,
    owned_or_created_by,
    removable,
    text_query,
)
from projects.flags.lists.search import FlagFilter
from projects.models import Environment, Flag, FlagLastSeen, FlagTag, FlagType, Project

MINE = "mine"
PRODUCTION_FIRST = (Case(When(type=Environment.PRODUCTION, then=0), default=1), "sort_order", "name")
"""The order of environments in lists of flags."""
MAX_MATCHING = 900  # flags of a list that can be changed at once; a form has at most 1,000 fields
SEEN = (
    ("1", "In the last 24 hours"),
    ("not-7", "Not in the last 7 days"),
    ("not-30", "Not in the last 30 days"),
    ("not-90", "Not in the last 90 days"),
    ("never", "Never"),
)
STALE = (
    ("active", "Not stale"),
    ("stale", "Stale"),
    ("overdue", "Past expected lifetime"),
    ("removable", "Can go"),
)
CHANGED = (("1", "In the last 24 hours"), ("7", "In the last 7 days"))
ROLLOUT = (
    (OFF, "Off everywhere"),
    (FULL, "100 % for more than 30 days"),
    (DIFFERS, "Differs between environments"),
    (ROLLING, "Rolling out in production"),
)
STATES = (("on", "On"), ("off", "Off"), ("all", "On for everyone"), ("some", "On for some"))

# The largest share of a flag's strategies in an environment.
_SHARE = """(
    SELECT CASE WHEN count(*) = 0 THEN 100 ELSE coalesce(max(s.share) FILTER (WHERE NOT s.disabled), 0) END
      FROM projects_strategy s WHERE s.flag_id = projects_flag.id AND s.environment_id = %s)"""
# A flag with parents is on for as many as its parents.
_FOR_EVERYONE = f"""(
    projects_flag.id NOT IN (SELECT d.flag_id FROM projects_dependency d)
    AND (projects_flag.id NOT IN (SELECT s.flag_id FROM projects_strategy s WHERE s.environment_id = %s)
    OR projects_flag.id IN (SELECT s.flag_id FROM projects_strategy s WHERE s.environment_id = %s
                               AND NOT s.disabled AND s.share = 100 AND NOT {CONDITIONAL})))"""  # noqa: S608 - constants


def make_environment_key(environment: str) -> str:
    """The key of an environment's column, and the name of its filter, in the URL."""
    return f"in-{environment}"


@dataclass(frozen=True, slots=True)
class FlagScope:
    """The flags of a list, before its filters, with their tags, and the environments shown as columns.

    ``projects`` are (id, name) in a list of several projects; it is empty in the list of one. ``mine`` are the
    caller's, by owner.
    """

    flags: QuerySet[Flag]
    tags: QuerySet[FlagTag]
    environments: Sequence[str]
    projects: Sequence[tuple[str, str]] = ()
    mine: Q = Q()  # noqa: RUF009 - not changed


def make_project_scope(
    project: Project, *, archived: bool = False, caller: Caller | None = None
) -> FlagScope:
    """The active or the archived flags of a project, by name. One query."""
    flags = Flag.objects.archived(archived).filter(project=project).order_by("name")
    return FlagScope(
        flags.select_related("project"),
        FlagTag.objects.filter(flag__project=project),
        list(project.environments.order_by(*PRODUCTION_FIRST).values_list("name", flat=True)),
        mine=owned_or_created_by(caller.id) if caller else Q(),
    )


def make_readable_scope(caller: Caller) -> FlagScope:
    """The active flags of all projects in use that the caller may read, by name. Three queries."""
    projects = Project.objects.active().readable_by(caller)
    environments = Environment.objects.filter(projects__in=projects).order_by(*PRODUCTION_FIRST).distinct()
    flags = (
        Flag.objects.active()
        .readable_by(caller)
        .order_by("name")
        .select_related("project", "owner_user", "owner_group")
    )
    # Joins with all tags and projects would take longer than the page.
    archived = list(Project.objects.archived().values_list("id", flat=True))
    tags = FlagTag.objects.filter(caller.match_readable("flag__project"))
    return FlagScope(
        flags.exclude(project__in=archived) if archived else flags,
        tags,
        list(environments.values_list("name", flat=True)),
        list(projects.order_by("name", "id").values_list("id", "name")),
        owned_or_created_by(caller.id),
    )


def list_columns(environments: Sequence[str], *, with_project: bool = False) -> tuple[Column, ...]:
    """Name, project and owner (of several projects), type, one for each environment (sorted by share), and more."""
    return (
        Column("name", "Flag", by=("name",)),
        *([Column("project", "Project", by=("project__name", "name"))] if with_project else []),
        *([Column("owner", "Owner", by=("owner", "name"))] if with_project else []),
        Column("type", "Type", by=("type", "name")),
        *(
            Column(make_environment_key(name), name, by=(f"share_{index}", "name"))
            for index, name in enumerate(environments)
        ),
        Column("seen", "Last evaluated", by=("last_evaluated", "name")),
        Column("stale", "Stale", by=("stale", "name")),
        Column("created", "Created", by=("created_at", "name")),
    )


def list_filters(scope: FlagScope) -> tuple[Filter, ...]:
    """Text, project and owner (of several projects), type, tag, stale, rollout, last evaluated, state by environment.

    Five queries.
    """
    type_ids = scope.flags.order_by().values_list("type", flat=True).distinct()
    types = {name: name for name in type_ids} | dict(FlagType.objects.values_list("id", "name"))
    pairs = scope.tags.order_by("tag_type", "value")
    tags = [f"{kind}:{value}" for kind, value in pairs.values_list("tag_type", "value").distinct()]
    return (
        Filter("q", "Name, description or tag"),
        *([Filter("project", "Project", scope.projects)] if scope.projects else []),
        Filter("owner", "Owner", list_owner_choices(scope)),
        Filter("type", "Type", sorted(types.items())),
        Filter("tag", "Tag", [(tag, tag) for tag in tags]),
        Filter("state", "Lifetime", STALE),
        Filter("rollout", "Rollout", ROLLOUT),
        Filter("seen", "Last evaluated", SEEN),
        Filter("changed", "Changed", CHANGED),
        *(Filter(make_environment_key(name), name, STATES) for name in scope.environments),
    )


def list_owner_choices(scope: FlagScope) -> list[tuple[str, str]]:
    """The caller, no owner, and each owner of a flag in the list. Two queries."""
    flags = scope.flags.order_by()
    groups = Group.objects.filter(pk__in=flags.exclude(owner_group=None).values("owner_group")).order_by(
        "name"
    )
    people = User.objects.filter(pk__in=flags.exclude(owner_user=None).values("owner_user")).order_by(
        "username"
    )
    return [
        (MINE, "Mine"),
        (NO_OWNER, "No owner"),
        *((f"group:{group.pk}", group.name) for group in groups[:MAX_OPTIONS]),
        *((f"user:{user.pk}", user.display_name) for user in people[:MAX_OPTIONS]),
    ]


def filter_flags(scope: FlagScope, values: dict[str, str]) -> QuerySet[Flag]:
    """The flags of the list that match all values of ``list_filters``. Empty ones do not filter."""
    flags = scope.flags
    if values.get("q"):
        flags = flags.filter(text_query(values["q"]))
    if values.get("owner") == MINE:
        flags = flags.filter(scope.mine)
    for name in ("project", "owner", "type", "tag", "state", "rollout"):
        if values.get(name, MINE) not in ("", MINE):
            operator = "INCLUDE" if name == "tag" else "IS"
            flags = flags.filter(FlagFilter.base_filters[name].condition(operator, [values[name]]))
    if values.get("seen"):
        flags = flags.filter(_seen(values["seen"]))
    if values.get("changed"):
        flags = flags.filter(changed_since(timezone.now() - timedelta(days=int(values["changed"]))))
    for environment in scope.environments:
        if state := values.get(make_environment_key(environment)):
            flags = flags.filter(_STATES[state](environment))
    return flags


def filter_by_query(scope: FlagScope, query: QueryDict) -> QuerySet[Flag]:
    """The flags of the list with this query string, on all its pages. Raises ValidationError."""
    values = {field.name: field.value(query) for field in list_filters(scope)}
    return filter_flags(scope, values)


def list_environment_names(project: Project) -> list[str]:
    """The names of the environments that the project uses, in their order."""
    return list(project.environments.order_by("sort_order", "name").values_list("name", flat=True))


def annotate_for_sort(flags: QuerySet[Any], environments: Sequence[str], sort: str) -> QuerySet[Any]:
    """Adds only the value for ``sort`` (a key of ``list_columns``, descending with "-").

    For an environment, that is the largest percentage of the flag's strategies, or -1 if it is off there.
    """
    key = sort.removeprefix("-")
    if key == "owner":
        return flags.annotate(owner=Coalesce("owner_group__name", "owner_user__username"))
    if key == "seen":
        last = FlagLastSeen.objects.filter(flag=OuterRef("pk")).order_by("-seen_at")
        return flags.annotate(last_evaluated=Subquery(last.values("seen_at")[:1]))
    for index, name in enumerate(environments):
        if key == make_environment_key(name):
            is_place = Q(environments__environment=name)
            share = When(place__enabled=True, then=RawSQL(_SHARE, [name], IntegerField()))  # noqa: S611 - constants
            joined = flags.annotate(place=FilteredRelation("environments", condition=is_place))
            return joined.annotate(**{f"share_{index}": Case(share, default=-1)})
    return flags


def count_removable_flags(flags: QuerySet[Flag], *, now: datetime) -> QuerySet[Any, Any]:
    """The ``number`` of flags with a reason to go in each project with any, and how many of them are marked stale."""
    rows = flags.filter(removable(list_reasons(now))).order_by().values("project_id", "project__name")
    counted = rows.annotate(number=Count("pk"), stale_flags=Count("pk", filter=Q(stale=True)))
    return counted.order_by("-number", "project_id")


def _seen(value: str) -> Q:
    if value == "never":
        return never_evaluated()
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


MAX_CREATORS = 10_000


def list_flag_creators(flags: QuerySet[Flag], *, limit: int = MAX_CREATORS) -> list[User]:
    """The accounts that created any of these flags, by user name. One query.

    Flags created by a token, or by a deleted account, have no creator.
    """
    creators = User.objects.filter(pk__in=flags.order_by().values("created_by")).order_by(Lower("username"))
    return list(creators[:limit])


MAX_RECENT = 6
_KEY = "recent-flags"


def note_visit(session: SessionBase, name: str) -> None:
    """Puts the flag first. Changes the session only if it was not first."""
    names = list_recent_names(session)
    if names[:1] != [name]:
        session[_KEY] = [name, *(other for other in names if other != name)][:MAX_RECENT]


def list_recent_names(session: SessionBase) -> Sequence[str]:
    """Names of flags, the last one first. They may have been deleted since."""
    return list(session.get(_KEY, ()))
