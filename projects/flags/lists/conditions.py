"""Query conditions and sort keys for each parameter of the flag search."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import and_, or_

from django.db.models import BooleanField, Exists, F, Max, OuterRef, Q, Subquery, Value
from django.db.models.expressions import Expression, RawSQL
from django.db.models.functions import Coalesce, Concat, NullIf
from django.utils import timezone
from django.utils.dateparse import parse_date

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.statements import fetch_row
from flagadmin.core.http.fields import is_id
from groups.models import Group, GroupMembership, User
from projects.flags.lists.cells import CONDITIONAL
from projects.models import (
    FlagEnvironment,
    FlagLastSeen,
    FlagTag,
    FlagType,
    LifecycleStage,
    StrategySegment,
)

BY_ENVIRONMENT = "environment:"
ARCHIVED = LifecycleStage.Stage.ARCHIVED.value
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


def sort_key(name: str) -> SortKey:
    if name.startswith(BY_ENVIRONMENT):
        states = FlagEnvironment.objects.filter(environment=name.removeprefix(BY_ENVIRONMENT), enabled=True)
        return Exists(states.filter(flag=OuterRef("pk")))
    return SORT_KEYS.get(name, SORT_KEYS["createdAt"])


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
NEGATIVE = {"IS_NOT", "IS_NONE_OF", "DO_NOT_INCLUDE", "EXCLUDE_IF_ANY_OF", "EXCLUDE_ALL"}
_ALL = {"INCLUDE_ALL_OF", "EXCLUDE_ALL"}
LIFETIMES = ("active", "stale", "overdue", "removable")
ROLLOUTS = OFF, FULL, DIFFERS, ROLLING = ("off", "full", "differs", "rolling")
NO_OWNER = "none"
LONG_FULL = timedelta(days=30)

_OFF = """
SELECT id FROM projects_flag WHERE archived_at IS NULL AND id NOT IN (
       SELECT p.flag_id FROM projects_flagenvironment p JOIN projects_flag f ON f.id = p.flag_id
         JOIN projects_projectenvironment u ON u.project_id = f.project_id AND u.environment_id = p.environment_id
        WHERE p.enabled)"""
_FULL = f"""
SELECT f.id
  FROM (SELECT f.id, f.name, bool_and(p.enabled IS TRUE) AS all_on
          FROM projects_flag f
          JOIN projects_projectenvironment u ON u.project_id = f.project_id
          JOIN projects_environment e ON e.name = u.environment_id AND e.type = 'production'
          LEFT JOIN projects_flagenvironment p ON p.flag_id = f.id AND p.environment_id = u.environment_id
         WHERE f.archived_at IS NULL AND f.created_at < %(since)s GROUP BY f.id) f
  LEFT JOIN (SELECT s.flag_id, bool_and(s.everyone) AS everyone
               FROM (SELECT s.flag_id, s.environment_id,
                            bool_or(NOT s.disabled AND s.share = 100 AND NOT {CONDITIONAL}) AS everyone
                       FROM projects_strategy s JOIN projects_environment e ON e.name = s.environment_id
                      WHERE e.type = 'production' GROUP BY 1, 2) s
              GROUP BY 1) s ON s.flag_id = f.id
 WHERE all_on AND s.everyone IS NOT FALSE AND f.id NOT IN (SELECT flag_id FROM projects_dependency) AND f.name NOT IN (
       SELECT a.feature FROM audit_auditevent a LEFT JOIN projects_environment e ON e.name = a.environment
        WHERE a.created_at >= %(since)s AND a.feature IS NOT NULL
              AND (e.type = 'production' OR a.type IN ('feature-reverted', 'feature-revived')))"""  # noqa: S608 - constants
# Conditions as sets: neither their order nor the order of their values matters.
_CONDITIONS = """(
         SELECT array_agg(DISTINCT jsonb_hash_extended(
                  '{"inverted": false, "caseInsensitive": false}' || (c - 'values'), 0)
                  # coalesce((SELECT hash_array_extended(array_agg(DISTINCT v ORDER BY v), 7)
                              FROM jsonb_array_elements_text(c -> 'values') v), 0))
           FROM jsonb_array_elements(s.constraints) c)"""
# Compares strategies by a hash of the parts that matter, in order, without titles and ids.
_DIFFERS = f"""
WITH active AS (
  SELECT s.flag_id, s.environment_id,
         hash_array_extended(array_agg(
           hashtextextended(s.name, 1) # jsonb_hash_extended(s.parameters, 2)
           # CASE WHEN s.constraints = '[]' THEN 0 ELSE hash_array_extended({_CONDITIONS}, 3) END
           # jsonb_hash_extended(s.variants, 4) # coalesce(hash_array_extended(l.ids, 5), 0)
           ORDER BY s.sort_order, s.id), 6) AS hash
    FROM projects_strategy s
    LEFT JOIN (SELECT strategy_id, array_agg(segment_id ORDER BY segment_id) AS ids
                 FROM projects_strategysegment GROUP BY 1) l ON l.strategy_id = s.id
   WHERE NOT s.disabled GROUP BY 1, 2)
