"""A plan as a document: for the page that shows it, the command's report, and whoever keeps one."""

from typing import Any

from importer.differences import Change, differences, summary
from importer.outcome import Action, FlagPlan
from importer.plan import Plan
from importer.validation_report import validation_report


def plan_report(plan: Plan) -> dict[str, Any]:
    """Everything a plan says: what happens to each flag, what else is created, what stands against it."""
    words = plan.words
    return {
        "project": plan.body.project,
        "environment": plan.body.environment,
        "sources": plan.sources,
        "counts": plan.counts,
        "flags": flag_reports(plan),
        "contextFields": [new["name"] for new in words.new_fields] if words else [],
        "tagTypes": [new["name"] for new in words.new_tag_types] if words else [],
        "segments": [new["name"] for new in words.new_segments] if words else [],
        "problems": [finding.problem().as_dict() for finding in plan.findings],
        **validation_report(plan),
        "fingerprint": plan.fingerprint,
    }


def flag_reports(plan: Plan) -> list[dict[str, Any]]:
    """Per flag ``{name, action, reason?, summary?, changes?}``; changes are ``{part, before, after}``."""
    segments = plan.words.vocabulary.segments if plan.words else {}
    return [_flag_report(flag, segments) for flag in plan.flags.values()]


def _flag_report(flag: FlagPlan, segments: Any) -> dict[str, Any]:
    report: dict[str, Any] = {"name": flag.name, "action": flag.action.value}
    if flag.reason:
        report["reason"] = flag.reason
    if flag.action is Action.CREATE and flag.after is not None:
        report["summary"] = summary(flag.after, segments)
    if flag.action is Action.CHANGE and flag.after is not None and flag.before is not None:
        report["changes"] = [_change(change) for change in differences(flag.before, flag.after, segments)]
    return report


def _change(change: Change) -> dict[str, str | None]:
    return {"part": change.part, "before": change.before, "after": change.after}
