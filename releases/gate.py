"""Refuses changes of what an environment answers, where it takes them by change request only.

Registered with `flagadmin.core.change_checks`, which calls it before a project changes and once it has changed. What
counts is the effect, whichever operation has it: a title, a tag or a flag that is off changes no answer. Tags by which
approvals are counted are guarded too (`tag_watch.py`).

A form that asks for a later time is refused the same way, in any environment, and becomes a scheduled request.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.record import read_transaction_time, record_all
from flagadmin.core.change_checks import Refusal, Watch
from flagadmin.core.change_options import get_change_options
from flagadmin.core.wording import choices
from groups.access import Caller
from projects.definitions import Definitions, read_definitions
from projects.models import Environment, Flag, ProjectEnvironment
from projects.revision import read_revisions
from releases.applying import find_applied_environment, is_applied_to
from releases.derive import ProposedChange, derive_changes, find_differing, find_users
from releases.gate_refusal import SKIP, Gated, NeedsChangeRequest, NeedsSkip, make_skip_event
from releases.models import ReleasePlan, Safeguard
from releases.schedules.later import Postponed, StepsNeedRequest, find_postponed
from releases.tag_watch import Deciding, TagWatch, find_deciding

BROUGHT = "The flag brings a release plan or safeguards, which change it automatically: remove them first."


def guard(project_id: str) -> Callable[[], Refusal | None]:
    """Returns a watch on the project's guarded environments, if there are any."""
    links = ProjectEnvironment.objects.needing_requests().filter(project=project_id)
    policies = links.order_by("environment_id").values_list(
        "environment_id", "approval_rules", "required_approvals"
    )
    deciding = {
        name: find_deciding(rules, otherwise or 0)
        for name, rules, otherwise in policies
        if not is_applied_to(project_id, name)
    }
    if get_change_options().is_postponed:
        return _guard_postponed(project_id, list(deciding))
    if not deciding:
        return lambda: None
    return GateWatch(project_id, deciding)


class GateWatch(Watch):
    """Reads what guarded environments answer for the flags that are about to change, and again once they have.

    Whatever changes flags has locked them by their names, or the whole project (`projects.access`).
    """

    def __init__(self, project_id: str, deciding: Mapping[str, Deciding]) -> None:
        """``deciding``: the tags that count in each guarded environment."""
        self.project_id = project_id
        self.tags = TagWatch(project_id, deciding)
        self.revision: Mapping[str, int] | None = None
        """The revisions read first: if still the same, nothing has changed, and the project need not be read again."""
        self.before = {name: Definitions([], {}) for name in deciding}
        self.applied = find_applied_environment(project_id)
        self.flags: set[str] | None = set()
        """The flags that have been read; None: all of the project."""

    def look_at(self, flags: Collection[str] | None) -> None:
        self.tags.look_at(flags)
        if self.flags is None or (flags is not None and self.flags.issuperset(flags)):
            return
        if flags is None and not self.flags:
            self.revision = read_revisions([self.project_id])
        fresh = None if flags is None else set(flags) - self.flags
        for name, read in self.before.items():
            self.before[name] = self._join(read, read_definitions([self.project_id], name, flags=fresh))
        self.flags = None if fresh is None else self.flags | fresh

    def _join(self, read: Definitions, more: Definitions) -> Definitions:
        """Joins definitions. Those read before may have changed by now: they stay."""
        known = self.flags or set()
        flags = [*read.flags, *(flag for flag in more.flags if flag["name"] not in known)]
        return Definitions(flags, more.segments | read.segments)

    def __call__(self) -> Refusal | None:
        retagged = self.tags.find_retagged()
        recorded: set[tuple[str, str]] = set()
        if self.revision is None or read_revisions([self.project_id]) != self.revision:
            refusals = (
                _compare(self.project_id, name, read, recorded, self.flags, applied=self.applied)
                for name, read in self.before.items()
            )
            if refusal := next(filter(None, refusals), None):
                return refusal
        refusals = (_refuse_tags(self.project_id, name, pairs, recorded) for name, pairs in retagged.items())
        return next(filter(None, refusals), None)


