"""Visibility, permissions and locks of rows that are global or belong to one project, such as segments.

Base view sets for URLs below a project or a flag: they load the objects and check the permission.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Model

from flagadmin.core.db.statements import execute
from flagadmin.core.db.transactions import UNIQUE_VIOLATION, get_sqlstate
from flagadmin.core.errors import NameExists
from groups.access import Caller, Permission, missing
from groups.viewsets import ViewSet
from projects.access import (
    access_flag,
    access_project,
    begin_checks,
    check_not_archived,
    find_project_environment,
    project_not_found,
)
from projects.models import Flag, Project

M = TypeVar("M", bound=Model)


def check_scope(
    caller: Caller, everywhere: Permission, in_project: Permission, project_id: str | None
) -> None:
    """Requires the root permission or, for a row of a project, the project permission.

    Raises the same NoAccess for an unreadable project and for a missing one.
    """
    if caller.can(everywhere) or (project_id and caller.can(in_project, project=project_id)):
        return
    named = project_id if project_id and caller.can_read(project_id) else None
    raise missing([in_project, everywhere] if project_id else [everywhere], project=named)


def lock_scope(*project_ids: str | None, caller: Caller) -> None:
    """Locks projects in id order; ignores None. Call this before locking rows that belong to them.

    Raises NotFound for projects that do not exist or are archived.
    """
    pks = {project_id for project_id in project_ids if project_id is not None}
    rows = begin_checks(Project.objects.filter(pk__in=pks), caller=caller)
    locked = {project.pk: project for project in rows}
    for project_id in sorted(pks):
        if project_id not in locked:
            raise project_not_found(project_id)
        check_not_archived(locked[project_id])


def hold_segments(ids: Iterable[int]) -> None:
    """Prevents these segments from being moved or deleted until the end of the transaction.

    Call this before reading which segments a strategy may use. The lock is shared, so changes to strategies
    do not wait for each other.
    """
    if pks := sorted({pk for pk in ids if 0 < pk < 2**63}):
        execute("SELECT FROM projects_segment WHERE id = ANY(%s::bigint[]) ORDER BY id FOR KEY SHARE", [pks])


@contextmanager
def name_is_free(message: str) -> Iterator[None]:
    """Turns a unique violation into NameExists, which also covers two concurrent inserts of the same name."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as exc:
        if get_sqlstate(exc) != UNIQUE_VIOLATION:
            raise
        raise NameExists(message) from exc


def find_first_permission(caller: Caller, project_id: str, *permissions: Permission) -> Permission:
    """The first of the permissions that the caller has in the project, or the first of them all.

    The error message then names it.
    """
    return next((p for p in permissions if caller.can(p, project=project_id)), permissions[0])


class InProjectViewSet(ViewSet):
    """A base for URLs below ``projects/<str:project_id>``. Projects that the caller cannot read count as missing."""

    project: Project

    def authorize(self, project_id: str, *args: Any, **kwargs: Any) -> None:
        self.project = access_project(self.caller, project_id)
        self.check_permission(project=project_id)


class OnFlagViewSet(InProjectViewSet):
    """A base for URLs below ``projects/<str:project_id>/features``.

    Loads the active flag and environment in the URL.
    """

    flag: Flag

    def authorize(
        self,
        project_id: str,
        name: str | None = None,
        environment: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if name is None:
            super().authorize(project_id)
            return
        self.flag = self.find_flag(project_id, name)
        self.check_permission(project=project_id, environment=environment)
        if environment is not None:
            find_project_environment(project_id, environment)

    def find_flag(self, project_id: str, name: str) -> Flag:
        return access_flag(self.caller, project_id, name, archived=False)


class ScopedViewSet(ViewSet):
    """A base for models that are global or belong to one project.

    ``permission_in_project`` allows all changes there.
    """

    permission_in_project: Permission

    def check_permission(self, *, project: str | None = None, environment: str | None = None) -> None:
        for permission in self.needed_permissions:
            check_scope(self.caller, permission, self.permission_in_project, project)

    @property
    def named_project(self) -> str | None:
        """The ``project`` in the body, read before validation so that permission errors come first."""
        body = self.request.data
        named = body.get("project") if isinstance(body, dict) else None
        return named if isinstance(named, str) and named else None
