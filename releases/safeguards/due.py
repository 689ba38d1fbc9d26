"""Turns flags off whose own safeguards are breached, on whichever server looks first: every minute.

Safeguards of plans are looked at with their plans.
"""

import logging
from collections.abc import Collection, Sequence
from functools import partial

from django.db.models import Q
from django.utils import timezone

from flagadmin.core.audit.record import record
from flagadmin.core.change_options import changing
from flagadmin.core.db.transactions import transactional
from groups.access import Caller
from projects.flags.environments.actions import disable_flag
from projects.models import FlagEnvironment
from projects.projects.policies import needs_request
from releases.attempts import SOON, Attempts, claim_due, wait_briefly_for_locks
from releases.gate_refusal import make_skip_event
from releases.models import Safeguard
from releases.plans.access import FlagPath
from releases.plans.steps import LOOK_EVERY
from releases.requests.access import lock_project
from releases.safeguards.judge import Judge, State, Verdict
from releases.safeguards.queries import get_safeguard_path

log = logging.getLogger("flagadmin.releases")


BY_SAFEGUARD = Caller.system("Safeguard")
"""Turns off what somebody with the permission has guarded."""


def look_at_flags() -> None:
    """Looks at the safeguards of flags that are due for it."""
    for keys in claim_due("releases_safeguard", LOOK_EVERY):
        _look_at(keys)


def _look_at(keys: Sequence[str]) -> None:
    now = timezone.now()
    safeguards = list(Safeguard.objects.filter(pk__in=keys).select_related("flag").order_by("pk"))
    places = find_places_on(safeguards)
    judge, attempts = Judge(now), Attempts()
    for safeguard in safeguards:
        is_on = (safeguard.flag_id, safeguard.environment_id) in places
        if is_on == (safeguard.numbers_from is None):
            Safeguard.objects.filter(pk=safeguard.pk).update(numbers_from=now if is_on else None)
        elif is_on and (verdict := judge.judge_of_flag(safeguard)).state == State.BREACHED:
            act, note = partial(turn_off, safeguard, verdict), partial(_note_failure, safeguard)
            attempts.attempt(safeguard.pk, get_safeguard_path(safeguard).project, act, note)
    Safeguard.objects.filter(pk__in=attempts.left).update(look_at=now + SOON)


def find_places_on(safeguards: Collection[Safeguard]) -> set[tuple[int | None, str | None]]:
    """Finds those of their active flags and environments in which the flag is on."""
    of_any = Q(flag__in={safeguard.flag_id for safeguard in safeguards}, flag__archived_at=None)
    return set(FlagEnvironment.objects.filter(of_any, enabled=True).values_list("flag_id", "environment_id"))


def turn_off(seen: Safeguard, verdict: Verdict) -> None:
    """Turns the flag off, unless the safeguard was removed or the flag turned off since. Raises what that raises."""
    flag_path = get_safeguard_path(seen)
    approved_in = flag_path.project, flag_path.environment
    with changing(comment=verdict.sentence, approved_in=approved_in):
        _turn_off(seen, flag_path)


@transactional
def _turn_off(seen: Safeguard, flag_path: FlagPath) -> None:
    wait_briefly_for_locks()
    lock_project(flag_path.project)
    rows = Safeguard.objects.filter(pk=seen.pk, numbers_from=seen.numbers_from)
    if rows.update(numbers_from=None):
        disable_flag(*flag_path, caller=BY_SAFEGUARD)
        if not seen.approved and needs_request(flag_path.project, [flag_path.environment]):
            skipped = make_skip_event(flag_path.project, flag_path.environment, flag_path.feature)
            record(skipped, actor=BY_SAFEGUARD)


def _note_failure(safeguard: Safeguard, reason: str) -> None:
    log.warning("Safeguard %s could not turn its flag off: %s", safeguard.pk, reason)
