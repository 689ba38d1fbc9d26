"""Refuses changes of what an environment answers, where it takes them by change request only.

Registered with `flagadmin.core.change_checks`, which calls it before a project changes and once it has changed. What
counts is the effect, whichever operation has it: a title, a tag or a flag that is off changes no answer.

A form that asks for a later time is refused the same way, in any environment, and becomes a scheduled request.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record_all
from flagadmin.core.change_checks import Refusal, Watch, is_postponed, skipped_by
from flagadmin.core.errors import NoAccess, counted
from groups.access import Caller
from groups.permissions import Permission
from projects.definitions import Definitions, read_definitions
from projects.models import Environment, Flag, ProjectEnvironment
from projects.revision import revisions
from releases.applying import find_applied_environment, is_applied_to, proposed_changes
from releases.derive import ProposedChange, derive_changes, find_differing
from releases.requests.propose import add_changes, send_changes
from releases.schedules.later import Postponed, find_postponed

SKIP = Permission.SKIP_CHANGE_REQUEST


class Gated(NamedTuple):
    """What a change would do where it needs a change request. ``changes`` is None if no request can do it.

    ``applied``: where the change is approved, by a request of another environment than the gated one.
    """

    project: str
    environment: str
    flags: Sequence[str]
    changes: Sequence[ProposedChange] | None
    applied: str = ""


class NeedsChangeRequest(Refusal):
    """A change of what an environment answers, which needs a change request there."""

    title = "This needs a change request"
    template_name = "releases/needs_request.html"
    status = NoAccess.status

    def __init__(self, gated: Gated) -> None:
        super().__init__(gated)
        self.gated = gated

    @property
    def message(self) -> str:
        gated = self.gated
        named = ", ".join(gated.flags[:3]) + (
            f" and {len(gated.flags) - 3} more" if len(gated.flags) > 3 else ""
        )
        named = named or counted(1, "segment")
        effect = f"This changes what it answers for {named}."
        if gated.applied:
            effect = (
                f"This request of {gated.applied} also changes what {gated.environment} answers for {named}."
            )
        return (
            f"Changes of {gated.environment} in project {gated.project} need a change request. {effect} Nothing was "
            f"saved.{self._way_on(named)}"
        )

    def _way_on(self, named: str) -> str:
        """How to apply a request that changes another environment too."""
        gated = self.gated
        if not gated.applied:
            return ""
        skipped = f"somebody who may skip change requests in {gated.environment}"
        if gated.changes is None:
            return f" It can be applied by {skipped}."
        return f" Turn {named} off in {gated.environment} by a request first, or have this one applied by {skipped}."

    def as_app_error(self) -> NoAccess:
        gated = self.gated
        how = f"POST /api/admin/projects/{gated.project}/environments/{gated.environment}/change-requests"
        made = f" Make a request: {how}." if gated.changes is not None or not gated.applied else ""
        return NoAccess.missing([SKIP.value], f"{self.message}{made}")

    def may_be_skipped_by(self, caller: Any) -> bool:
        can: bool = caller.can(SKIP, project=self.gated.project, environment=self.gated.environment)
        return can

    def settle(self, answers: Mapping[str, str], caller: Any) -> str | None:
        """By the button of the form. It may say what the request is called, and what else is known of it."""
        project, environment, _, changes, _ = self.gated
        if changes is None:
            return None
        if "send_for_review" in answers:
            titled = {
                "title": answers.get("request_title", "")[:255],
                "note": answers.get("request_note", ""),
            }
            request = send_changes(project, environment, changes, **titled, caller=caller)
        elif "add_to_request" in answers:
            request = add_changes(project, environment, changes, caller=caller)
        else:
            return None
        return f"/projects/{project}/change-requests/{request.pk}/"


def guard(project_id: str) -> Callable[[], Refusal | None]:
    """What watches the project's guarded environments, if there are any."""
    links = ProjectEnvironment.objects.filter(project=project_id).exclude(required_approvals=None)
    environments = sorted(links.values_list("environment_id", flat=True))
    environments = [name for name in environments if not is_applied_to(project_id, name)]
    if is_postponed():
        return _guard_postponed(project_id, environments)
    if not environments:
        return lambda: None
    return GateWatch(project_id, environments)


