"""Flags that can go, as the API answers them, and the task for whoever removes one from the code."""

from flagadmin.core.document import Document
from flagadmin.core.http.timestamps import iso
from playground.comparison.shares import Answer
from playground.engine.outcomes import State
from playground.stale.queries import Proof

MAX_PLACES = 20
"""The maximum number of places listed for a repository in a task."""


def make_proof_document(proof: Proof) -> Document:
    flag = proof.flag
    return {
        "name": flag.name,
        "project": flag.project_id,
        "why": list(proof.why),
        "ageDays": proof.age_days,
        "lifetimeDays": proof.lifetime_days,
        "unchangedDays": proof.unchanged_days,
        "everybodyGets": proof.everybody_gets,
        "keep": make_kept_document(proof.kept),
        "lastEvaluated": {name: iso(at) for name, at in proof.seen.items()},
        "dependents": list(proof.dependents),
        "inCode": [{"repository": each.report.repository, "count": each.count} for each in proof.in_code],
        "isCompleted": proof.completed is not None,
        "canLeaveTheCode": proof.can_leave_the_code,
        "canBeArchived": proof.can_be_archived,
        "task": write_task(proof),
    }


def make_kept_document(kept: Answer | None) -> Document | None:
    if kept is None:
        return None
    return {"isEnabled": kept.state is State.ON, "variant": kept.variant}


def write_task(proof: Proof) -> str:
    """A ticket, or the prompt of an agent. "" while the flag has to stay. The flag's name is quoted as data."""
    kept, name = proof.kept, proof.flag.name
    if kept is None or not proof.can_leave_the_code:
        return ""
    if kept.state is not State.ON:
        keep = "Keep what runs while it is off, and delete what runs while it is on."
    elif kept.variant is None:
        keep = "Keep what runs while it is on, and delete what runs while it is off."
    else:
        keep = f'Keep what runs for its variant "{kept.variant}", and delete all else.'
    gets = ", ".join(f"{environment}: {words}" for environment, words in proof.everybody_gets.items())
    where = "" if not proof.differing else " in production"
    lines = [
        f'Remove the feature flag "{name}" from the code.',
        "",
        f"Everybody gets the same result{where} ({gets}), and it has not changed for {proof.unchanged_days} days.",
        keep,
        "Delete code, tests, configuration and translations that nothing uses then.",
    ]
    if proof.differing:
        lines.append(f"What is tried in {', '.join(proof.differing)} ends with it: ask who does.")
    if proof.in_code:
        lines += ["", "It is in these places:"]
    for each in proof.in_code:
        lines += [
            f"- {each.report.repository}: {place.path}:{place.line}" for place in each.places[:MAX_PLACES]
        ]
        if each.count > MAX_PLACES:
            lines.append(f"- {each.report.repository}: {each.count - MAX_PLACES:,} more")
    return "\n".join(lines)
