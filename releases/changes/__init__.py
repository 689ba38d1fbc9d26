"""The kinds of changes that change requests make: what each takes, changes and says.

Their names and payloads are the reference server's. Each is a class, in a module of its subject: `flags.py` and
`segments.py` here, `changes.py` of plans and of safeguards.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rest_framework import serializers

from flagadmin.core.errors import Problem, ValidationError
from flagadmin.core.http.error_responses import problems_of
from flagadmin.core.wording import choices
from groups.access import Caller
from groups.permissions import Scope
from releases.predicted import Predicted
from releases.targets import Target

Payload = Any


class Kind:
    """A kind of change, made by `apply` of what is stored, and by `draft` of flags in memory.

    Pages and forecasts draft: that takes no lock, writes nothing, and works in maintenance mode. It takes 15 ms for 50
    changes, which take 100 to 1,000 ms to be applied and rolled back.
    """

    words = ""
    """Describes it: `Archive {}`, with the flag in the place of the braces."""
    subject = ""
    """Names the part of a flag or segment that it changes, with members of the payload: `strategy {id}`.

    A second change of the same replaces the first. "": both are made.
    """
    payload: type[serializers.Serializer] | None = None
    many = False
    """Whether it takes a list of payloads."""
    of_segment = False
    scope = Scope.ENVIRONMENT
    """Where it changes something: only in the request's environment, in all of the project, or everywhere."""
    is_later = False
    """Whether it decides only about what happens afterwards."""
    place = "payload"
    """The part of a change that the problems of `apply` are paths of."""
    applies_together = False
    """Whether `apply_all` makes several of one environment at once."""

    def apply(self, target: Target, payload: Payload, caller: Caller) -> Any:
        raise NotImplementedError

    def apply_all(self, changes: Sequence[tuple[Target, Payload]], caller: Caller) -> Any:
        raise NotImplementedError

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        """Leaves the state as `apply` would leave what is stored. Raises NotFound, ValidationError, Conflict."""
        raise NotImplementedError

    def draft_review(self, state: Predicted, name: str, payload: Payload) -> None:
        """Drafts what is reviewed instead, if more happens automatically afterwards."""
        self.draft(state, name, payload)

    def read(self, target: Target, payload: Payload) -> Any:
        """Returns what it changes, as JSON. Raises NotFound if that, or the flag, does not exist."""
        return target.definition["name"]

    def explain_conflict(self, target: Target, payload: Payload, then: Any, now: Any) -> str:
        """Says what has changed since, where `read` reads more than the flag; "" if the flag has changed."""
        return ""

    def say(self, target: Target, payload: Payload) -> str:
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
    """What the payload sets, of the strategy or segment with its id."""
    return {key: value for key, value in payload.items() if key != "id"}


KINDS: dict[str, Kind] = {}
"""By their actions."""
KindClass = TypeVar("KindClass", bound=type[Kind])


def register(action: str) -> Callable[[KindClass], KindClass]:
    """A decorator of the class of the kind with this name."""

    def add(kind: KindClass) -> KindClass:
        KINDS[action] = kind()
        return kind

    return add


def find_kind(action: str, path: str) -> Kind:
    """Raises ValidationError that names the actions there are."""
    if action not in KINDS:
        raise ValidationError.at(path, f"must be one of {choices(KINDS, limit=len(KINDS))}, not {action}")
    return KINDS[action]