def _guard_postponed(project_id: str, guarded: Sequence[str]) -> Callable[[], Refusal]:
    """Refuses in any case: what cannot be made later is not made now either."""
    links = ProjectEnvironment.objects.filter(project=project_id)
    own = set(links.values_list("environment_id", flat=True))
    names = [name for name in Environment.objects.names() if name in own]
    before = {name: read_definitions([project_id], name) for name in names}

    def check() -> Refusal:
        refusals = (_compare(project_id, name, before[name], set()) for name in guarded)
        if refusal := next(filter(None, refusals), None):
            return StepsNeedRequest(refusal.gated)
        return Postponed(find_postponed(project_id, before))

    return check


def _compare(
    project_id: str,
    environment: str,
    before: Definitions,
    recorded: set[tuple[str, str]],
    names: Collection[str] | None = None,
    *,
    applied: str = "",
) -> NeedsChangeRequest | None:
    after = read_definitions([project_id], environment, flags=names)
    flags, segments = find_differing(before, after)
    entered = {flag["name"] for flag in after.flags} - {flag["name"] for flag in before.flags}
    brought = _find_brought(project_id, environment, entered) if entered else []
    if not flags and not segments and not brought:
        return None
    changed = sorted({*flags, *brought, *(find_users(after, segments) if segments else ())})
    if not _is_skipped(project_id, environment, changed, recorded):
        if brought:
            return NeedsChangeRequest(Gated(project_id, environment, brought, None, effect=BROUGHT))
        rows = Flag.objects.archived().filter(project=project_id, name__in=flags)
        archived = set(rows.values_list("name", flat=True))
        changes: Sequence[ProposedChange] | None
        if applied:
            changes = _turn_off(flags) if archived.issuperset(flags) and not segments else None
        else:
            changes = derive_changes(before, after, archived)
        left = {flag["name"] for flag in after.flags} | archived
        removes = not left.issuperset(flags)
        return NeedsChangeRequest(
            Gated(project_id, environment, changed, changes, applied, removes=removes and not applied)
        )
    return None


def _is_skipped(
    project_id: str, environment: str, flags: Sequence[str], recorded: set[tuple[str, str]]
) -> bool:
    """Whether the caller wants to change these flags without a request, and may: it is recorded then, once for each.

    ``recorded``: the environments and flags for which this change has recorded it.
    """
    caller: Caller | None = get_change_options().skip_by
    if caller is None or not caller.can(SKIP, project=project_id, environment=environment):
        return False
    fresh = [name for name in flags if (environment, name) not in recorded]
    recorded.update((environment, name) for name in fresh)
    record_all([make_skip_event(project_id, environment, name) for name in fresh], actor=caller)
    return True


def _refuse_tags(
    project_id: str,
    environment: str,
    retagged: Sequence[tuple[str, str]],
    recorded: set[tuple[str, str]],
) -> NeedsSkip | None:
    flags = sorted({flag for flag, _ in retagged})
    if _is_skipped(project_id, environment, flags, recorded):
        return None
    effect = (
        f"This would add or remove tags that approval rules of {environment} in project {project_id} depend on "
        f"({choices({tag for _, tag in retagged})} on {choices(flags)}). Only those who may skip change requests there "
        "can do that."
    )
    return NeedsSkip(Gated(project_id, environment, flags, None, effect=effect))


def _find_brought(project_id: str, environment: str, entered: Collection[str]) -> list[str]:
    """Finds flags that are being moved here with plans or safeguards, which were approved elsewhere, if at all."""
    moves = AuditEvent.objects.filter(
        type=EventType.FEATURE_PROJECT_CHANGE, project=project_id, feature__in=entered
    )
    moved = list(moves.filter(created_at=read_transaction_time()).values_list("feature", flat=True))
    here = {"flag__name__in": moved, "environment": environment}
    plans = ReleasePlan.objects.filter(
        **here, state__in=(ReleasePlan.State.RUNNING, ReleasePlan.State.PAUSED)
    )
    names = plans.values_list("flag__name", flat=True)
    return sorted({*names, *Safeguard.objects.filter(**here).values_list("flag__name", flat=True)})


def _turn_off(flags: Sequence[str]) -> list[ProposedChange]:
    """Makes room for archiving them by the request of another environment: flags that are off answer nothing."""
    return [ProposedChange(name, "updateEnabled", {"enabled": False}) for name in flags]
