"""Converts an import plan to JSON documents for the preview page, the management command and stored runs."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from flagadmin.core.db.copy_rows import copy_rows
from importer.models import FlagReport, ImportRun
from importer.plan.import_plan import Action, FlagPlan, Plan
from importer.plan.issues import make_no_access
from importer.plan.unproposable import foresee_request
from importer.promotion import Promotion
from importer.report.validation import make_validation_report
from projects.history.diff import Change, diff, summary

MAX_KEPT = 1_000
"""The problems, and the notes, that one preview stores."""


def plan_document(plan: Plan) -> dict[str, Any]:
    """The whole plan: its flags, other objects it creates, its issues."""
    return {
        **_plan_summary(plan),
        "problems": [issue.problem().as_dict() for issue in plan.issues],
        "flags": [report.document() for report in make_flag_reports(plan)],
    }


def _plan_summary(plan: Plan) -> dict[str, Any]:
    """The plan without its flags and issues."""
    references = plan.references
    return {
        "project": plan.project,
        "environment": plan.environment,
        "sources": plan.sources,
        "counts": plan.counts,
        "contextFields": [new["name"] for new in references.new_fields] if references else [],
        "tagTypes": [new["name"] for new in references.new_tag_types] if references else [],
        "segments": [new["name"] for new in references.new_segments] if references else [],
        "savedContexts": {
            action.value: plan.saved_contexts_with(action)
            for action in (Action.CREATE, Action.CHANGE, Action.SAME)
        },
        **make_validation_report(plan),
        "fingerprint": plan.fingerprint,
    }


def make_promotion_document(promotion: Promotion, plan: Plan) -> dict[str, Any]:
    """Makes the document of what a promotion would do, as the API answers it. It changes whenever the plan does."""
    return {
        "project": plan.project,
        "from": promotion.source,
        "to": plan.environment,
        "counts": plan.counts,
        "features": [report.document() for report in make_flag_reports(plan)],
        **make_validation_report(plan),
        "fingerprint": plan.fingerprint,
    }


def preview_document(plan: Plan) -> dict[str, Any]:
    """The data of the preview page without the flags.

    ``general`` is the number of problems that excluding flags cannot solve, ``request`` what becomes of the plan where
    changes need a change request.
    """
    problems = [issue.problem().as_dict() for issue in plan.issues[:MAX_KEPT]]
    return {
        **_plan_summary(plan),
        "problems": problems,
        "problemCount": len(plan.issues),
        "general": sum(plan.flags.keys().isdisjoint({f.flag, *f.users}) for f in plan.issues),
        "notes": plan.notes[:MAX_KEPT],
        "noteCount": len(plan.notes),
        "defaulted": plan.defaulted[:MAX_KEPT],
        "request": foresee_request(plan),
        "refusal": make_no_access(plan.missing_permissions, plan.project).message
        if plan.missing_permissions
        else "",
    }


# Flag by flag ----------------------------------------------------------------------------------------------


def make_flag_reports(plan: Plan) -> Iterator[FlagReport]:
    """Reports for each flag with all changes, in the order of the file."""
    segments = plan.references.known.segments if plan.references else {}
    for flag in plan.flags.values():
        report = make_brief_report(flag, plan)
        if flag.action is Action.CREATE and flag.after is not None:
            report.summary = summary(flag.after, segments)
        if flag.action is Action.CHANGE and flag.after is not None and flag.before is not None:
            report.changes = [_change(change) for change in diff(flag.before, flag.after, segments)]
        yield report


def make_brief_reports(plan: Plan) -> Iterator[FlagReport]:
    """Reports for each flag without changes, which are in the audit log once an import is done."""
    return (make_brief_report(flag, plan) for flag in plan.flags.values())


def make_brief_report(flag: FlagPlan, plan: Plan) -> FlagReport:
    in_project = flag.stored is not None and flag.stored.project == plan.project
    return FlagReport(name=flag.name, action=flag.action.value, reason=flag.reason, is_here=in_project)


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
