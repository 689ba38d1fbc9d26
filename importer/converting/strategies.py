"""Makes strategies from the rules of a flag.

Rules are tried in order, and the first matching one decides. Strategies are tried in order too, and the first that
passes supplies the variant; but none can turn a flag off. So rules that do are excluded from all later ones.

Products hash differently, so a percentage selects other users here. The number of changes is computed with the source's
hash, and there are ways to keep the present users.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

import orjson

from flagadmin.core.document import Document
from flagadmin.core.errors import clip
from importer.converting.conditions import (
    ALWAYS,
    All,
    Alternative,
    Alternatives,
    Condition,
    InSegment,
    Literal,
    Not,
    Sizes,
    Test,
    Unsupported,
    is_number,
    match_any,
)
from importer.converting.files import format_text
from importer.converting.flags import Flag, Outcome, Result, Rule, Share, Split
from playground.engine.constraints import compile_constraint
from playground.engine.context import Columns
from playground.engine.operators import OPERATORS, find_problem
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT
from projects.rules import Limits
from projects.segments.rules import MAX_SEGMENT_NAME_LENGTH
from projects.strategies.rules import TOTAL_WEIGHT

WITHOUT = (Result.OFF, Result.NEXT)


class Strategies:
    """Makes strategies of flags. ``segments`` are the used ones, by name."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.segments: dict[str, tuple[int, list[Document]]] = {}
        self._alternatives = Alternatives(Sizes(limits.constraint_values, limits.segment_values))
        self._known: dict[Test, Document] = {}

    def make(self, flag: Flag, choice: Choice, identifiers: Mapping[str, Sequence[str]]) -> list[Document]:
        """The strategies of a flag. Raises Unsupported if they cannot express its rules."""
        strategies: list[Document] = []
        excluded: list[Condition] = []
        for rule in keep_rules(flag, choice, identifiers):
            if not _is_always(rule.outcome, WITHOUT):
                strategies += self._make_strategies(flag, rule, excluded)
            if _can_be(rule.outcome, Result.OFF):
                if _can_be(rule.outcome, Result.NEXT):
                    raise Unsupported("A share of users is turned off before other rules decide.")
                excluded.append(Not(rule.when))
            if rule.when == ALWAYS and not isinstance(rule.outcome, Split):
                break
        if len(strategies) > self.limits.strategies:
            raise Unsupported(
                f"It needs {len(strategies)} strategies, more than the {self.limits.strategies} here."
            )
        return [
            strategy | {"featureName": flag.name, "sortOrder": n} for n, strategy in enumerate(strategies)
        ]

    def _make_strategies(self, flag: Flag, rule: Rule, excluded: Sequence[Condition]) -> Iterator[Document]:
        shares = _find_shares(rule.outcome)
        for alternative in self._alternatives.find(All((rule.when, *excluded))):
            yield {
                "name": FLEXIBLE_ROLLOUT,
                "title": rule.title[:100] or None,
                "disabled": False,
                "parameters": self._make_parameters(flag, rule.outcome),
                "constraints": self._make_constraints(alternative),
                "segments": self._list_segments(alternative),
                "variants": [*_make_variants(flag, shares, rule.outcome)] if flag.values else [],
            }

    def _make_parameters(self, flag: Flag, outcome: Outcome | Split) -> dict[str, str]:
        stickiness = outcome.field if isinstance(outcome, Split) else "default"
        return {
            "rollout": str(_find_percentage(flag, outcome)),
            "stickiness": stickiness,
            "groupId": flag.name,
        }

    def _make_constraints(self, alternative: Alternative) -> list[Document]:
        constraints = [self._find_constraint(each) for each in alternative if isinstance(each, Test)]
        if len(constraints) > self.limits.constraints:
            raise Unsupported(f"A rule needs more than {self.limits.constraints} constraints.")
        return [dict(constraint) for constraint in constraints]

    def _find_constraint(self, test: Test) -> Document:
        if test not in self._known:
            self._known[test] = _make_constraint(test, self.limits)
        return self._known[test]

    def _list_segments(self, alternative: Alternative) -> list[int]:
        segments = [each for each in alternative if isinstance(each, InSegment)]
        if len(segments) > self.limits.segments:
            raise Unsupported(f"A rule needs more than {self.limits.segments} segments.")
        return [self._find_segment(segment) for segment in segments]

    def _find_segment(self, segment: InSegment) -> int:
        """The id of a segment. A segment with the same name but other constraints gets another name."""
        assert isinstance(segment.condition, All)
        constraints = self._make_constraints(tuple(_list_literals(segment.condition)))
        name, number = clip(segment.name, MAX_SEGMENT_NAME_LENGTH), 1
        while name in self.segments and self.segments[name][1] != constraints:
            number += 1
            ending = f" ({number})"
            name = clip(segment.name, MAX_SEGMENT_NAME_LENGTH - len(ending)) + ending
        identifier, _ = self.segments.setdefault(name, (len(self.segments) + 1, constraints))
        return identifier


