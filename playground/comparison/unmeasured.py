"""Finds the parts of flags that generated users cannot measure, and named users.

Generated ids do not match an id pattern. Only real ids can show the results of real users under such a condition. A
list of exact ids is different: each id in it is the id of one generated user. Nor do generated users show how many real
ones share a value of another stickiness field, or what custom strategies do that only SDKs evaluate.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import and_, or_
from typing import NamedTuple

from playground.comparison.rules import Document, find_own_constraints, list_sticky_fields
from playground.comparison.table import Mask
from playground.comparison.users import IDENTIFIERS
from playground.comparison.who_changes import WhoChanges
from playground.engine.constraints import Constraints
from playground.engine.literals import objects_of, parameters_of, strings_of, to_text
from playground.engine.operators import OPERATORS
from playground.engine.strategy_types import STRATEGY_TYPES
from projects.definitions import Definitions
from projects.models import Project

LEAST = 10
"""At least this many users must meet and miss a condition for it to count as measured."""
EXACT = frozenset({"IN", "NOT_IN"})


class Unmeasured(NamedTuple):
    """A part of a flag in ``words``. ``may_be_on``: whether the flag may be on for some user in the later state."""

    flag: str
    words: str
    may_be_on: bool

    @property
    def sentence(self) -> str:
        return f"{self.flag} has {self.words}, about which generated users tell nothing"


def find_unmeasured(who: WhoChanges, before: Definitions, after: Definitions) -> list[Unmeasured]:
    """Parts that may change a flag: conditions that hardly any generated user meets, alone or together, or hardly any
    misses; strategies that only SDKs evaluate; rollouts and variants by a field whose values users share.
    """
    if who.contexts.generated is None:
        return []
    found = dict[tuple[str, str], Unmeasured]()
    for name in who.names:
        on = may_be_on(name, after.by_name())
        for words in _list_untold(who, name, before, after):
            found[name, words] = Unmeasured(name, words, on)
    return list(found.values())


def _list_untold(who: WhoChanges, name: str, before: Definitions, after: Definitions) -> Iterator[str]:
    deciding = list(_list_deciding(name, before, after))
    rare = [
        each
        for each in chain.from_iterable(_list_conditions(*pair) for pair in deciding)
        if min(met := _find_who_meets(who, name, each).bit_count(), who.users - met) < LEAST
    ]
    yield from (f"the condition {_say(each)}" for each in rare)
    together = () if rare else _find_who_meet_all(who, name, before, after)
    if any(users.bit_count() < LEAST for users in together):
        yield "conditions that hardly any user meets together"
    for strategy, _ in deciding:
        kind = STRATEGY_TYPES.get(to_text(strategy.get("name")))
        if kind is None or not kind.is_evaluated:
            yield f"a strategy that only SDKs evaluate ({to_text(strategy.get('name'))})"
    flags = [flag for state in (before, after) if (flag := state.by_name().get(name)) is not None]
    varied = flags if len({str(flag["variants"]) for flag in flags}) > 1 else []
    documents: list[Document] = [
        {"strategies": [strategy]} if _is_partial(strategy) else {"variants": strategy.get("variants")}
        for strategy, _ in deciding
    ]
    documents += [{"variants": flag["variants"]} for flag in varied]
    fields = set(chain.from_iterable(map(list_sticky_fields, documents))) - {*IDENTIFIERS, "random"}
    if fields:
        # Flags of files have no project, and no database.
        projects = Project.objects.filter(pk__in={flag["project"] for flag in flags} - {""})
        fields.difference_update(projects.values_list("default_stickiness", flat=True))
    yield from (f"a rollout or variants by {field}" for field in sorted(fields))


def _is_partial(strategy: Document) -> bool:
    """Whether it is a rollout to only some of the values of its field."""
    kind, parameters = STRATEGY_TYPES.get(to_text(strategy.get("name"))), strategy.get("parameters")
    return kind is not None and 0 < kind.share(parameters_of(parameters)) < 100


def find_most_affected(
    who: WhoChanges, before: Definitions, after: Definitions, *, flag: str | None = None
) -> tuple[int, int]:
    """The number of users who meet all conditions of a strategy, and the number of these who change, for the strategy
    with the largest share: that generated users meet conditions is made up, and real users may all do.

    Of one ``flag`` if it is given, and then without users whose ids its conditions list, and without strategies that
    fewer than LEAST others meet.
    """
    most = who.users, who.affected if flag is None else who.changed_users(flag).bit_count()
    for name in who.names if flag is None else [flag]:
        changed = who.changed_users(name)
        left_out = 0 if flag is None else _find_named(who, name, before, after)
        for met in _find_who_meet_all(who, name, before, after):
            mask = met & ~left_out
            users, affected = mask.bit_count(), (changed & mask).bit_count()
            if affected * most[0] > most[1] * users and (flag is None or users >= LEAST):
                most = users, affected
    return most


def _find_who_meet_all(who: WhoChanges, name: str, before: Definitions, after: Definitions) -> Iterator[Mask]:
    """For each strategy that decides who is affected: the users who meet its conditions and those of the parents."""
    everyone = int.from_bytes(b"\1" * who.users, "little")

    def find_all(conditions: Iterable[Document]) -> Mask:
        return reduce(and_, (_find_who_meets(who, name, each) for each in conditions), everyone)

    for state, flag, twin in _pair(name, before, after):
        above = everyone
        for strategies in _list_parents(flag, state):
            met = [find_all(_list_conditions(each, state.segments)) for each in strategies]
            above &= reduce(or_, met) if met else everyone
        for strategy in _list_differing(flag, twin, before, after):
            yield find_all(_list_conditions(strategy, state.segments)) & above


def find_named(who: WhoChanges, before: Definitions, after: Definitions) -> tuple[int, int]:
    """The number of generated users with an id listed in conditions, and the number of these who change."""
    named: Mask = 0
    changed: Mask = 0
    for name in who.names:
        mask = _find_named(who, name, before, after)
        named |= mask
        changed |= mask & who.changed_users(name)
    return named.bit_count(), changed.bit_count()


def _find_named(who: WhoChanges, name: str, before: Definitions, after: Definitions) -> Mask:
    constraints = (_list_constraints(*pair) for pair in _list_deciding(name, before, after))
    exact = (each for each in chain.from_iterable(constraints) if _is_exact_id(each))
    found = (_find_who_meets(who, name, each | {"operator": "IN", "inverted": False}) for each in exact)
    return reduce(or_, found, 0)


def _find_who_meets(who: WhoChanges, name: str, constraint: Document) -> Mask:
    compiler = Constraints()
    compiled = compiler.compile(constraint)
    return who.find_who_meets(name, compiled, compiler.columns.pairs()[compiled.column])


def _list_deciding(
    name: str, before: Definitions, after: Definitions
) -> Iterator[tuple[Document, Mapping[int, Document]]]:
    """The strategies of the flag and its parents that decide who is affected, with the segments.

    If only strategies differ, only theirs; for parents all, because they decide whether the flag is on at all.
    """
    for state, flag, twin in _pair(name, before, after):
        own = _list_differing(flag, twin, before, after)
        for strategies in (own, *_list_parents(flag, state)):
            yield from ((strategy, state.segments) for strategy in strategies)


def _pair(
    name: str, before: Definitions, after: Definitions
) -> Iterator[tuple[Definitions, Document, Document | None]]:
    """Each state that has the flag, with the flag and its twin in the other state."""
    flags = [state.by_name().get(name) for state in (before, after)]
    for state, flag, twin in zip((before, after), flags, reversed(flags), strict=True):
        if flag is not None:
            yield state, flag, twin


def _list_parents(flag: Document, state: Definitions) -> Iterator[list[Document]]:
    """The strategies of each parent of a flag."""
    for parent in flag.get("dependencies") or ():
        above: Document = state.by_name().get(parent["feature"]) or {}
        yield [each for each in objects_of(above.get("strategies")) if not each.get("disabled")]


def _list_differing(
    flag: Document, twin: Document | None, before: Definitions, after: Definitions
) -> Iterable[Document]:
    strategies = [each for each in objects_of(flag["strategies"]) if not each.get("disabled")]
    if twin is None or any(flag[key] != twin[key] for key in flag.keys() & twin.keys() - {"strategies"}):
        return strategies
    same = [each for each in objects_of(twin["strategies"]) if not each.get("disabled")]
    if strategies == same or sorted(map(str, strategies)) == sorted(map(str, same)):
        same = []  # the order, a segment or a parent differs
    moved = {
        key
        for key in before.segments.keys() | after.segments.keys()
        if before.segments.get(key) != after.segments.get(key)
    }
    return [each for each in strategies if each not in same or moved.intersection(each.get("segments") or ())]


def _list_conditions(strategy: Document, segments: Mapping[int, Document]) -> list[dict[str, object]]:
    """The constraints that are no lists of exact ids, and not about the time."""
    return [
        each
        for each in _list_constraints(strategy, segments)
        if not _is_exact_id(each) and each.get("contextName") != "currentTime"
    ]


def _list_constraints(strategy: Document, segments: Mapping[int, Document]) -> Iterator[dict[str, object]]:
    used: Sequence[int] = strategy.get("segments") or ()
    shared = chain.from_iterable(objects_of(segments.get(key, {}).get("constraints")) for key in used)
    for constraint in (*objects_of(strategy.get("constraints")), *find_own_constraints(strategy), *shared):
        yield dict(constraint)


def _is_exact_id(constraint: Document) -> bool:
    return constraint.get("operator") in EXACT and constraint.get("contextName") in IDENTIFIERS


def may_be_on(name: str, flags: Mapping[str, Document]) -> bool:
    """Whether the flag may be on for some user, as far as its switch and its parents' tell."""
    flag = flags.get(name)
    if flag is None or not flag["enabled"]:
        return False
    parents = flag.get("dependencies") or ()
    return all(not parent.get("enabled", True) or may_be_on(parent["feature"], flags) for parent in parents)


def _say(constraint: Document) -> str:
    """``userId matching ^[0-9]+$``"""
    operator = OPERATORS.get(to_text(constraint.get("operator")))
    relation = operator.relation if operator else to_text(constraint.get("operator"))
    values = strings_of(constraint.get("values")) or [to_text(constraint.get("value"))]
    shown = ", ".join(values[:3]) + (", …" if len(values) > 3 else "")
    negation = "not " if constraint.get("inverted") else ""
    return f"{to_text(constraint.get('contextName'))} {negation}{relation} {shown}"
