"""Deletes the rows of archived flags, for the API, the console, the admin site and project deletion."""

from collections.abc import Sequence
from typing import Any

from django.db.models import CASCADE, QuerySet

from flagadmin.core.audit.record import EventType, record_selected
from flagadmin.core.errors import InvalidOperation, Problem
from flagadmin.core.wording import choices
from groups.access import Caller
from projects.deletion.kept_names import FLAG, end_names
from projects.flags.archive.deleted_flags import select_removed_flags
from projects.models import Dependency, Flag


def remove_flags(flags: Sequence[Flag], *, caller: Caller) -> None:
    """Deletes these flags with all their data and records an event for each, in a fixed number of queries.

    The caller must have archived the flags, locked them and their project, and checked the permission.
    Archived flags elsewhere that depend on a deleted flag lose that parent.

    Raises InvalidOperation naming both flags if an active flag depends on one of them.
    """
    if flags:
        remove_flag_rows(Flag.objects.filter(pk__in=[flag.pk for flag in flags]), caller=caller)


def remove_flag_rows(flags: QuerySet[Flag], *, caller: Caller) -> None:
    """Like ``remove_flags``, but for a queryset: the flags are not loaded into memory."""
    check_no_children(flags, "deleted")
    record_selected(EventType.FEATURE_DELETED, *select_removed_flags(flags), actor=caller)
    end_names(FLAG, flags.order_by().values("name"), caller=caller)
    remove_rows(Dependency.objects.filter(parent__in=flags.order_by().values("pk")))
    remove_rows(flags)


def check_no_children(flags: Sequence[Flag] | QuerySet[Flag], what: str) -> None:
    """Raises InvalidOperation naming every active flag, other than these, that depends on one of them."""
    if pairs := find_children_outside(flags):
        raise make_orphans_error(pairs, what)


def make_orphans_error(pairs: Sequence[tuple[str, str]], what: str) -> InvalidOperation:
    """The error for (parent, child) names."""
    parents = choices({parent for parent, _ in pairs})
    children = choices({child for _, child in pairs})
    return InvalidOperation(
        f"{parents} cannot be {what}: {children} would lose what it depends on.",
        details=[Problem(parent, f"{child} depends on it") for parent, child in pairs],
    )


def find_children_outside(flags: Sequence[Flag] | QuerySet[Flag]) -> list[tuple[str, str]]:
    """Sorted (parent, child) names, where the child is an active flag that is not among ``flags``."""
    ids: Any = flags.order_by().values("pk") if isinstance(flags, QuerySet) else [flag.pk for flag in flags]
    dependencies = Dependency.objects.filter(parent_id__in=ids, flag__archived_at=None).exclude(
        flag_id__in=ids
    )
    return list(dependencies.order_by("parent__name", "flag__name").values_list("parent__name", "flag__name"))


def read_names_and_plans(flags: QuerySet[Flag]) -> tuple[list[str], list[str]]:
    """The names of flags, and their release plans, such as ``Slow (cart, production)``. One query."""
    places = flags.order_by("name", "release_plans__environment").values_list(
        "name", "release_plans__name", "release_plans__environment"
    )
    names = list(dict.fromkeys(name for name, _, _ in places))
    return names, [f"{plan} ({name}, {environment})" for name, plan, environment in places if environment]


def remove_rows(rows: QuerySet) -> None:
    """Deletes rows and the rows that cascade from them, with one query per table and without fetching any."""
    for relation in rows.model._meta.related_objects:
        if getattr(relation, "on_delete", None) is CASCADE:
            owner = f"{relation.field.name}__in"
            remove_rows(relation.related_model._base_manager.filter(**{owner: rows.order_by().values("pk")}))
    rows.order_by()._raw_delete(rows.db)
