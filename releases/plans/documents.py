"""Release plans in the API's form, with the reference server's shape."""

from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from releases.models import ReleasePlan
from releases.safeguards.queries import safeguard_document
from releases.templates.queries import milestone_document


def plan_document(plan: ReleasePlan) -> Document:
    return {
        "id": plan.pk,
        "discriminator": "plan",
        "name": plan.name,
        "description": plan.description or None,
        "featureName": plan.flag.name,
        "environment": plan.environment_id,
        "createdByUserId": plan.author_id or 0,
        "createdAt": iso(plan.created_at),
        "activeMilestoneId": plan.active_id,
        "releasePlanTemplateId": plan.template_key,
        "state": plan.state,
        "reason": plan.reason,
        "pauseIfExpectationBreaks": plan.pause_if_broken,
        "milestones": [
            milestone_document(milestone, plan.paused_at if milestone.pk == plan.active_id else None)
            for milestone in plan.milestones.all()
        ],
        "safeguards": [safeguard_document(safeguard) for safeguard in plan.safeguards.all()],
    }
