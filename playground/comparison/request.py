"""The body of a comparison: two states, the flags, and the contexts."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from rest_framework import serializers

from flagadmin.core.errors import ValidationError, check_problems
from flagadmin.core.http.fields import BoundedTexts
from groups.access import Caller
from playground.comparison.budget import Budget
from playground.comparison.given_contexts import ContextsBody, GivenContexts
from playground.comparison.kinds import list_kinds, read_state
from playground.comparison.past import find_readable_past
from playground.comparison.states import Scope, State, StatePair, add_children
from playground.comparison.who_changes import Contexts
from playground.models import SavedContext
from playground.queries import count_active_flags
from projects.models import Dependency
from projects.serializers import StrictSerializer

MAX_EXAMPLES = 1_000
MAX_READ_ALONE = 50
"""Flags that can be read at a moment without all others."""


# Members besides the environment belong to the registered kinds.
class StateBody(StrictSerializer):
    environment = serializers.CharField(required=False, help_text="Required, except with `import`.")

    def get_fields(self) -> dict[str, serializers.Field]:
        return {**super().get_fields(), **{kind.member: kind.make_field() for kind in list_kinds()}}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        kinds = [kind for kind in list_kinds() if kind.member in attrs]
        for kind in kinds:
            for member in kind.not_beside.keys() & attrs.keys():
                raise serializers.ValidationError({kind.member: kind.not_beside[member]})
        alone = next((kind.member for kind in kinds if kind.names_environment), None)
        if alone and len(attrs) > 1:
            others = [name for name in attrs if name != alone]
            raise serializers.ValidationError(dict.fromkeys(others, f"must be left out with {alone}"))
        if not alone and "environment" not in attrs:
            required = self.fields["environment"].error_messages["required"]
            raise serializers.ValidationError({"environment": required})
        return attrs


class CompareBody(StrictSerializer):
    to = StateBody()
    projects = BoundedTexts(required=False, allow_null=True)
    flag = serializers.CharField(required=False, help_text="Only this flag; without it, all of the projects.")
    contexts = ContextsBody()
    limit = serializers.IntegerField(
        required=False, min_value=0, max_value=MAX_EXAMPLES, help_text="Examples in the answer; default 20."
    )

    def get_fields(self) -> dict[str, serializers.Field]:
        return {"from": StateBody(), **super().get_fields()}  # a keyword cannot be an attribute


class Question(NamedTuple):
    """A parsed request: two states, the names of the flags, and the contexts, starting with saved ones."""

    pair: StatePair
    names: list[str]
    contexts: Contexts
    saved: Sequence[SavedContext]
    notes: list[str]

    @property
    def saved_contexts(self) -> Mapping[str, SavedContext]:
        """The saved contexts that the later state changes, in their new form, by name."""
        return self.pair.states[1].saved_contexts


def read_question(
    caller: Caller, body: Mapping[str, Any], *, beside: Callable[[], Collection[str]], budget: Budget
) -> Question:
    """Reads the objects named in a validated body. Raises ValidationError for missing ones, or if there is too much.

    If the body names a flag and a moment, the states contain only that flag, its present children, the flags `beside`
    it, and their parents.
    """
    projects, before, after = read_states(caller, body)
    flag, given_contexts = body.get("flag"), GivenContexts(caller, body["contexts"])
    moments = [state for state in (before, after) if state.at is not None]
    few: list[str] = []
    if flag and moments and before.can_read_few and after.can_read_few:
        few = [flag, *_list_dependent_flags(flag, projects), *beside()]
    elif not flag and not moments:  # before compiling flags, which takes longest if there are too many
        budget.check_size(count_active_flags(projects), given_contexts.most)
    pair = StatePair(projects, before, after, few=few if len(few) <= MAX_READ_ALONE else ())
    names = _list_names(flag, pair)
    budget.check_size(len(names), given_contexts.most)
    notes = dict.fromkeys(chain(before.notes(), after.notes()))
    return Question(
        pair, names, given_contexts.make(lambda most: pair.read(names[:most])), given_contexts.saved, [*notes]
    )


def read_states(caller: Caller, body: Mapping[str, Any]) -> tuple[dict[str, int], State, State]:
    """The revisions of the compared projects in a validated body, and its two states. Raises ValidationError."""
    states = {member: read_state(caller, body[member], member) for member in ("from", "to")}
    environments = {f"{place}.environment": state.environment for place, state in states.items()}
    times = {f"{place}.environment": state.at for place, state in states.items() if state.at is not None}
    projects, moments = find_readable_past(caller, body.get("projects"), environments, times)
    scopes = {
        place: Scope(projects, moments[path].projects if path in moments else frozenset())
        for place, path in zip(states, environments, strict=True)
    }
    check_problems(
        problem for place, state in states.items() for problem in state.problems(place, scopes[place])
    )
    before, after = (state.within(scopes[place], place) for place, state in states.items())
    return projects, before, after


def _list_names(flag: str | None, pair: StatePair) -> list[str]:
    """All flags, or one with the flags that depend on it."""
    if flag is None:
        return sorted({*pair.before.names, *pair.after.names})
    if not any(flag in snapshot.positions for snapshot in pair.snapshots):
        raise ValidationError.at("flag", f"flag {flag} not found")
    return [flag, *sorted(add_children([flag], pair.snapshots) - {flag})]


def _list_dependent_flags(flag: str, projects: Iterable[str]) -> list[str]:
    rows = Dependency.objects.filter(parent__name=flag, flag__project__in=list(projects))
    return list(rows.values_list("flag__name", flat=True))
