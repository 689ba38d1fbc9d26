"""Payloads of variants: their equality for an application, and their form on pages."""

from __future__ import annotations

import re
from itertools import takewhile

from flagadmin.core.wording import clip
from playground.comparison.results import Shares, replace_payloads
from playground.engine.variants import Payload
from projects.strategies.variant_rules import find_json_fault

MAX_SHOWN = 60
"""Characters of a payload on a page."""
_STRING_OR_SPACE = re.compile(r'("(?:\\.|[^"\\])*")|[ \t\n\r]+')


def normalize_payload(payload: Payload) -> Payload:
    """A normal form, equal for equivalent payloads: JSON without white space between its tokens.

    Everything else matters to the application: the type, the order of members, 1.0 instead of 1.
    """
    kind, value = payload
    if kind != "json" or find_json_fault(value):
        return payload
    return kind, _STRING_OR_SPACE.sub(r"\1", value)


def is_same_payload(first: Payload, second: Payload | None) -> bool:
    return first == second or (second is not None and normalize_payload(first) == normalize_payload(second))


def normalize_payloads(shares: Shares) -> Shares:
    return replace_payloads(shares, normalize_payload)


def describe_payload(payload: Payload | None) -> str:
    """`number 900`, truncated if it is long."""
    return clip(_format_payload(payload), MAX_SHOWN)


def describe_difference(before: Shares, after: Shares) -> tuple[str, str]:
    """The payloads of both sides; of long ones, the differing part."""
    texts = [", ".join(_format_payload(answer.payload) for answer, _ in shares) for shares in (before, after)]
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
    start = max(0, alike - MAX_SHOWN // 2)
    if start and max(map(len, texts)) > MAX_SHOWN:
        texts = [f"…{text[start:]}" for text in texts]
    old, new = (clip(text, MAX_SHOWN) for text in texts)
    return old, new


def _format_payload(payload: Payload | None) -> str:
    return "no payload" if payload is None else " ".join(payload).strip()
