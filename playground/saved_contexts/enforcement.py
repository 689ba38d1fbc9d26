"""Decides which project enforces an expectation: the flag's, if the author may change flags there.

A project that refuses changes that break expectations does so for the expectations that it enforces. A saved context of
a project is enforced there; one without a project remembers the project of each flag (`SavedContext.enforced_in`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from flagadmin.core.errors import NoAccess
from groups.access import Caller, Permission, missing
from playground.models import SavedContext
from projects.models import Flag

STATE = Permission.UPDATE_FEATURE
"""Required in a flag's project to state an expectation of the flag."""

Document = Mapping[str, Any]


def read_flag_projects(expectations: Iterable[Document]) -> dict[str, str]:
    """The project of each flag, including archived ones. One query, if there are expectations."""
    names = {expectation["flag"] for expectation in expectations}
    return dict(Flag.objects.filter(name__in=names).values_list("name", "project_id"))


def enforce(
    saved: SavedContext, caller: Caller, *, before: Document | None, projects: Mapping[str, str]
) -> None:
    """Records which projects enforce the expectations of ``saved``. ``before``: its stored context and expectations.

    ``projects`` are the flags' projects. Raises NoAccess if the caller states, changes or withdraws an expectation of
    a flag that they may not change. Withdrawing one that no project enforces needs no permission.
    """
    old = () if before is None else before["expectations"]
    same_context = before is not None and before["context"] == saved.context
    stated = [expectation for expectation in saved.expectations if expectation not in old]
    withdrawn = [
        expectation for expectation in old if not same_context or expectation not in saved.expectations
    ]
    check_may_state(
        caller,
        {projects.get(expectation["flag"], saved.project_id) for expectation in stated},
        list_enforcing_projects(saved, withdrawn),
    )
    if saved.project_id is None:
        saved.enforced_in = dict(
            _list_enforced(saved, {expectation["flag"] for expectation in stated}, caller, projects)
        )


def check_may_state(caller: Caller, *projects: Iterable[str | None]) -> None:
    """Raises NoAccess if the caller may not state expectations of flags in one of the projects."""
    needed = sorted({project for group in projects for project in group if project})
    for project in needed:
        if not caller.can(STATE, project=project):
            need = missing([STATE], project=project).message
            raise NoAccess.missing([STATE.value], f"{need[:-1]} to change what is expected of its flags.")


def list_enforcing_projects(saved: SavedContext, expectations: Iterable[Document]) -> Iterator[str]:
    """The projects that enforce some of these expectations of a saved context."""
    projects = (saved.enforcing_project(expectation["flag"]) for expectation in expectations)
    return (project for project in projects if project)


def _list_enforced(
    saved: SavedContext, stated: Collection[str], caller: Caller, projects: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yields flags and projects. An expectation without enforcement gets it once a permitted user saves it."""
    for flag in sorted({expectation["flag"] for expectation in saved.expectations}):
        enforcing, project = saved.enforced_in.get(flag), projects.get(flag)
        if enforcing and flag not in stated:
            yield flag, enforcing
        elif project and caller.can(STATE, project=project):
            yield flag, project
