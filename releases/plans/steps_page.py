"""/in-steps/…: who changes at each step, if a strategy were saved in steps. The rest of the path is its form."""

from typing import Any

from django.utils import timezone

from flagadmin.core.errors import AppError, NoAccess, NotFound, ValidationError
from playground.pages.if_saved import IfSavedPage
from projects.drafting import DraftingPage
from projects.drafts import FlagEdit
from projects.models import Project
from releases.plans.forms import read_rollouts, read_transition
from releases.plans.in_steps import NOT_IN_STEPS
from releases.plans.rules import check_rollouts
from releases.plans.step_impacts import foresee_steps


class InStepsPage(IfSavedPage):
    template_name = "plans/if_in_steps.html"
    part_name = "plans/foreseen.html"
    prefix = "/in-steps"
    title = "Who changes at each step"

    def compare(self, page: DraftingPage, *, beside: bool) -> dict[str, Any]:
        post = self.request.POST
        try:
            edits = page.get_edits()
            rollouts, transition = read_rollouts(post.get("rollouts", "")), read_transition(post)
            check_rollouts(rollouts)
            if len(edits) != 1 or not isinstance(edits[0], FlagEdit):
                raise ValidationError(NOT_IN_STEPS)
            steps = list(foresee_steps(edits[0], rollouts, transition, now=timezone.now()))
        except (NoAccess, NotFound):
            raise
        except AppError as error:
            return {"refusals": [problem.message for problem in error.details] or [error.message]}
        refusing = Project.objects.filter(pk=edits[0].project, refuse_broken_expectations=True)
        return {"foreseen": steps, "refuses_broken": refusing.exists()}
