"""Things that are global or belong to one project: who sees them, who changes them, what is locked."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Model, Q, QuerySet

from flagadmin.errors import NameExists
from flagadmin.transactions import UNIQUE_VIOLATION, sqlstate
from groups.access import Caller, missing
from groups.permissions import Permission
from projects.access import no_project
from projects.models import Project

M = TypeVar("M", bound=Model)


def visible(rows: "QuerySet[M, Any]", caller: Caller) -> "QuerySet[M, Any]":
    """Those of no project, and those of the projects this caller may read."""
    allowed = caller.readable_projects
    return rows if allowed is None else rows.filter(Q(project=None) | Q(project_id__in=allowed))


def check_scope(
    caller: Caller, everywhere: Permission, in_project: Permission, project_id: str | None
) -> None:
    """The root permission, or for what belongs to a project that project's own. Raises NoAccess."""
    if caller.can(everywhere) or (project_id and caller.can(in_project, project=project_id)):
        return
    raise missing([in_project, everywhere] if project_id else [everywhere], project=project_id)


def lock_scope(caller: Caller, project_id: str | None) -> None:
    """The project's lock, before that of anything in it. Raises NotFound for one deleted meanwhile."""
    if project_id is None:
        return
    locked = Project.objects.select_for_update(no_key=True).filter(pk=project_id).order_by("id").first()
    if locked is None:
        raise no_project(project_id)


@contextmanager
def name_is_free(message: str) -> Iterator[None]:
    """Around an insert: what breaks a unique name becomes NameExists, also when two come at the same moment."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as exc:
        if sqlstate(exc) != UNIQUE_VIOLATION:
            raise
        raise NameExists(message) from exc


def one_held(caller: Caller, project_id: str, *permissions: Permission) -> Permission:
    """The first of these that the caller holds in the project, else the first: what a refusal names."""
    return next((p for p in permissions if caller.can(p, project=project_id)), permissions[0])
