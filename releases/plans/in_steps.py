"""Saves the form of a strategy in steps: what it would change becomes a plan, whose first step is taken at once."""

from collections.abc import Mapping, Sequence

from flagadmin.core.change_checks import Refusal
from flagadmin.core.errors import ValidationError
from groups.access import Caller
from releases.derive import EnvironmentChanges
from releases.models import ReleasePlan
from releases.plans.access import FlagPath, get_flag_path
from releases.plans.actions import start_milestone
from releases.plans.add import add_steps
from releases.plans.forms import read_pause, read_steps
from releases.safeguards.actions import set_safeguard

NOT_IN_STEPS = "Only one strategy with a share of users can be taken in steps. Nothing was saved."


def save_in_steps(
    places: Sequence[EnvironmentChanges], form: Mapping[str, str], *, caller: Caller
) -> ReleasePlan:
    """Raises ValidationError, and what adding a plan and starting it raise."""
    plan = add_in_steps(places, form, caller=caller)
    first = plan.milestones.all()[0]
    try:
        return start_milestone(get_flag_path(plan), plan.pk, first.pk, caller=caller)
    except Refusal as error:
        raise ValidationError(f"The plan was added and not started. {error.message}") from error


def add_in_steps(
    places: Sequence[EnvironmentChanges], form: Mapping[str, str], *, caller: Caller
) -> ReleasePlan:
    """A plan of what the form would change, not started. Raises ValidationError, and what adding a plan raises."""
    changes = [(place, change) for place in places for change in place.changes]
    if len(changes) != 1 or changes[0][1].action not in ("addStrategy", "updateStrategy"):
        raise ValidationError(NOT_IN_STEPS)
    [(changed, change)] = changes
    flag_path = FlagPath(changed.project, change.feature, changed.environment)
    values = {key: value for key, value in change.payload.items() if key not in ("id", "sortOrder")}
    strategy = str(change.payload.get("id", ""))
    steps, safeguard = read_steps(form, values), read_pause(form)
    plan = add_steps(flag_path, strategy, steps, caller=caller)
    if safeguard is not None:
        plan = set_safeguard(flag_path, plan.pk, safeguard, caller=caller)
    return plan
