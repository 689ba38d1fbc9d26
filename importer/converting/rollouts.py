"""Converts percentages.

Each product hashes differently, so a percentage is never the same users here. How many change is computed with the hash
of the source; and there are ways to keep those who have something now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from importer.converting.conditions import All, InSegment, Unsupported, match_any
from importer.converting.flags import Flag, Outcome, Result, Rule, Share, Split


class Choice(StrEnum):
    """The ways of treating the percentages of a flag."""

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
    """The rules. If today's users are kept, one with each segment of them comes before a rule with percentages."""
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
    """The outcome at a place from 0 to the sum of weights. Beyond the last, the last."""
    limit = 0.0
    for share in shares:
        limit += share.weight
        if position < limit:
            return share.outcome
    return shares[-1].outcome
