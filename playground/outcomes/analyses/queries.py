"""Finds analyses, which whoever may read the flag may read, and describes them as the API does."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Subquery
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import Conflict, NotFound
from flagadmin.core.http.responses import iso
from groups.models import User
from playground.models import Analysis
from playground.outcomes.analyses.design import Design
from projects.models import Flag

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
