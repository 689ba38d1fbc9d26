"""Computes the exact shares of answers over many calls with one context."""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction
from typing import NamedTuple

from playground.engine.outcomes import State
from playground.engine.variants import Payload

ONE, ZERO = Fraction(1), Fraction(0)


class Answer(NamedTuple):
    """The result of one call; `state` is on, off or unknown."""

    state: State
    variant: str | None = None
    payload: Payload | None = None


Shares = tuple[tuple[Answer, Fraction], ...]
"""The answers over many calls with one context, with the share of each; together 1."""

OFF, UNKNOWN = Answer(State.OFF), Answer(State.UNKNOWN)
ALWAYS_OFF: Shares = ((OFF, ONE),)
ALWAYS_ON: Shares = ((Answer(State.ON), ONE),)


Met = tuple[Fraction, Fraction]
"""The share of calls on which a condition holds, and on which only an SDK can tell."""


def share_switched(shares: Shares, enabled: bool) -> Met:
    """The share of calls on which a parent is on, or off."""
    wanted = State.ON if enabled else State.OFF
    return _share_met(shares, lambda answer: answer.state is wanted)


def share_with_variant(shares: Shares, variants: Collection[str]) -> Met:
    """The share of calls on which a parent that is on yields one of these variants, or none (satisfies any)."""
    return _share_met(shares, lambda answer: answer.variant in (None, *variants))


def combine_met(some: Met, others: Met) -> Met:
    """Combines two independent random conditions."""
    met, possible = some[0] * others[0], sum(some) * sum(others)
    return met, possible - met


def _share_met(shares: Shares, is_met: Callable[[Answer], bool]) -> Met:
    met = unknown = ZERO
    for answer, share in shares:
        if answer.state is State.UNKNOWN:
            unknown += share
        elif is_met(answer):
            met += share
    return met, unknown


def apply_parents(shares: Shares, met: Fraction, unknown: Fraction) -> Shares:
    """The results of a flag whose parents are in the required state on a share of calls. Off always stays off."""
    answers: dict[Answer, Fraction] = {}
    for answer, share in shares:
        if answer.state is State.OFF:
            add_share(answers, OFF, share)
        else:
            add_share(answers, answer, share * met)
            add_share(answers, UNKNOWN, share * unknown)
            add_share(answers, OFF, share * (1 - met - unknown))
    return sort_shares(answers)


def add_share(answers: dict[Answer, Fraction], answer: Answer, share: Fraction) -> dict[Answer, Fraction]:
    if share:
        answers[answer] = answers.get(answer, ZERO) + share
    return answers


def sort_shares(answers: dict[Answer, Fraction]) -> Shares:
    return tuple(sorted(answers.items(), key=lambda item: sort_key(item[0])))


def sort_key(answer: Answer) -> tuple[str, str, Payload]:
    return answer.state.value, answer.variant or "", answer.payload or ("", "")


def drop_payloads(shares: Shares) -> Shares:
    """The same shares without payloads."""
    return replace_payloads(shares, lambda payload: None)


def replace_payloads(shares: Shares, replace: Callable[[Payload], Payload | None]) -> Shares:
    answers: dict[Answer, Fraction] = {}
    for answer, share in shares:
        payload = None if answer.payload is None else replace(answer.payload)
        add_share(answers, answer._replace(payload=payload), share)
    return sort_shares(answers)
