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
from releases.plans.queries import CHANGE
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
    of_strategies = False
    """Whether it changes the flag's strategies, so that a definition of all of them replaces it."""
    of_all = False
    """Whether it changes every part of its flag."""
    why_final = ""
    """Why no request can revert it, after the request's name."""
    action = ""
    """Its name."""
    act: Callable[..., Any]

    def apply(self, target: Target, payload: Payload, caller: Caller) -> Any:
        """Calls `act` with the flag's path and the members of the payload, in their order."""
        members = self.payload().fields if self.payload else ()
        return self.act(target.path, *(payload[name] for name in members), caller=caller)

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

    def describe_conflict(self, payload: Payload, then: Any, now: Any) -> list[str]:
        """Describes what it was made from, what is there now, and the change, in sentences."""
        return []

    def show(self, payload: Payload, then: Any, now: Any, segments: Mapping[int, str]) -> tuple[Any, Any]:
        """The changed part now and after the change, for pages. None if there is none. ``segments``: names by id."""
        return None, None

    def turns_off(self, payload: Payload) -> bool:
        """Whether it does nothing but turn flags off for some users. Its effect on others is measured."""
        return False

    def touches_plans(self, payload: Payload) -> str:
        """What the flag's release plans notice of it: a constant of `releases.plans.queries`."""
        return CHANGE

    def is_idle(self, payload: Payload, then: Any) -> bool:
        """Whether a change of a segment changes nothing."""
        return False

    def invert(self, payload: Payload, then: Any) -> Payload | None:
        """The payload that restores the earlier state of a segment. None if nothing changed, or for flags."""
        return None

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


def narrow_payload(payload: Payload, made_from: Any) -> Any:
    """Narrows the payload to members that really change.

    Applied after other users' changes, it leaves theirs.
    """
    if not isinstance(made_from, dict) or not isinstance(payload, dict):
        return payload
    return {
        key: value
        for key, value in payload.items()
        if key == "id" or key not in made_from or made_from[key] != value
    }


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
