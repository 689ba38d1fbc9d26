"""Describes whom a strategy reaches, and how a change of it changes that: the titles of change requests."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from playground.engine.coercion import objects_of, parameters_of, strings_of, to_text
from playground.engine.sentences import in_segment
from playground.engine.strategy_types import STRATEGY_TYPES
from projects.strategies.sentences import describe_constraint

Document = Mapping[str, Any]
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
