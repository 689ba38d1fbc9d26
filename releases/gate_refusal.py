"""The error for changes that need a change request, and the actions offered on its page."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from flagadmin.core.audit.record import Event, EventType
from flagadmin.core.change_checks import Refusal
from flagadmin.core.errors import NoAccess, list_some
from groups.access import Caller, Permission
from releases.derive import ProposedChange

SKIP = Permission.SKIP_CHANGE_REQUEST
HIDDEN = (
    "This also changes flags of a project that you cannot see and whose changes need a change request. Ask an admin to "
    "make it."
)


def find_skipping(caller: Caller, project: str, environment: str) -> Caller | None:
    """The caller, if they want to make the change without a request, and may."""
    person = caller.person
    may_skip = person.skips_requests and person.can(SKIP, project=project, environment=environment)
    return person if may_skip else None


def make_skip_event(project: str, environment: str, flag: str) -> Event:
    """The event of a change made without its required change request."""
    return Event(
        type=EventType.CHANGE_REQUEST_SKIPPED, project=project, environment=environment, feature=flag
    )


class Gated(NamedTuple):
    """A change that needs a change request. ``changes`` is None if no request can make it.

    ``applied``: the place where the change is approved, by a request of another environment. ``effect``: its effect,
    if it does not change a result at once. ``replaces_strategies``: passed to `add_changes`. ``removes``: whether an
    enabled flag would disappear, by deletion or a move.
    """

    project: str
    environment: str
    flags: Sequence[str]
    changes: Sequence[ProposedChange] | None
    applied: str = ""
    effect: str = ""
    replaces_strategies: Collection[str] = ()
    removes: bool = False

    def tell(self, caller: Caller) -> "Gated":
        """What the caller may read of it: no project that they cannot see."""
        if caller.person.can_read(self.project):
            return self
        return Gated("", self.environment, (), None, effect=HIDDEN)


class NeedsChangeRequest(Refusal):
    """A change of an environment's results, which needs a change request there."""

    title = "This needs a change request"
    template_name = "releases/needs_request.html"
    status = NoAccess.status

    def __init__(self, gated: Gated) -> None:
        super().__init__(gated)
        self.gated = gated

    @property
    def is_hidden(self) -> bool:
        return not self.gated.project

    def instead(self, **members: Any) -> "NeedsChangeRequest":
        """The refusal with other members of what is gated, unless that is hidden."""
        return self if self.is_hidden else NeedsChangeRequest(self.gated._replace(**members))

    @property
    def message(self) -> str:
        gated = self.gated
        if self.is_hidden:
            return f"{gated.effect} Nothing was saved."
        named = list_some(gated.flags, 3)
        effect = gated.effect or f"This changes what it answers for {named}."
        if gated.applied:
            effect = (
                f"This request of {gated.applied} also changes what {gated.environment} answers for {named}."
            )
        return (
            f"Changes of {gated.environment} in project {gated.project} need a change request. {effect} Nothing was "
            f"saved.{self._way_on(named)}"
        )

    def _way_on(self, named: str) -> str:
        """Explains how to apply a request that also changes another environment."""
        gated = self.gated
        if not gated.applied:
            return ""
        skipped = f"somebody who may skip change requests in {gated.environment}"
        if gated.changes is None:
            return f" It can be applied by {skipped}."
        return f" Turn {named} off in {gated.environment} by a request first, or have this one applied by {skipped}."

    def as_app_error(self) -> NoAccess:
        return NoAccess.missing([SKIP.value], " ".join(filter(None, (self.message, self._say_how()))))

    def _say_how(self) -> str:
        gated = self.gated
        if gated.changes is None:
            return self.no_request
        path = f"/api/admin/projects/{gated.project}/environments/{gated.environment}/change-requests"
        return f"Make a request: POST {path}."

    @property
    def no_request(self) -> str:
        """The alternative if no request can make the change; "" if one can, or if the message already explains it."""
        if self.gated.changes is not None or self.gated.applied or self.gated.effect:
            return ""
        if self.gated.removes:
            return (
                "A change request cannot make this change: it deletes a flag that is on, or moves one. Propose to turn "
                f"it off in {self.gated.environment} first."
            )
        return (
            "A change request cannot make this change: it creates a flag that is on at once, or moves one. Do that "
            f"with the flag off in {self.gated.environment}, and propose to turn it on."
        )

    def may_be_skipped_by(self, caller: Any) -> bool:
        can: bool = caller.can(SKIP, project=self.gated.project, environment=self.gated.environment)
        return can


class NeedsSkip(NeedsChangeRequest):
    """A change that no request can make. ``effect`` explains why, and who can make it."""

    title = "This needs the permission to skip change requests"

    @property
    def message(self) -> str:
        return f"{self.gated.effect} Nothing was saved."