SELECT f.id
  FROM projects_flag f
  JOIN projects_projectenvironment u ON u.project_id = f.project_id
  LEFT JOIN projects_flagenvironment p ON p.flag_id = f.id AND p.environment_id = u.environment_id
  LEFT JOIN active s ON s.flag_id = f.id AND s.environment_id = u.environment_id
 WHERE f.archived_at IS NULL
 GROUP BY f.id
HAVING bool_or(p.enabled)
       AND NOT (bool_and(p.enabled IS TRUE) AND count(s.hash) IN (0, count(*))
                AND min(s.hash) IS NOT DISTINCT FROM max(s.hash)
                AND min(jsonb_hash_extended(p.variants, 0)) = max(jsonb_hash_extended(p.variants, 0)))"""  # noqa: S608 - constants
_ROLLING = """
SELECT f.id
  FROM projects_flag f
  JOIN projects_projectenvironment u ON u.project_id = f.project_id
  JOIN projects_environment e ON e.name = u.environment_id AND e.type = 'production'
  JOIN projects_flagenvironment p ON p.flag_id = f.id AND p.environment_id = u.environment_id AND p.enabled
  JOIN (SELECT flag_id, environment_id, max(share) AS share FROM projects_strategy WHERE NOT disabled GROUP BY 1, 2) s
       ON s.flag_id = f.id AND s.environment_id = u.environment_id AND s.share > 0 AND s.share < 100
 WHERE f.archived_at IS NULL"""
_ROLLOUTS = {OFF: _OFF, FULL: _FULL, DIFFERS: _DIFFERS, ROLLING: _ROLLING}


def parts(text: str) -> tuple[str, list[str]]:
    operator, _, rest = text.partition(":")
    return operator, [value.strip() for value in rest.split(",")]


def is_one_of(condition_of: Callable[[str], Q]) -> Condition:
    """Matches one of the values, or none of them if the operator is negative."""
    return lambda operator, values: _negate_if_asked(operator, reduce(or_, map(condition_of, values)))


def includes(condition_of: Callable[[str], Q]) -> Condition:
    return lambda operator, values: _negate_if_asked(
        operator, reduce(and_ if operator in _ALL else or_, map(condition_of, values))
    )


def _negate_if_asked(operator: str, condition: Q) -> Q:
    return ~condition if operator in NEGATIVE else condition


def created(operator: str, values: list[str]) -> Q:
    day = parse_date(values[0])
    return Q(created_at__date__lt=day) if operator == "IS_BEFORE" else Q(created_at__date__gte=day)


def last_seen(operator: str, values: list[str]) -> Q:
    """Last seen before that day, or on or after it. Flags that were never seen match neither."""
    seen = FlagLastSeen.objects.order_by().values("flag").annotate(last=Max("seen_at"))
    day = parse_date(values[0])
    when = Q(last__date__lt=day) if operator == "IS_BEFORE" else Q(last__date__gte=day)
    return Q(pk__in=seen.filter(when).values("flag"))


def tagged(text: str) -> Q:
    kind, _, value = text.partition(":")
    return Q(pk__in=FlagTag.objects.filter(tag_type=kind, value=value).values("flag"))


def with_segment(name: str) -> Q:
    return Q(pk__in=StrategySegment.objects.filter(segment__name=name).values("strategy__flag"))


def in_stage(stage: str) -> Q:
    """The flag's current stage. "archived" is read from the flag itself, not from its stages."""
    if stage == ARCHIVED:
        return Q(archived_at__isnull=False)
    order = LifecycleStage.Stage.values
    later = order[order.index(stage) + 1 :]
    entered = LifecycleStage.objects.filter(stage=stage).values("flag")
    return Q(pk__in=entered) & ~Q(pk__in=LifecycleStage.objects.filter(stage__in=later).values("flag"))


