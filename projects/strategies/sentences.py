"""Describes a strategy in a sentence: "On for 50 % of users, by userId, where country is one of US, DE".

These sentences describe the configuration. ``playground.engine.reasons`` explains the result for a context
and uses the same phrases.

Describes whom a strategy reaches, and how a change of it changes that: the titles of change requests.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from playground.engine.literals import objects_of, parameters_of, strings_of, to_text
from playground.engine.operators import OPERATORS
from playground.engine.sentences import custom_strategy, in_segment, list_values, shorten_value, unmet_phrase
from playground.engine.strategy_types import STRATEGY_TYPES

Document = Mapping[str, Any]
MAX_IN_A_SENTENCE = 2
MAX_LISTED = 10  # conditions of a strategy that are listed individually


@dataclass(frozen=True, slots=True)
class Summary:
    """The description of a strategy or segment: ``whom`` ("On for 50 % of users, by userId") and the conditions."""

    whom: str
    conditions: Sequence[str] = ()

    def __str__(self) -> str:
        parts = [self.whom, " and ".join(self.conditions)]
        return f"{', where '.join(part for part in parts if part)}."

    @property
    def is_long(self) -> bool:
        """Whether to show the conditions as a list instead of in a sentence."""
        return len(self.conditions) > MAX_IN_A_SENTENCE


def summarize_strategy(
    strategy: Document, *, segments: Mapping[int, str], limit: int = MAX_LISTED
) -> Summary:
    """The description of a strategy. ``segments`` are names by id; ``limit`` conditions are listed."""
    conditions = [describe_constraint(item) for item in objects_of(strategy.get("constraints"))]
    conditions += [in_segment(str(segments.get(number, number))) for number in strategy.get("segments") or []]
    whom = _describe_whom(to_text(strategy.get("name")), parameters_of(strategy.get("parameters")))
    return Summary(whom, shorten_conditions(conditions, limit))


def summarize_conditions(constraints: Sequence[Any], limit: int = MAX_LISTED) -> Summary:
    """The description of a segment, which consists of its conditions."""
    if not constraints:
        return Summary("Includes every request")
    return Summary("", shorten_conditions([describe_constraint(item) for item in constraints], limit))


def shorten_conditions(conditions: Sequence[str], limit: int = MAX_LISTED) -> list[str]:
    """The first conditions and the number of the others.

    A single extra condition is not abbreviated.
    """
    more = len(conditions) - limit
    return [*conditions[:limit], f"{more:,} more conditions"] if more > 1 else list(conditions)


def describe_constraint(constraint: Document) -> str:
    """``country is one of US, DE``, ``appVersion is a version above 5.0.0``."""
    field, operator = to_text(constraint.get("contextName")), to_text(constraint.get("operator"))
    if not field:
        return "… (choose a field)"
    if operator not in OPERATORS:
        return f"{shorten_value(field)} {operator}"
    several = OPERATORS[operator].takes_list
    values = strings_of(constraint.get("values")) if several else [to_text(constraint.get("value"))]
    if not any(values):
        return f"{shorten_value(field)} … (add a value)"
    need = unmet_phrase(operator, values, inverted=bool(constraint.get("inverted")))
    case = " (ignoring case)" if constraint.get("caseInsensitive") else ""
    return f"{shorten_value(field)} is {need.removeprefix(', needs ')}{case}"


def describe_variants(variants: Iterable[Document]) -> str:
    """``Variants: blue 50 %, green 50 %``; empty without variants."""
    shares = [f"{to_text(v.get('name'))} {format_percent(v.get('weight'))} %" for v in variants]
    if (more := len(shares) - MAX_LISTED) > 1:
        shares[MAX_LISTED:] = [f"and {more:,} more"]
    return f"Variants: {', '.join(shares)}" if shares else ""


def format_percent(weight: Any) -> str:
    """A weight out of 1000 in percent: 333 is "33.3", 500 is "50"."""
    return f"{weight / 10:g}" if isinstance(weight, int | float) else "0"


def _describe_whom(name: str, parameters: Mapping[str, str]) -> str:
    kind = STRATEGY_TYPES.get(name)
    if kind is None:
        return custom_strategy(name)
    if kind.percentage:
        text = parameters.get(kind.percentage, "")
        if kind.explain_percentage(parameters) and not kind.share(parameters):
            return f"On for nobody, because SDKs cannot read the percentage {shorten_value(text)}"
        return _describe_share(text, kind.stickiness or parameters.get("stickiness", "default"))
    return kind.whom.format(_list_items(parameters.get(kind.lists, "")))


def _describe_share(rollout: str, stickiness: str) -> str:
    if rollout == "100":
        return "On for everyone"
    if stickiness == "random":
        return f"On for about {shorten_value(rollout)} % of calls, at random"
    by = "userId (or sessionId)" if stickiness == "default" else stickiness
    return f"On for {shorten_value(rollout)} % of users{f', by {by}' if by else ''}"


def _list_items(text: str) -> str:
    return list_values([item.strip() for item in text.split(",") if item.strip()])


MAX_CONDITIONS = 2
"""Conditions that a title lists; more are counted."""


class _Reach(NamedTuple):
    """``share``: the percentage of those who meet the ``conditions``; None if it names users, or is custom."""

    share: float | None
    conditions: frozenset[str]

    @property
    def where(self) -> str:
        if len(self.conditions) > MAX_CONDITIONS:
            return f" where {len(self.conditions)} conditions hold"
        return f" where {' and '.join(sorted(self.conditions))}" if self.conditions else ""

    @property
    def whom(self) -> str:
        if self.share is None:
            return f"the users that it names{self.where}"
        return f"{'everyone' if self.share == 100 else f'{self.share:g} % of users'}{self.where}"


def describe_reach(strategy: Document, segments: Mapping[int, str]) -> str:
    """``50 % of users where country is DE``; "" for strategies without a percentage."""
    reach = _read(strategy, segments)
    return "" if reach.share is None else reach.whom


def describe_new_reach(flag: str, before: Document, after: Document, segments: Mapping[int, str]) -> str:
    """``Reduce cart from everyone to 5 % of users where country is DE``. "" if it reaches the same users.

    Only a change by which nobody loses the flag is a rollout. ``segments`` are names by id.
    """
    if before.get("disabled", False) != after.get("disabled", False):
        return f"{'Disable' if after.get('disabled') else 'Enable'} a strategy of {flag}"
    old, new = _read(before, segments), _read(after, segments)
    if old == new:
        return ""
    if old.share is None or new.share is None:
        return f"Change {flag} from {old.whom} to {new.whom}"
    if old.share <= new.share and old.conditions >= new.conditions:
        return f"Roll out {flag} to {new.whom}"
    if old.share >= new.share and old.conditions <= new.conditions:
        from_whom = (
            old.whom if old.conditions != new.conditions else old._replace(conditions=frozenset()).whom
        )
        both = old.share != 100 and not new.where
        return (
            f"Reduce {flag} from {from_whom.removesuffix(' of users') if both else from_whom} to {new.whom}"
        )
    return f"Change {flag} from {old.whom} to {new.whom}"


def _read(strategy: Document, segments: Mapping[int, str]) -> _Reach:
    conditions = [_describe(constraint) for constraint in objects_of(strategy.get("constraints"))]
    conditions += [in_segment(str(segments.get(key, key))) for key in strategy.get("segments") or ()]
    kind = STRATEGY_TYPES.get(to_text(strategy.get("name", "flexibleRollout")))
    share = None
    if kind is not None and not kind.lists:
        share = float(kind.share(parameters_of(strategy.get("parameters")))) if kind.percentage else 100.0
    return _Reach(share, frozenset(conditions))


def _describe(constraint: Document) -> str:
    """``country is DE`` rather than "country is one of DE"."""
    text = describe_constraint(constraint)
    return text.replace(" is one of ", " is ", 1) if len(strings_of(constraint.get("values"))) == 1 else text
