"""Finds names that are spelled almost as what was typed: "chekout" finds checkout."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from django.db.models import Func, IntegerField, Model, QuerySet

M = TypeVar("M", bound=Model)
PIECE = 3  # letters that a candidate must have in common with what was typed, in a row
MIN_LETTERS = 4  # a shorter word is similar to too many
MAX_CANDIDATES = 100
_PARTS = re.compile(r"[-._/: ]+")


class _SharedPieces(Func):
    """The number of pieces of the words that the column contains, ignoring the case of ASCII letters."""

    output_field = IntegerField()

    def __init__(self, column: Any, *, pieces: Sequence[str], **extra: Any) -> None:
        super().__init__(column, **extra)
        self.pieces = pieces

    def as_sql(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        column, parameters = compiler.compile(self.get_source_expressions()[0])
        sql = " + ".join(f'(strpos(lower(({column}) COLLATE "C"), %s) > 0)::int' for _ in self.pieces)
        return f"({sql})", [value for piece in self.pieces for value in (*parameters, piece)]


def find_similar_rows(rows: QuerySet[M], words: Sequence[str], column: str, limit: int) -> list[M]:
    """The rows whose name is similar to all words, the most similar first. One query; none for short words.

    Only the MAX_CANDIDATES that share most pieces with the words are compared.
    """
    folded = [word.casefold() for word in words]
    pieces = sorted({word[at : at + PIECE] for word in folded for at in range(len(word) - PIECE + 1)})
    if not pieces or any(len(word) < MIN_LETTERS for word in folded):
        return []
    candidates = rows.annotate(shared=_SharedPieces(column, pieces=pieces)).filter(shared__gt=0)
    candidates = candidates.order_by("-shared", column)[:MAX_CANDIDATES]
    ranked = [(count_differences(folded, [getattr(row, column)]), row) for row in candidates]
    similar = [(number, row) for number, row in ranked if number is not None]
    return [row for _, row in sorted(similar, key=lambda pair: pair[0])[:limit]]


def count_differences(words: Iterable[str], names: Iterable[str]) -> int | None:
    """The number of typing errors in the words, each compared with the beginnings of the parts of the names.

    None if a word has more than one, or two from six letters on. Words are in lower case.
    """
    parts = [part for name in names for part in _PARTS.split(name.casefold()) if part]
    total = 0
    for word in words:
        best = min((_count_errors(word, part) for part in parts), default=len(word))
        if best > (2 if len(word) >= 6 else 1) or len(word) < MIN_LETTERS:
            return None
        total += best
    return total


def _count_errors(word: str, part: str) -> int:
    """Letters to add, drop, change or swap until the word is a beginning of the part (optimal string alignment)."""
    part = part[: len(word) + 2]
    before: list[int] = []
    row = list(range(len(part) + 1))
    for at, letter in enumerate(word, 1):
        last, before_last, row = row, before, [at]
        for index, other in enumerate(part, 1):
            cost = min(last[index] + 1, row[-1] + 1, last[index - 1] + (letter != other))
            if at > 1 and index > 1 and letter == part[index - 2] and word[at - 2] == other:
                cost = min(cost, before_last[index - 2] + 1)
            row.append(cost)
        before = last
    return min(row)