class GateWatch(Watch):
    """Reads what guarded environments answer for the flags that are about to change, and again once they have.

    Whatever changes flags has locked them by their names, or the whole project (`projects.access`).
    """

    def __init__(self, project_id: str, environments: Sequence[str]) -> None:
        self.project_id = project_id
        self.revision: Mapping[str, int] | None = None
        """From which it is known that nothing has changed, without reading the whole project again."""
        self.before = {name: Definitions([], {}) for name in environments}
        self.applied = find_applied_environment(project_id)
        self.flags: set[str] | None = set()
        """Those that have been read; None: all of the project."""

    def look_at(self, flags: Collection[str] | None) -> None:
        if self.flags is None or (flags is not None and self.flags.issuperset(flags)):
            return
        if flags is None and not self.flags:
            self.revision = revisions([self.project_id])
        fresh = None if flags is None else set(flags) - self.flags
        for name, read in self.before.items():
            self.before[name] = self._join(read, read_definitions([self.project_id], name, flags=fresh))
        self.flags = None if fresh is None else self.flags | fresh

    def _join(self, read: Definitions, more: Definitions) -> Definitions:
        """What has been read before may have changed by now: it stays."""
        known = self.flags or set()
        flags = [*read.flags, *(flag for flag in more.flags if flag["name"] not in known)]
        return Definitions(flags, more.segments | read.segments)

    def __call__(self) -> Refusal | None:
        if self.revision is not None and revisions([self.project_id]) == self.revision:
            return None
        refusals = (
            _compare(self.project_id, name, read, self.flags, applied=self.applied)
            for name, read in self.before.items()
        )
        return next(filter(None, refusals), None)


def _guard_postponed(project_id: str, guarded: Sequence[str]) -> Callable[[], Refusal]:
    """Refuses in any case: what cannot be made later is not made now either."""
    links = ProjectEnvironment.objects.filter(project=project_id)
    own = set(links.values_list("environment_id", flat=True))
    names = [name for name in Environment.objects.names() if name in own]
    before = {name: read_definitions([project_id], name) for name in names}

    def check() -> Refusal:
        refusals = (_compare(project_id, name, before[name]) for name in guarded)
        if refusal := next(filter(None, refusals), None):
            return refusal
        return Postponed(find_postponed(project_id, before))

    return check


def _compare(
    project_id: str,
    environment: str,
    before: Definitions,
    names: Collection[str] | None = None,
    *,
    applied: str = "",
) -> Refusal | None:
    after = read_definitions([project_id], environment, flags=names)
    flags, segments = find_differing(before, after)
    if not flags and not segments:
        return None
    caller: Caller | None = skipped_by()
    if caller is None or not caller.can(SKIP, project=project_id, environment=environment):
        rows = Flag.objects.archived().filter(project=project_id, name__in=flags)
        archived = set(rows.values_list("name", flat=True))
        changes: Sequence[ProposedChange] | None
        if applied:
            changes = _turn_off(flags) if archived.issuperset(flags) and not segments else None
        else:
            changes = proposed_changes()
            changes = derive_changes(before, after, archived) if changes is None else changes
        return NeedsChangeRequest(Gated(project_id, environment, flags, changes, applied))
    record_all([_skipped(project_id, environment, name) for name in flags], actor=caller)
    return None


def _turn_off(flags: Sequence[str]) -> list[ProposedChange]:
    """What makes room for archiving them by the request of another environment: flags that are off answer nothing."""
    return [ProposedChange(name, "updateEnabled", {"enabled": False}) for name in flags]


def _skipped(project_id: str, environment: str, flag: str) -> Event:
    return Event(
        type=EventType.CHANGE_REQUEST_SKIPPED, project=project_id, environment=environment, feature=flag
    )