def in_lifetime(state: str) -> Q:
    """One of LIFETIMES: marked as stale or not, past the expected lifetime of its type, or with a reason to go."""
    if state == "removable":
        return removable(list_reasons(timezone.now()))
    return overdue(timezone.now()) if state == "overdue" else Q(stale=state == "stale")


def list_reasons(now: datetime) -> dict[str, Q]:
    """The reasons why a flag may be outdated, with the condition of each."""
    return {
        "marked as stale": Q(stale=True),
        "marked as completed": in_stage(LifecycleStage.Stage.COMPLETED),
        "past its expected lifetime": overdue(now),
        "at 100 % in production for 30 days": rolled_out(FULL),
    }


def removable(reasons: Mapping[str, Q]) -> Q:
    """Active flags with any of these reasons."""
    return Q(archived_at=None) & reduce(or_, reasons.values())


def changed_since(since: datetime) -> Q:
    """Flags with an event since then."""
    events = AuditEvent.objects.filter(created_at__gte=since, feature__isnull=False)
    return Q(name__in=events.order_by().values("feature"))


def overdue(now: datetime) -> Q:
    """Older than the expected lifetime of their type, and not marked as stale. One query."""
    types = FlagType.objects.filter(lifetime_days__isnull=False).values_list("id", "lifetime_days")
    old = (Q(type=name, created_at__lt=now - timedelta(days=days or 0)) for name, days in types)
    return Q(stale=False) & reduce(or_, old, Q(pk__in=[]))


OVERDUE = "NOT f.stale AND f.created_at < %(now)s - make_interval(days => t.lifetime_days)"
"""The same in a statement that joins ``projects_flag f`` with ``projects_flagtype t``."""


def never_evaluated() -> Q:
    return ~Q(pk__in=FlagLastSeen.objects.values("flag"))


def rolled_out(state: str) -> Q:
    """Finds flags by their rollout in the environments of their projects.

    ``off``: off everywhere. ``full``: on for everyone in all production environments, without parents, and unchanged
    there for 30 days. ``differs``: on in some environments only, or with other strategies or variants there.
    ``rolling``: on in a production environment with a percentage below 100. Finds the flags once, because a page and
    its row count both need them. Only active flags.
    """
    # The ids stay text, because most flags may be among them.
    ids = f"SELECT array_agg(id)::text FROM ({_ROLLOUTS[state]}) found"  # noqa: S608 - constants
    [flag_ids] = fetch_row(ids, {"since": timezone.now() - LONG_FULL})
    return Q(RawSQL("projects_flag.id = ANY(%s::bigint[])", [flag_ids or "{}"], BooleanField()))


def is_day(text: str) -> bool:
    try:
        return parse_date(text) is not None
    except ValueError:
        return False


def text_query(text: str) -> Q:
    """The name, the description, a tag (``type:value``) or the owner contains one of the comma-separated terms."""
    terms = [term.strip() for term in text.split(",") if term.strip()]
    tags = FlagTag.objects.annotate(whole=Concat("tag_type_id", Value(":"), "value"))
    matches = (
        Q(name__icontains=term)
        | Q(description__icontains=term)
        | Q(pk__in=tags.filter(whole__icontains=term).values("flag"))
        | Q(owner_user__in=User.objects.filter(Q(username__icontains=term) | Q(name__icontains=term)))
        | Q(owner_group__in=Group.objects.filter(name__icontains=term))
        for term in terms
    )
    return reduce(or_, matches) if terms else Q()


def names_owner(text: str) -> bool:
    """Whether the text is ``user:ID``, ``group:ID`` or ``none``."""
    kind, _, number = text.partition(":")
    return text == NO_OWNER or (kind in ("user", "group") and is_id(number))


def owned_by(text: str) -> Q:
    if text == NO_OWNER:
        return Q(owner_user=None, owner_group=None)
    kind, _, number = text.partition(":")
    return Q(**{f"owner_{kind}": int(number)})


def owned_or_created_by(user_id: int | None) -> Q:
    """Flags of the person or of a group of theirs, and those without an owner that they created."""
    groups = GroupMembership.objects.filter(user=user_id).values("group")
    return Q(owner_user=user_id) | Q(owner_group__in=groups) | Q(owned_by(NO_OWNER), created_by=user_id)


def in_status(statuses: Sequence[str]) -> Q:
    conditions = []
    for status in statuses:
        environment, _, state = status.rpartition(":")
        rows = FlagEnvironment.objects.filter(environment_id=environment, enabled=True).values("flag")
        conditions.append(Q(pk__in=rows) if state == "enabled" else ~Q(pk__in=rows))
    return reduce(or_, conditions) if conditions else Q()
