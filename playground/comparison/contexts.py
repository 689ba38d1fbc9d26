"""Edge cases: contexts generated deterministically from the rules of flags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from playground.comparison.rules import Rule, StrategyRules, make_identifier, read_rules
from playground.engine.context import Context, PointInTime, format_time
from projects.definitions import Definitions

Texts = dict[str, str]
NOTHING: Mapping[str, str] = {}
MAX_VALUES = 31
"""Values of a field to combine with those of every other field: a prime, see `_pair_values`."""


class Rules:
    """The rules of flags in some states, and their conditions on each field."""

    def __init__(self, states: Iterable[Definitions]) -> None:
        self.by_flag: dict[str, list[StrategyRules]] = {}
        self.parents: dict[str, dict[str, None]] = {}
        self.values: dict[str, dict[str | None, None]] = {}
        for state in states:
            for flag in state.flags:
                parents = (parent["feature"] for parent in flag.get("dependencies") or ())
                self.parents.setdefault(flag["name"], {}).update(dict.fromkeys(parents))
                self.by_flag.setdefault(flag["name"], []).extend(read_rules(flag, state.segments))
        for strategy in chain.from_iterable(self.by_flag.values()):
            for rule in strategy.rules:
                self.values.setdefault(rule.field, {None: None}).update(dict.fromkeys(rule.values))
            for field, value in strategy.identifiers:
                self.values.setdefault(field, {None: None})[value] = None

    def list_goals(self) -> Iterator[StrategyRules]:
        """Yields, for each strategy, its rules together with those of one strategy of each parent."""
        for name, strategies in self.by_flag.items():
            above = [self.by_flag[parent] for parent in self.parents[name] if parent in self.by_flag]
            for strategy in strategies:
                needed = chain.from_iterable(_pick_first(parent).rules for parent in above)
                yield strategy._replace(rules=[*strategy.rules, *needed])
            for parent in above:
                for strategy in parent[1:]:
                    yield strategy._replace(rules=[*_pick_first(strategies).rules, *strategy.rules])


def _meet(goal: StrategyRules) -> Texts:
    """Values that meet all rules of a strategy together, as far as there are any."""
    texts: Texts = {}
    for field, rules in _group_by_field(goal).items():
        named = dict.fromkeys(value for rule in rules for value in rule.values)
        tried = chain((None,), named, (make_identifier(field, number) for number in range(1, 200)))
        fits = (value for value in tried if all(rule.holds(value) for rule in rules))
        if (value := next(fits, None)) is not None:
            texts[field] = value
    return texts


def _group_by_field(goal: StrategyRules) -> dict[str, list[Rule]]:
    rules_by_field: dict[str, list[Rule]] = {}
    for rule in goal.rules:
        rules_by_field.setdefault(rule.field, []).append(rule)
    return rules_by_field


def generate_contexts(
    states: Iterable[Definitions] | Rules, *, now: PointInTime, limit: int, fixed: Mapping[str, str] = NOTHING
) -> list[Context]:
    """Contexts that meet and miss every rule of the flags: each value with everything else that a strategy needs, and
    all pairs of values of two fields. All have the ``fixed`` values.
    """
    rules = states if isinstance(states, Rules) else Rules(states)
    made_texts: dict[tuple[tuple[str, str], ...], Texts] = {}
    for values in islice(chain([{}], _meet_one_by_one(rules), _pair_values(rules)), 20 * limit):
        texts = {**values, **fixed}
        made_texts.setdefault(tuple(sorted(texts.items())), texts)
        if len(made_texts) >= limit:
            break
    time = format_time(now)
    return [make_context(texts, time) for texts in made_texts.values()]


def make_context(texts: Texts, now: str) -> Context:
    if texts.get("currentTime") == "":  # equivalent to a missing one
        texts = _replace_value(texts, "currentTime", None)
    return Context.of_texts(texts, now=now)


def _pick_first(strategies: Sequence[StrategyRules]) -> StrategyRules:
    return strategies[0] if strategies else StrategyRules([], [])


def _meet_one_by_one(rules: Rules) -> Iterator[Texts]:
    """Yields texts that let each strategy pass, and variations with each other value in its rules."""
    for goal in rules.list_goals():
        met = _meet(goal)
        yield met
        for field, needed in _group_by_field(goal).items():
            for value in dict.fromkeys((None, *chain.from_iterable(rule.values for rule in needed))):
                yield _replace_value(met, field, value)
        for field, value in goal.identifiers:
            yield _replace_value(met, field, value)
    for field, values in rules.values.items():
        for value in values:
            yield _replace_value({}, field, value)


def _replace_value(texts: Texts, field: str, value: str | None) -> Texts:
    others = {key: text for key, text in texts.items() if key != field}
    return others if value is None else others | {field: value}


def _pair_values(rules: Rules) -> Iterator[Texts]:
    """Every pair of values of two fields at least once.

    An orthogonal array: in row (i, j) the field k has the value i + k j modulo a prime p. Two rows that agree in two
    fields are equal, so p² rows contain every pair of up to p fields with up to p values.
    """
    fields = [(field, list(values)[:MAX_VALUES]) for field, values in rules.values.items()][:MAX_VALUES]
    if len(fields) < 2:
        return
    prime = _find_prime(max(len(fields), *(len(values) for _, values in fields)))
    for i in range(prime):
        for j in range(prime):
            chosen = {
                field: values[(i + k * j) % prime % len(values)] for k, (field, values) in enumerate(fields)
            }
            yield {field: value for field, value in chosen.items() if value is not None}


def _find_prime(least: int) -> int:
    return next(n for n in range(max(least, 2), 2 * least + 2) if all(n % d for d in range(2, n)))
