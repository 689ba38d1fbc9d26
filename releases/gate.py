"""Refuses changes of an environment's results if it only accepts them in change requests.

Registered with `flagadmin.core.change_checks`, which calls it before and after a project changes. Only the effect
counts, whatever the operation: a title, a tag or a disabled flag changes no result. Tags that affect the number of
approvals are guarded too (`tag_watch.py`).

A form that asks for a later time is refused in the same way, in any environment, and becomes a scheduled request.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from flagadmin.core.audit.record import AuditEvent, EventType, read_transaction_time, record_all
from flagadmin.core.change_checks import KnownChange, Refusal, Watch
from flagadmin.core.change_options import (
    find_applied_environment,
    get_change_options,
    is_applied_to,
)
from flagadmin.core.installation.state import check_writable
from flagadmin.core.wording import choices
from projects.definitions import Definitions, read_definitions
from projects.models import Environment, Flag, ProjectEnvironment
from projects.revision import read_revisions
from releases.derive import ProposedChange, derive_changes, find_differing, find_users
from releases.gate_refusal import Gated, NeedsChangeRequest, NeedsSkip, find_skipping, make_skip_event
from releases.models import ReleasePlan, Safeguard
from releases.schedules.later import Postponed, StepsNeedRequest, find_postponed
from releases.tag_watch import Deciding, TagWatch, find_deciding

BROUGHT = "The flag brings a release plan or safeguards, which change it automatically: remove them first."


def guard(project_id: str) -> Callable[[], Refusal | None]:
    """A watch on the project's guarded environments, if there are any."""
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
    """Reads guarded environments' results for the flags before and after a change.

    The change has locked the flags by their names, or the whole project (`projects.access`).
    """

    def __init__(self, project_id: str, deciding: Mapping[str, Deciding]) -> None:
        """``deciding``: the tags that matter in each guarded environment."""
        self.project_id = project_id
        self.tags = TagWatch(project_id, deciding)
        self.revision: Mapping[str, int] | None = None
        """The revisions read first. If they are the same later, nothing has changed, and the project need
        not be read again.
        """
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
        """Joins definitions. Keeps those read before, because they may have changed by now."""
        known = self.flags or set()
        flags = [*read.flags, *(flag for flag in more.flags if flag["name"] not in known)]
        return Definitions(flags, more.segments | read.segments)

    def foresee(self, known: KnownChange) -> Refusal | None:
        for name, before in self.before.items():
            if known.environment in ("", name) and not find_skipping(self.project_id, name):
                after, gone = _predict(before, known)
                refusal = _refuse(self.project_id, name, before, after, set(), gone, applied=self.applied)
                if refusal is not None:
                    check_writable()
                    return refusal
        return None

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


def _predict(before: Definitions, known: KnownChange) -> tuple[Definitions, set[str]]:
    """The flags after the change, and the archived ones."""
    gone = {name for name, members in known.flags.items() if members is None}
    left = (flag for flag in before.flags if flag["name"] not in gone)
    edited: Any = [{**flag, **(known.flags.get(flag["name"]) or {})} for flag in left]
    segments: Any = {key: {**each, **known.segments.get(key, {})} for key, each in before.segments.items()}
    return Definitions(edited, segments), gone


def _guard_postponed(project_id: str, guarded: Sequence[str]) -> Callable[[], Refusal]:
    """Always refuses: a change that cannot be postponed is not made now either."""
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
    return _refuse(project_id, environment, before, after, recorded, applied=applied)


def _refuse(
    project_id: str,
    environment: str,
    before: Definitions,
    after: Definitions,
    recorded: set[tuple[str, str]],
    gone: Collection[str] = (),
    *,
    applied: str = "",
) -> NeedsChangeRequest | None:
    """``gone``: flags that the change would archive."""
    flags, segments = find_differing(before, after)
    entered = {flag["name"] for flag in after.flags} - {flag["name"] for flag in before.flags}
    brought = _find_brought(project_id, environment, entered) if entered else []
    if not flags and not segments and not brought:
        return None
    changed = sorted({*flags, *brought, *(find_users(after, segments) if segments else ())})
    if not is_skipped(project_id, environment, changed, recorded):
        if brought:
            return NeedsChangeRequest(Gated(project_id, environment, brought, None, effect=BROUGHT))
        rows = Flag.objects.archived().filter(project=project_id, name__in=flags)
        archived = {*rows.values_list("name", flat=True), *gone}
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


def is_skipped(
    project_id: str, environment: str, flags: Sequence[str], recorded: set[tuple[str, str]]
) -> bool:
    """Whether the caller wants to skip requests for these flags, and may: each skip is recorded."""
    if (caller := find_skipping(project_id, environment)) is None:
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
    if is_skipped(project_id, environment, flags, recorded):
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
