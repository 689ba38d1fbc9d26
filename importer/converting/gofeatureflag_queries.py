"""GO Feature Flag's queries: ``country eq "NO" and (age gt 17 or not (email pr))``.

``and`` and ``or`` bind alike, from the left. ``not`` stands before a parenthesis. Texts are compared in any case, but
those of a list are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson

from importer.converting.comparisons import (
    compare_number,
    compare_versions,
    is_number,
    match_texts_in_any_case,
)
from importer.converting.conditions import (
    MAX_DEPTH,
    All,
    Condition,
    Not,
    Test,
    Unsupported,
    has_value,
    match_any,
)
from importer.converting.conditions import Any as AnyOf
from importer.converting.files import format_text

SYMBOLS = {"==": "eq", "!=": "ne", "<": "lt", ">": "gt", "<=": "le", ">=": "ge"}
RELATIONS = {"eq": "==", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
TEXTS = {"co": "STR_CONTAINS", "sw": "STR_STARTS_WITH", "ew": "STR_ENDS_WITH"}
_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([()])|(\[[^\]]*\])|([=!<>]=|[<>])|([^\s()\[\]"=!<>]+))')
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+\S*", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)


class Version(str):
    __slots__ = ()


class Query:
    """Reads the queries of a flag.

    ``compares_text`` and ``negates`` say whether one compares texts for equality, and whether one negates something.
    """

    def __init__(self, field_of: Callable[[str], str]) -> None:
        self._field_of = field_of
        self._tokens: list[str] = []
        self.compares_text = self.negates = False

    def read(self, query: str) -> Condition:
        """Raises Unsupported, also for what is no query."""
        if not query.strip():
            return All()
        self._tokens = list(reversed(_split(query)))
        condition = self._read_logical(0)
        if self._tokens:
            raise _malformed(self._tokens[-1])
        return condition

    def _read_token(self) -> str:
        if not self._tokens:
            raise Unsupported("A query ends too early.")
        return self._tokens.pop()

    def _read_logical(self, depth: int) -> Condition:
        condition = self._read_term(depth)
        while self._tokens and self._tokens[-1] in ("and", "or"):
            operator = self._read_token()
            other = self._read_term(depth)
            condition = All((condition, other)) if operator == "and" else AnyOf((condition, other))
        return condition

    def _read_term(self, depth: int) -> Condition:
        if depth > MAX_DEPTH:
            raise Unsupported(f"A query is nested deeper than {MAX_DEPTH} levels.")
        token = self._read_token()
        is_negated = token == "not"
        if is_negated:
            self.negates = True
            token = self._read_token()
        if token != "(":
            if is_negated:
                raise Unsupported("not stands before something that is not in parentheses.")
            return self._read_comparison(token)
        condition = self._read_logical(depth + 1)
        if self._read_token() != ")":
            raise Unsupported("A parenthesis of a query is not closed.")
        return Not(condition) if is_negated else condition

    def _read_comparison(self, attribute: str) -> Condition:
        if attribute[:1] in '"[)':
            raise _malformed(attribute)
        field, operator = self._field_of(attribute), self._read_token().lower()
        operator = SYMBOLS.get(operator, operator)
        if operator == "pr":
            return has_value(field)
        value = _read_value(self._read_token())
        if operator == "in":
            return self._read_member(field, value)
        if operator in TEXTS and isinstance(value, str):
            return (
                Test(field, TEXTS[operator], (value,), case_insensitive=True) if value else has_value(field)
            )
        if operator == "ne":
            self.negates = True
            return self._read_different(field, value)
        return self._compare(field, operator, value)

    def _read_different(self, field: str, value: Any) -> Condition:
        if isinstance(value, Version):
            return compare_versions(field, "!=", value)
        return All((has_value(field), Not(self._compare(field, "eq", value))))

    def _compare(self, field: str, operator: str, value: Any) -> Condition:
        relation = RELATIONS.get(operator)
        if relation is None:
            raise Unsupported(f"The operator {operator[:60]} of a query has no equivalent.")
        if isinstance(value, Version):
            return compare_versions(field, "=" if relation == "==" else relation, value)
        if is_number(value):
            return compare_number(field, relation, value)
        if operator != "eq":
            raise Unsupported(f"It compares the order of {field} with what is not a number.")
        return (
            match_any(field, [format_text(value)])
            if isinstance(value, bool)
            else self._read_equal(field, value)
        )

    def _read_member(self, field: str, values: Any) -> Condition:
        """Members of a list are compared as they are written."""
        if not isinstance(values, list):
            raise Unsupported("What follows in is not a list.")
        return match_any(field, map(format_text, values))

    def _read_equal(self, field: str, text: str) -> Condition:
        """Equal in any case. Only a pattern can say that, and a pattern cannot be negated: then, as written."""
        if text.lower() == text.upper():
            return match_any(field, [text])
        self.compares_text = True
        written = Test(field, "IN", (text,), inverted=True)
        return match_texts_in_any_case(field, [text], negation=written)


def _split(query: str) -> list[str]:
    tokens, position, query = [], 0, query.rstrip()
    while position < len(query):
        match = _TOKEN.match(query, position)
        if match is None:
            raise _malformed(query[position:].strip())
        tokens.append(match[match.lastindex or 0])
        position = match.end()
    return tokens


def _read_value(token: str) -> Any:
    if token[:1] in '"[':
        try:
            return orjson.loads(token)
        except orjson.JSONDecodeError:
            raise _malformed(token) from None
    if token in ("true", "false"):
        return token == "true"
    if _VERSION.fullmatch(token):
        return Version(token)
    if _NUMBER.fullmatch(token):
        return orjson.loads(token)
    raise _malformed(token)


def _malformed(text: str) -> Unsupported:
    return Unsupported(f"A query cannot be read at {text[:40]}.")