def _list_literals(condition: All) -> Iterator[Literal]:
    for part in condition.parts:
        assert isinstance(part, Test)
        yield part


def _is_always(outcome: Outcome | Split, results: Sequence[Outcome]) -> bool:
    outcomes = (
        [share.outcome for share in outcome.shares if share.weight]
        if isinstance(outcome, Split)
        else [outcome]
    )
    return all(each in results for each in outcomes)


def _can_be(outcome: Outcome | Split, result: Result) -> bool:
    if isinstance(outcome, Split):
        return any(share.outcome is result and share.weight for share in outcome.shares)
    return outcome is result


def _find_percentage(flag: Flag, outcome: Outcome | Split) -> int:
    """The rollout in whole percent. A partial share stays partial."""
    if not isinstance(outcome, Split):
        return 100
    total = sum(share.weight for share in outcome.shares)
    on = sum(share.weight for share in outcome.shares if share.outcome not in WITHOUT)
    if outcome.is_paused and on < total:
        return 0
    percent = 100 * on / total if total else 0
    rounded = min(max(round(percent), 1), 99) if 0 < percent < 100 else round(percent)
    if abs(rounded - percent) > 1e-6:
        flag.add_difference("rounding", f"{percent:g} % becomes {rounded} %: rollouts are whole percentages.")
    return rounded


def _find_shares(outcome: Outcome | Split) -> dict[str, float]:
    """The weight of each variant."""
    if not isinstance(outcome, Split):
        return {outcome: 1.0} if isinstance(outcome, str) else {}
    shares: dict[str, float] = {}
    for share in outcome.shares:
        if isinstance(share.outcome, str) and share.weight:
            shares[share.outcome] = shares.get(share.outcome, 0) + share.weight
    return shares


def _make_variants(flag: Flag, shares: dict[str, float], outcome: Outcome | Split) -> Iterator[Document]:
    """Variants with weights out of 1000. The largest absorbs the rounding error."""
    total = sum(shares.values())
    weights = {name: round(TOTAL_WEIGHT * weight / total) for name, weight in shares.items()}
    if any(abs(weights[name] - TOTAL_WEIGHT * weight / total) > 1e-6 for name, weight in shares.items()):
        flag.add_difference("rounding", "Weights of variants are rounded to 0.1 %.")
    largest = max(weights, key=weights.__getitem__, default="")
    for name, weight in weights.items():
        rest = TOTAL_WEIGHT - sum(weights.values()) if name == largest else 0
        payload = _make_payload(name, flag.values[name])
        yield {
            "name": name,
            "weight": weight + rest,
            "weightType": "variable" if name == largest else "fix",
            "stickiness": outcome.field if isinstance(outcome, Split) else "default",
            **({"payload": payload} if payload else {}),
        }


def _make_payload(name: str, value: Any) -> Document | None:
    if value is None:
        return None
    if isinstance(value, str):
        return {"type": "string", "value": value}
    try:
        text = orjson.dumps(value).decode()
    except (TypeError, ValueError):
        text = "null"
    if text == "null":  # numbers that are too large, infinite or NaN
        raise Unsupported(f"The value of {name} cannot be written as JSON.")
    if is_number(value):
        return {"type": "number", "value": format_text(value)}
    return {"type": "json", "value": text}


