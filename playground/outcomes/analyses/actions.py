"""Makes and deletes analyses of flags. They change nothing that SDKs read.

Finds analyses, which whoever may read the flag may read, and describes them as the API does.
"""

import gzip
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import Conflict, NoAccess, NotFound, ValidationError
from flagadmin.core.http.responses import iso
from groups.access import Caller, Permission
from groups.models import User
from playground.models import Analysis, Work
from playground.outcomes import experiment
from playground.outcomes.analyses.design import Design
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


CSV_COLUMNS = (
    "measure",
    "segment",
    "segment value",
    "side",
    "units",
    "value",
    "control",
    "control units",
    "control value",
    "difference",
    "difference low",
    "difference high",
    "lift",
    "lift low",
    "lift high",
    "level",
    "p",
    "p adjusted",
    "significant",
    "smallest detectable lift",
    "sentence",
)

MAKER = Coalesce(
    Subquery(User.objects.filter(pk=OuterRef("caller_id")).exclude(name="").values("name")), "caller_name"
)
"""The full name of who asked, as pages show it."""


def list_analyses(flag: Flag) -> list[tuple[Analysis, str | None]]:
    """The latest first, each with what came out, without tables and results."""
    analyses = Analysis.objects.filter(flag=flag).select_related("flag").defer("body", "result")
    return [(each, each.sentence) for each in analyses.annotate(sentence=KT("result__sentence"))]


def access_analysis(flag: Flag, analysis_id: str) -> Analysis:
    """Without its table, and after a move of the flag without names of other flags. Raises NotFound."""
    try:
        found = (
            Analysis.objects.filter(flag=flag, id=UUID(analysis_id))
            .select_related("flag")
            .annotate(maker=MAKER)
            .defer("body")
            .first()
        )
    except ValueError:
        found = None
    if found is None:
        raise NotFound(f"Analysis {analysis_id[:100]} of flag {flag.name} not found.")
    _leave_out_others(found)
    return found


def _leave_out_others(analysis: Analysis) -> None:
    """Leaves out the check that names flags of the project where the flag was, which readers may not see."""
    checks = (analysis.result or {}).get("checks", [])
    kept = [check for check in checks if check["name"] != "interaction"]
    moves = AuditEvent.objects.filter(type=EventType.FEATURE_PROJECT_CHANGE, feature=analysis.flag.name)
    if len(kept) < len(checks) and moves.filter(created_at__gt=analysis.created_at).exists():
        analysis.result = {**(analysis.result or {}), "checks": kept}


def make_analysis_document(analysis: Analysis) -> dict[str, Any]:
    """Without its result."""
    return {
        "id": str(analysis.pk),
        "name": analysis.name,
        "project": analysis.flag.project_id,
        "feature": analysis.flag.name,
        "environment": analysis.environment_id,
        "state": analysis.state,
        **Design.from_json(analysis.design).make_document(),
        "fileName": analysis.file_name or None,
        "rows": analysis.rows,
        "rowsDone": analysis.rows_done,
        "createdBy": analysis.caller_name,
        "createdAt": iso(analysis.created_at),
        "finishedAt": iso(analysis.finished_at) if analysis.finished_at else None,
        "problem": analysis.problem or None,
    }


def read_result(analysis: Analysis) -> dict[str, Any]:
    """Raises Conflict if the analysis is not done."""
    result: dict[str, Any] | None = analysis.result
    if result is None:
        raise Conflict(f"This analysis is {analysis.get_state_display().lower()}: it has no result.")
    return result


def list_csv_rows(result: dict[str, Any]) -> Iterator[Sequence[Any]]:
    """The cells of CSV_COLUMNS for each comparison, those of all units first."""
    for comparison in result["comparisons"]:
        yield _make_csv_row(comparison, "", "")
    for part in result["breakdowns"]:
        for comparison in part["comparisons"]:
            yield _make_csv_row(comparison, part["segment"], part["value"])


def _make_csv_row(comparison: dict[str, Any], segment: str, value: str) -> Sequence[Any]:
    side, control = comparison["sideValue"], comparison["controlValue"]
    intervals = (comparison["interval"], comparison["liftInterval"])
    (low, high), (lift_low, lift_high) = ((each["low"], each["high"]) for each in intervals)
    return (
        comparison["measure"],
        segment,
        value,
        side["side"],
        side["units"],
        side["value"],
        control["side"],
        control["units"],
        control["value"],
        comparison["difference"],
        low,
        high,
        comparison["lift"],
        lift_low,
        lift_high,
        comparison["level"],
        comparison["p"],
        comparison["pAdjusted"],
        "yes" if comparison["isSignificant"] else "no",
        comparison["detectable"],
        comparison["sentence"],
    )
