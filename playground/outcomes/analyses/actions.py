"""Makes and deletes analyses of flags. They change nothing that SDKs read."""

import gzip
from io import BytesIO

from django.db import transaction
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import Conflict, NoAccess, ValidationError
from groups.access import Caller, Permission
from playground.models import Analysis, Work
from playground.outcomes import experiment
from playground.outcomes.analyses.design import Design
from playground.outcomes.analyses.queries import access_analysis, make_analysis_document
from playground.outcomes.history import Sight, read_now
from playground.outcomes.parquet import MAGIC
from playground.outcomes.runs import MAX_UNPACKED
from playground.outcomes.sql import check_query
from playground.outcomes.table import Limits, Table, is_packed
from playground.user_runs import worker
from projects.access import access_flag, check_environment
from projects.models import Flag

MAX_OF_FLAG = 100
MAX_UNFINISHED = 5
"""The maximum number of analyses of one person that have not ended."""
MAX_NAME_LENGTH = 200
UNFINISHED = (Work.State.WAITING, Work.State.RUNNING)


@transactional
def create_analysis(
    body: bytes,
    design: Design,
    *,
    project: str,
    flag: str,
    environment: str,
    name: str,
    file_name: str = "",
    caller: Caller,
    starts: bool = True,
    query: str = "",
) -> Analysis:
    """Stores a table, which is analyzed in a process beside the workers. Whoever may read the flag may do this.

    ``starts``: whether to start that process; else the next one does the work. ``query`` names one whose rows take the
    place of ``body``.

    Raises NotFound; ValidationError for the design, the environment and the header of the table; Conflict if the extra
    is not installed, or there are too many analyses. Problems of rows become those of the analysis.
    """
    found = access_flag(caller, project, flag)
    check_environment(environment)
    design.check(now := read_now())
    if not experiment.is_installed():
        raise Conflict(str(experiment.ExtraMissing()))
    if not 1 <= len(name) <= MAX_NAME_LENGTH:
        raise ValidationError.at("name", f"must have 1 to {MAX_NAME_LENGTH} characters")
    if query:
        check_query(caller, query)
    elif not body.startswith(MAGIC):  # which takes another process to read
        design.check_columns(Table(BytesIO(body), until=now, limits=Limits(unpacked=MAX_UNPACKED)).columns)
    _check_room(found, caller)
    sight = Sight.of(caller, environment)
    analysis = Analysis.objects.create(
        flag=found,
        environment_id=environment,
        name=name,
        design=design.to_json(),
        sight={"projects": sorted(sight.projects), "withDeleted": sight.with_deleted, "query": query},
        caller_id=caller.id,
        caller_name=caller.name,
        file_name=(file_name or query)[:255],
        created_at=timezone.now(),
        body=body if is_packed(body) else gzip.compress(body, 1),
    )
    record(_make_event(EventType.ANALYSIS_CREATED, analysis, "after"), actor=caller)
    if starts:
        transaction.on_commit(worker.start)
    return analysis


@transactional
def delete_analysis(flag: Flag, analysis_id: str, *, caller: Caller) -> Analysis:
    """Deletes an analysis, and stops it. Its maker may, and whoever may update the flag.

    Raises NotFound, NoAccess.
    """
    analysis = access_analysis(flag, analysis_id)
    if not may_delete(caller, analysis):
        raise NoAccess("Only its maker, and whoever may update the flag, can delete an analysis.")
    record(_make_event(EventType.ANALYSIS_DELETED, analysis, "before"), actor=caller)
    # No progress is stored meanwhile.
    Analysis.objects.select_for_update().only("id").get(pk=analysis.pk).delete()
    return analysis


def may_delete(caller: Caller, analysis: Analysis) -> bool:
    is_maker = (analysis.caller_id, analysis.caller_name) == (caller.id, caller.name)
    return is_maker or caller.can(Permission.UPDATE_FEATURE, project=analysis.flag.project_id)


def _check_room(flag: Flag, caller: Caller) -> None:
    if Analysis.objects.filter(flag=flag).count() >= MAX_OF_FLAG:
        raise Conflict(f"Flag {flag.name} has {MAX_OF_FLAG} analyses. Delete one first.")
    unfinished = Analysis.objects.filter(state__in=UNFINISHED, caller_id=caller.id, caller_name=caller.name)
    if unfinished.count() >= MAX_UNFINISHED:
        raise Conflict(
            f"{MAX_UNFINISHED} of your analyses have not ended. Delete one, or wait for one to end."
        )


def _make_event(kind: EventType, analysis: Analysis, member: str) -> Event:
    document = make_analysis_document(analysis)
    names = ("id", "name", "from", "to", "measures", "control", "method")
    shown = {name: document[name] for name in names}
    return Event.of_flag(
        kind, analysis.flag, analysis.environment_id, subject=analysis.name, **{member: shown}
    )
