"""Writes the data of another installation, everything in one transaction, or nothing.

A plan is the same work, rolled back, so it shows exactly what would happen.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from uuid import uuid4

from django.db import transaction

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.change_checks import Refusal
from flagadmin.core.change_checks.comments import tidy_comment
from flagadmin.core.change_options import changing
from flagadmin.core.db.transactions import run_with_retries, transactional
from flagadmin.core.errors import AppError, Problem
from flagadmin.core.http.logs import request_id
from importer.moving.leave_out import Choice
from importer.moving.reading.installation import Installation
from importer.moving.report import Kind, Line, Report
from importer.moving.writing.keeping import SYSTEM, Edits, Refused, comment_on_move, read_edits
from importer.moving.writing.people import (
    find_roles,
    move_access,
    move_groups,
    move_own_things,
    move_people,
    move_roles,
)
from importer.moving.writing.projects import ProjectMove
from importer.moving.writing.releases import move_plans, move_templates
from importer.moving.writing.settings import move_settings, move_tokens
from importer.moving.writing.shared import move_shared, move_tags
from importer.moving.writing.traces import move_listed_dates, move_traces
from projects.access import lock_projects

Tell = Callable[[str], None]
"""Called with each step that begins."""


def move(
    installation: Installation,
    *,
    write: bool,
    overwrite: bool = False,
    by: str = "",
    tell: Tell = lambda doing: None,
) -> Report:
    """Writes everything new or changed, or only reports it. Objects that exist only here stay unchanged.

    If anything is refused, nothing is written. Edits made here since the last move stay, unless ``overwrite``.
    """
    with _in_one_change(comment_on_move(installation.address, by)):
        work = partial(_move_in_transaction, installation, tell, write=write, overwrite=overwrite)
        return run_with_retries(work)


@contextmanager
def _in_one_change(comment: str) -> Iterator[None]:
    """Groups all events of the move, like those of a request."""
    token = request_id.set(request_id.get() or uuid4().hex)
    try:
        with changing(comment=tidy_comment(comment)):
            yield
    finally:
        request_id.reset(token)


def _move_in_transaction(installation: Installation, tell: Tell, *, write: bool, overwrite: bool) -> Report:
    installation.refused.clear()  # left by an attempt that is repeated
    report = Report(lines=list(installation.left))
    unreadable: list[Problem] = []
    with changing(comes_from_elsewhere=True, keeps_unreadable=True, unreadable=unreadable):
        _move(installation, report, tell, write=write, overwrite=overwrite)
    report.lines += [Line(Kind.NOTE, "value that SDKs cannot read", each.message) for each in unreadable]
    return report


def _move(installation: Installation, report: Report, tell: Tell, *, write: bool, overwrite: bool) -> None:
    # Before the first event: all events have its time, which must not precede another user's change.
    lock_projects(SYSTEM, [project.id for project in installation.projects])
    edits = Edits() if overwrite else read_edits(installation.address)
    _move_all(installation, edits, report, tell)
    if not write or report.is_refused:
        transaction.set_rollback(True)
    elif report.has_work:
        after = {"version": installation.version, "counts": report.counts}
        moved = Event(type=EventType.INSTALLATION_MOVED, subject=installation.address, after=after)
        record(moved, actor=SYSTEM)


def _move_all(installation: Installation, edits: Edits, report: Report, tell: Tell) -> None:
    tell("Comparing what projects share with what is here")
    _attempt("", report, lambda: move_shared(installation, edits))
    _attempt("", report, lambda: _move_people(installation, edits))
    for project in sorted(installation.projects, key=lambda each: each.id):
        tell(f"Comparing {len(project.listed):,} flags of project {project.id} with what is here")
        moving = ProjectMove(installation, project, edits)
        if _attempt(project.id, report, moving.move):
            report.same += moving.same
        else:
            installation.refused.add(project.id)
    _attempt("", report, lambda: move_tags(installation, edits))
    _attempt("", report, lambda: move_templates(installation, edits))
    _attempt("", report, lambda: move_plans(installation, edits))
    _attempt("", report, lambda: move_settings(installation, edits))
    _attempt("", report, lambda: move_listed_dates(installation))
    _attempt("", report, lambda: move_tokens(installation))
    if (hidden := installation.hidden) is not None:
        tell("Copying access, usage and history")
        _attempt("", report, lambda: move_access(installation, hidden, edits))
        _attempt("", report, lambda: move_own_things(installation, hidden))
        _attempt("", report, lambda: move_traces(installation, hidden.database))


def _move_people(installation: Installation, edits: Edits) -> Iterator[Line]:
    """Moves roles before the people who hold them, and groups after their members."""
    hidden = installation.hidden
    if hidden is None:
        yield from move_people(installation, edits, {})
        return
    yield from move_roles(hidden, edits)
    roles = find_roles(hidden)
    yield from move_people(installation, edits, roles)
    yield from move_groups(hidden, edits, roles)


def _attempt(project: str, report: Report, work: Callable[[], Iterable[Line]]) -> bool:
    """Does all of the work or none, and reports it, because later steps may be refused too."""
    subject = f"project {project}" if project else "what projects share"
    choice = str(Choice("project", project)) if project else ""
    try:
        with transaction.atomic():
            lines = transactional(lambda: list(work()))()
    except Refused as refused:
        report.lines += refused.lines
    except Refusal as error:
        detail = error.message
        report.lines.append(Line(Kind.REFUSE, subject, detail, project, choice=choice))
    except AppError as error:
        details = list(map(str, error.details)) or [error.message]
        report.lines += [Line(Kind.REFUSE, subject, detail, project, choice=choice) for detail in details]
    else:
        report.lines += lines
        return True
    return False
