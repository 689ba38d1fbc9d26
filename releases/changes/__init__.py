"""The kinds of changes in change requests: their input, effect and description.

Their names and payloads are the reference server's. Each is a class, in a module of its subject: `flags.py` and
`segments.py` here, `changes.py` of plans and of safeguards.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from django.utils.functional import SimpleLazyObject
from rest_framework import serializers

from flagadmin.core.errors import Problem, ValidationError, choices
from flagadmin.core.http.error_responses import problems_of
from groups.access import Caller
from groups.permissions import Scope
from releases.targets import Predicted, Target

Payload = Any


class Kind:
    """A kind of change. `apply` makes it in the database, `draft` on flags in memory.

    Pages and forecasts draft: that takes no lock, writes nothing, and works in maintenance mode. It takes 15 ms for 50
    changes, which take 100 to 1,000 ms to be applied and rolled back.
    """

    words = ""
    """The description: `Archive {}`, with the flag in place of the braces."""
    subject = ""
    """The part of a flag or segment that it changes, with members of the payload: `strategy {id}`.

    A second change of the same part replaces the first, and a change of `parents` replaces those of `parents cart`.
    With "", both are made.
    """
    payload: type[serializers.Serializer] | None = None
    many = False
    """Whether it accepts a list of payloads."""
    of_segment = False
    scope = Scope.ENVIRONMENT
    """The scope of its effect: only the request's environment, the whole project, or everything."""
    may_be_breached = False
    """Whether `draft_breach` drafts anything."""
    is_later = False
    """Whether it only affects later behavior."""
    place = "payload"
    """The part of a change to which the paths of `apply`'s problems are relative."""
    is_together = False
    """Whether `releases.changes.flags.apply_together` makes it together with others."""
    action = ""
    """Its name."""

    def apply(self, target: Target, payload: Payload, caller: Caller) -> Any:
        raise NotImplementedError

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        """Changes the state as `apply` changes the database. Raises NotFound, ValidationError, Conflict."""
        raise NotImplementedError

    def draft_review(self, state: Predicted, name: str, payload: Payload) -> None:
        """Drafts the state to review, if more happens automatically afterwards."""
        self.draft(state, name, payload)

    def draft_breach(self, state: Predicted, name: str, payload: Payload) -> bool:
        """Drafts the effect of a breached safeguard, which may happen at any time. Returns whether there is one."""
        return False

    def read(self, target: Target, payload: Payload) -> Any:
        """The part that it changes, as JSON. Raises NotFound if that, or the flag, does not exist."""
        return target.definition["name"]

    def explain_conflict(self, target: Target, payload: Payload, then: Any, now: Any) -> str:
        """Describes the changes since, if `read` covers more than the flag; "" if the flag has changed."""
        return ""

    def say(self, target: Target, payload: Payload, then: Any) -> str:
        """Describes it. ``then`` is what `read` returned when it was proposed."""
        return self.words.format(target.feature)

    def find_scope(self, payload: Payload) -> Scope:
        return self.scope

    def find_subject(self, payload: Payload) -> str:
        return self.subject.format_map(payload or {})

    def clean(self, payload: Any, path: str) -> Any:
        """The payload as it is stored. Raises ValidationError with places below ``path``."""
        if self.payload is None:
            return None
        body = self.payload(data=payload, many=self.many)
        if not body.is_valid():
            problems = problems_of(body.errors)
            raise ValidationError.of(
                Problem(join_paths(path, problem.path), problem.message) for problem in problems
            )
        return body.validated_data


def join_paths(path: str, place: str) -> str:
    """The JSON path of a place below a path."""
    return path + (place if place.startswith("[") or not place else f".{place}")


def drop_id(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The values that the payload sets on the strategy or segment with its id."""
    return {key: value for key, value in payload.items() if key != "id"}


def includes(subject: str, other: str) -> bool:
    """Whether a change of one changes the other too: `parents` includes `parents cart`."""
    return subject != "" and f"{other} ".startswith(f"{subject} ")


_MODULES = (
    "releases.changes.flags",
    "releases.changes.segments",
    "releases.plans.changes",
    "releases.safeguards.changes",
)
_kinds: dict[str, Kind] = {}
KindClass = TypeVar("KindClass", bound=type[Kind])


def register(action: str) -> Callable[[KindClass], KindClass]:
    """Decorates the class of the kind with this name."""

    def add(kind: KindClass) -> KindClass:
        _kinds[action] = kind()
        kind.action = action
        return kind

    return add


def _load_kinds() -> dict[str, Kind]:
    for module in _MODULES:
        import_module(module)
    return dict(sorted(_kinds.items(), key=lambda item: _MODULES.index(type(item[1]).__module__)))


KINDS: Mapping[str, Kind] = SimpleLazyObject(_load_kinds)  # type: ignore[assignment]  # commands need none
"""By their actions."""


def find_kind(action: str, path: str) -> Kind:
    """Finds a kind. Raises ValidationError with the existing actions."""
    if action not in KINDS:
        raise ValidationError.at(path, f"must be one of {choices(KINDS, limit=len(KINDS))}, not {action}")
    return KINDS[action]
