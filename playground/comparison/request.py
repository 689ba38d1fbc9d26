"""The body of a comparison: two states, the flags, and the contexts.

Describes the comparison in the OpenAPI document.

Compares two states for an API request.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, NotRequired

from django.conf import settings
from rest_framework import serializers
from rest_framework import serializers as s

from flagadmin.core.errors import ValidationError, check_problems
from flagadmin.core.http.fields import BoundedTexts, Texts
from flagadmin.core.http.openapi import read_sections
from flagadmin.core.http.request_bodies import ManyValuesParser
from groups.access import Caller
from playground.comparison.compare import FlagReasons
from playground.comparison.documents import EXAMPLES, ComparisonDocument, make_comparison_document
from playground.comparison.given_contexts import ContextsBody, GivenContexts
from playground.comparison.past import find_readable_past
from playground.comparison.states import Scope, State, StatePair, add_children, list_kinds, read_state
from playground.comparison.who_changes import Budget, Contexts, WhoChanges
from playground.models import SavedContext
from playground.openapi import OutcomeField, Payload
from playground.queries import count_active_flags
from playground.saved_contexts.checks import ChangesDocument, make_changes_document
from playground.saved_contexts.effects import find_changed_expectations, list_expected_flags
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


SECTIONS = read_sections(
    __file__,
    megabytes=settings.COMPARE_BODY_LIMIT // 1_000_000,
    values=f"{ManyValuesParser.bounds.values:,}",
)


class Counts(s.Serializer[Any]):
    offToOn = s.IntegerField()
    onToOff = s.IntegerField()
    variant = s.IntegerField()
    payload = s.IntegerField()
    share = s.IntegerField()
    unknown = s.IntegerField()
    unchanged = s.IntegerField()


class CountedAnswer(s.Serializer[Any]):
    isEnabled = OutcomeField()
    variant = s.CharField(allow_null=True)
    contexts = s.FloatField(help_text="Contexts that get it; random ones count with their share.")


class ComparedAnswer(CountedAnswer):
    payload = Payload(allow_null=True)


class ComparedFlag(s.Serializer[Any]):
    name = s.CharField()
    counts = Counts()
    before = ComparedAnswer(many=True)
    after = ComparedAnswer(many=True)


class SharedAnswer(s.Serializer[Any]):
    isEnabled = OutcomeField()
    variant = s.CharField(allow_null=True)
    payload = Payload(allow_null=True)
    share = s.FloatField(help_text="The share of calls that give it: 1 if the result is not random.")


class ComparedResult(s.Serializer[Any]):
    results = SharedAnswer(many=True)
    reason = s.CharField()


class ComparedExample(s.Serializer[Any]):
    flag = s.CharField()
    context = s.DictField(child=s.CharField())  # type: ignore[assignment]  # a field's name, not DRF's own
    savedContext = s.CharField(required=False, help_text="The name of the context, if it is a saved one.")
    change = s.ChoiceField(["offToOn", "onToOff", "variant", "payload", "share", "unknown"])
    before = ComparedResult()
    after = ComparedResult()


class ExpectationRecord(s.Serializer[Any]):
    savedContext = s.CharField()
    project = s.CharField()
    flag = s.CharField()
    environment = s.CharField()
    enabled = s.BooleanField(help_text="Whether the flag is expected to be on.")
    variant = s.CharField(allow_null=True)
    payload = Payload(required=False, help_text="Missing: any.")
    enforcedIn = s.CharField(
        allow_null=True, help_text="The project that refuses to break it, if it refuses that."
    )


class ChangedExpectation(ExpectationRecord):
    before = ComparedResult()
    after = ComparedResult()


class ChangedExpectations(s.Serializer[Any]):
    broken = ChangedExpectation(many=True, help_text="Met before, not after.")
    met = ChangedExpectation(many=True, help_text="Not met before, met after.")


class CompareResponse(s.Serializer[Any]):
    contexts = s.IntegerField()
    people = s.IntegerField(help_text="Contexts for which at least one flag changes.")
    counts = Counts()
    flags = ComparedFlag(many=True)
    examples = ComparedExample(many=True)
    expectations = ChangedExpectations()
    notes = Texts(required=False, help_text="Changes since then whose past is not known.")


BUDGET = Budget()
MAX_EXPLAINED = 200
"""The number of contexts whose reasons are counted if no result changes."""


class Answer(ComparisonDocument):
    """``expectations`` of saved contexts that break or are met again; ``notes`` on gaps in the data."""

    expectations: ChangesDocument
    notes: NotRequired[list[str]]


def answer_question(caller: Caller, body: Mapping[str, Any]) -> Answer:
    """The answer to a validated body (`CompareBody`). Raises ValidationError."""
    return compare_states(caller, body)[0]


def compare_states(caller: Caller, body: Mapping[str, Any]) -> tuple[Answer, WhoChanges]:
    """The same, with the underlying comparison."""
    question = read_question(caller, body, beside=lambda: list_expected_flags(caller), budget=BUDGET)
    pair, names = question.pair, question.names
    always = [body["flag"]] if "flag" in body else []
    who = WhoChanges(*pair.snapshots, question.contexts, names, budget=BUDGET, always=always)
    changed = find_changed_expectations(
        caller,
        *pair.snapshots,
        add_children(names, pair.snapshots),
        projects=pair.projects,
        instead=question.saved_contexts,
    )
    answer: Answer = {
        **make_comparison_document(who, saved=question.saved, limit=body.get("limit", EXAMPLES)),
        "expectations": make_changes_document(changed),
    }
    return ({**answer, "notes": question.notes} if question.notes else answer), who


def explain_nobody(who: WhoChanges, name: str) -> list[str]:
    """Explains why no result of the flag changes: the most frequent reasons of the later state, at most 3.

    Returns ["The flag is the same in both states."] if it is. Reads at most ``MAX_EXPLAINED`` contexts.
    """
    if who.comparison.is_same(name):
        return ["The flag is the same in both states."]
    comparison = who.compare(name).source
    reasons = FlagReasons(comparison.after, name)
    contexts = islice(comparison.table.contexts, MAX_EXPLAINED)
    return [reason for reason, _ in Counter(map(reasons.of, contexts)).most_common(3)]
