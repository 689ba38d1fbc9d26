"""Describes a strategy in a sentence: "On for 50 % of users, by userId, where country is one of US, DE".

These sentences describe the configuration. ``playground.engine.reasons`` explains the result for a context
and uses the same phrases.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from playground.engine.coercion import objects_of, parameters_of, strings_of, to_text
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
    several = OPERATORS[operator].takes == "values"
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