def _make_constraint(test: Test, limits: Limits) -> Document:
    """The constraint in the format of an export. Raises Unsupported if SDKs could not read it."""
    operator = "NOT_IN" if test.operator == "IN" and test.inverted else test.operator
    constraint: Document = {"contextName": test.field, "operator": operator, "values": list(test.values)}
    if not OPERATORS[operator].takes_list:
        constraint["value"] = test.value
    if test.inverted and operator != "NOT_IN":
        constraint["inverted"] = True
    if test.case_insensitive:
        constraint["caseInsensitive"] = True
    for value in test.values or (test.value,):
        if fault := find_problem(operator, value) or _find_value_fault(
            value, limits if test.values else None
        ):
            raise Unsupported(f"{test.field} is compared with {value[:60]!r}, which {fault}.")
    if unreadable := compile_constraint(constraint, Columns()).fault:
        raise Unsupported(f"SDKs could not read a constraint: {unreadable}.")
    return constraint


def _find_value_fault(value: str, limits: Limits | None) -> str:
    if not value:
        return "is empty"
    return (
        f"is longer than {limits.value_length} characters"
        if limits and len(value) > limits.value_length
        else ""
    )


class Choice(StrEnum):
    """How to treat the percentages of a flag."""

    NEW = "new"
    KEEP = "keep"
    BOTH = "both"
    FINISH = "finish"


DESCRIPTIONS = {
    Choice.NEW: "start a new rollout, to the same share of users",
    Choice.KEEP: "keep today's users in segments, and nobody else until you raise the rollout",
    Choice.BOTH: "keep today's users in segments, and start a new rollout as well: nobody loses anything",
    Choice.FINISH: "leave the flag out; finish its rollout first, and convert again",
}


def keep_rules(flag: Flag, choice: Choice, identifiers: Mapping[str, Sequence[str]]) -> Iterator[Rule]:
    """The rules. To keep today's users, rules for segments of them precede each rule with percentages."""
    for number, rule in enumerate(flag.rules, 1):
        if not isinstance(rule.outcome, Split) or choice in (Choice.NEW, Choice.FINISH):
            yield rule
            continue
        name = flag.name if len(flag.splits) == 1 else f"{flag.name}, rule {number}"
        yield from _split_by_users(rule, rule.outcome, name, identifiers)
        yield replace(rule, outcome=replace(rule.outcome, is_paused=choice is Choice.KEEP))


def _split_by_users(
    rule: Rule, split: Split, name: str, identifiers: Mapping[str, Sequence[str]]
) -> Iterator[Rule]:
    if split.field not in identifiers:
        raise Unsupported(f"The file of users has no {split.field}, which its percentages depend on.")
    for outcome, members in pick_all(split, identifiers[split.field]).items():
        if members and outcome not in (Result.OFF, Result.NEXT):
            title = name if outcome is Result.ON else f"{name}: {outcome}"
            segment = InSegment(f"{title} (today)", match_any(split.field, members))
            yield Rule(outcome, All((rule.when, segment)), f"Today's users of {title}")


def pick_all(split: Split, identifiers: Sequence[str]) -> dict[Outcome, list[str]]:
    """The identifiers that get each outcome in the source."""
    if split.pick is None:
        raise Unsupported("Its percentages are chosen by a hash that is not known, so nobody can be kept.")
    outcomes: dict[Outcome, list[str]] = {}
    for identifier in identifiers:
        outcomes.setdefault(split.pick(identifier), []).append(identifier)
    return outcomes


def pick_share(shares: Sequence[Share], position: float) -> Outcome:
    """The outcome at a position from 0 to the sum of weights. Beyond the end, the last outcome."""
    limit = 0.0
    for share in shares:
        limit += share.weight
        if position < limit:
            return share.outcome
    return shares[-1].outcome
