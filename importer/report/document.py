"""A plan as a document: for the page that shows it, the command's report, and whoever keeps one."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from flagadmin.db.copy_rows import copy_rows
from importer.models import FlagReport, ImportRun
from importer.plan.import_plan import Action, FlagPlan
from importer.plan.permissions import no_access
from importer.plan.build import Plan
from importer.report.diff import Change, differences, summary
from importer.report.validation import validation_report

MOST_KEPT = 1_000
"""Problems and notes of one preview."""


def plan_report(plan: Plan) -> dict[str, Any]:
    """Everything a plan says: what happens to each flag, what else is created, what stands against it."""
    return {
        **report_head(plan),
        "problems": [finding.problem().as_dict() for finding in plan.findings],
        "flags": [report.document() for report in flag_reports(plan)],
    }


def report_head(plan: Plan) -> dict[str, Any]:
    """The same without what there may be of every flag."""
    words = plan.words
    return {
        "project": plan.body.project,
        "environment": plan.body.environment,
        "sources": plan.sources,
        "counts": plan.counts,
        "contextFields": [new["name"] for new in words.new_fields] if words else [],
        "tagTypes": [new["name"] for new in words.new_tag_types] if words else [],
        "segments": [new["name"] for new in words.new_segments] if words else [],
        **validation_report(plan),
        "fingerprint": plan.fingerprint,
    }


def preview_of(plan: Plan) -> dict[str, Any]:
    """What a pending run's page says beside its flags: the head of the report, and what stands against the import.

    ``general`` counts the problems that no flag can be excluded to be rid of.
    """
    problems = [finding.problem().as_dict() for finding in plan.findings[:MOST_KEPT]]
    return {
        **report_head(plan),
        "problems": problems,
        "problemCount": len(plan.findings),
        "general": sum(plan.flags.keys().isdisjoint({f.flag, *f.users}) for f in plan.findings),
        "notes": plan.notes[:MOST_KEPT],
        "noteCount": len(plan.notes),
        "defaulted": plan.defaulted[:MOST_KEPT],
        "refusal": no_access(plan.missing, plan.body.project).message if plan.missing else "",
    }


# Flag by flag ----------------------------------------------------------------------------------------------


def flag_reports(plan: Plan) -> Iterator[FlagReport]:
    """In the order of the file, with every difference."""
    segments = plan.words.vocabulary.segments if plan.words else {}
    for flag in plan.flags.values():
        report = bare_report(flag, plan)
        if flag.action is Action.CREATE and flag.after is not None:
            report.summary = summary(flag.after, segments)
        if flag.action is Action.CHANGE and flag.after is not None and flag.before is not None:
            report.changes = [_change(change) for change in differences(flag.before, flag.after, segments)]
        yield report


def bare_reports(plan: Plan) -> Iterator[FlagReport]:
    """In the order of the file, without the differences: of what is done, the audit log has them."""
    return (bare_report(flag, plan) for flag in plan.flags.values())


def bare_report(flag: FlagPlan, plan: Plan) -> FlagReport:
    is_here = flag.stored is not None and flag.stored.project == plan.body.project
    return FlagReport(name=flag.name, action=flag.action.value, reason=flag.reason, is_here=is_here)


def _change(change: Change) -> dict[str, str | None]:
    return {"part": change.part, "before": change.before, "after": change.after}


COLUMNS = ("name", "action", "reason", "summary", "changes", "is_here")


def write_reports(run: ImportRun, reports: Iterable[FlagReport]) -> None:
    copy_rows(
        "importer_flagreport",
        ("run_id", *COLUMNS),
        (
            (run.id, r.name, r.action, r.reason, r.summary, orjson.dumps(r.changes).decode(), r.is_here)
            for r in reports
        ),
    )
