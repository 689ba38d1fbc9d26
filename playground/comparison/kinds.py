"""The kinds of states that requests and pages can name. Apps add them in ``AppConfig.ready``."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from rest_framework.serializers import Field

from flagadmin.core.errors import Conflict, NotFound, ValidationError
from flagadmin.core.hook import load_added
from groups.access import Caller
from playground.comparison.states import State, Stored

Body = Mapping[str, Any]
"""A state in the body of a request, validated."""
Choice = tuple[str, str]
"""The value that a page sends, and its label."""


def _offer_none(caller: Caller) -> list[Choice]:
    return []


@dataclass(frozen=True, slots=True)
class StateKind:
    """A kind of states, named by a ``member`` of the body.

    ``make_field`` returns the serializer field of the member. ``read`` returns the state; it raises NotFound or
    Conflict if the named object does not exist (any more). A kind with ``names_environment`` stands alone in the
    body; ``not_beside`` are further excluded members, with the reason. ``choices`` are values that pages offer in
    place of an environment, under the heading ``title``.
    """

    member: str
    make_field: Callable[[], Field[Any, Any, Any, Any]]
    read: Callable[[Caller, Body], State]
    names_environment: bool = False
    not_beside: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    choices: Callable[[Caller], list[Choice]] = _offer_none


@cache
def _load_kinds() -> dict[str, StateKind]:
    return {kind.member: kind for kind in load_added("playground.comparison.kinds")}


def list_kinds() -> Iterable[StateKind]:
    """Lists the kinds in the order in which they were registered."""
    return _load_kinds().values()


def read_state(caller: Caller, body: Body, path: str) -> State:
    """The state named in a validated body, before it is limited `within` anything. Raises ValidationError."""
    for kind in list_kinds():
        if kind.member in body:
            try:
                return kind.read(caller, body)
            except (NotFound, Conflict) as error:
                raise ValidationError.at(f"{path}.{kind.member}", error.message) from None
    return Stored(body["environment"])


def list_state_choices(caller: Caller) -> list[tuple[str, list[Choice]]]:
    """The states that pages offer besides environments, by heading: for example `import:` with an import's id."""
    offered = ((kind, kind.choices(caller)) for kind in list_kinds())
    return [
        (kind.title, [(f"{kind.member}:{value}", label) for value, label in choices])
        for kind, choices in offered
        if choices
    ]


def split_choice(chosen: str) -> tuple[str, str]:
    """Splits a choice into the body's member and value: an environment, or one of `list_state_choices`."""
    member, colon, value = chosen.partition(":")
    return (member, value) if colon and member in _load_kinds() else ("environment", chosen)
