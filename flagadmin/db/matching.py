"""Finds rows by the words of a search and puts the best matches first.

Ranks: 0 the name is what was typed; otherwise each word adds 1 (the name begins with it), 2 (a part of the
name after ``- . _ / :`` or a space does), 3 (it is inside the name) or 4 (only in the other text).
"""

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add, and_, or_
from typing import Any, TypeVar

from django.db.models import Case, Count, Model, Q, QuerySet, Value, When, Window
from django.db.models.expressions import OrderBy
from django.db.models.functions import Collate

M = TypeVar("M", bound=Model)
MOST_WORDS, MOST_LETTERS = 8, 200
WORD_START = "[-._/: ]"


def words_of(text: str) -> tuple[str, ...]:
    """The words that a row must contain, each once. The rest of a very long text is ignored."""
    return tuple(dict.fromkeys(text[:MOST_LETTERS].split()))[:MOST_WORDS]


def best_matches(
    rows: QuerySet[M],
    words: Sequence[str],
    *names: str,
    also: Sequence[str] = (),
    first: Sequence[str | OrderBy] = (),
    most: int | None = None,
) -> QuerySet[M]:
    """Rows that contain every word in a name or in a column of ``also``, ignoring case; the best first.

    ``first`` orders rows of the same rank, then their names do. Each row has its ``rank`` and, as ``found``,
    the number of matching rows. ``most`` bounds the rows that are ranked in a large table: if more match, they
    are those that begin with what was typed, and any others. The first name then needs an index.
    """
    typed = " ".join(words)
    if typed.isascii():  # folding ASCII only is several times as fast, and finds the same
        rows = rows.alias(**{f"ascii_{column}": Collate(column, "C") for column in (*names, *also)})
        searched, more = [f"ascii_{name}" for name in names], [f"ascii_{column}" for column in also]
    else:
        searched, more = list(names), list(also)
    found: Any = rows.filter(reduce(and_, (_any((*searched, *more), "icontains", word) for word in words)))
    if most is not None:
        beginning = _any(names[:1], "startswith", typed) | _any(names[:1], "startswith", typed.lower())
        some = [each.order_by().values("pk")[:most] for each in (found, found.filter(beginning))]
        found = rows.filter(pk__in=some[0].union(some[1]))
    ranks: Iterable[Any] = (_rank_in_sql(searched, word) for word in words)
    rank = Case(When(_any(searched, "iexact", typed), then=Value(0)), default=reduce(add, ranks))
    return found.annotate(rank=rank, found=Window(Count("*"))).order_by("rank", *first, *names[:1], "pk")


def _any(columns: Iterable[str], lookup: str, text: str) -> Q:
    return reduce(or_, (Q(**{f"{column}__{lookup}": text}) for column in columns))


def _rank_in_sql(names: Sequence[str], word: str) -> Case:
    tests = (("istartswith", word), ("iregex", WORD_START + re.escape(word)), ("icontains", word))
    cases = (When(_any(names, test, text), then=Value(rank)) for rank, (test, text) in enumerate(tests, 1))
    return Case(*cases, default=Value(4))


def rank_of(words: Sequence[str], names: Sequence[str]) -> int | None:
    """The rank of something that is not in the database; None if a word is missing in all its names."""
    folded = [name.casefold() for name in names]
    ranks = [_rank(folded, word.casefold()) for word in words]
    if any(rank is None for rank in ranks):
        return None
    return 0 if " ".join(words).casefold() in folded else sum(filter(None, ranks))


def _rank(names: Sequence[str], word: str) -> int | None:
    if any(name.startswith(word) for name in names):
        return 1
    if any(re.search(WORD_START + re.escape(word), name) for name in names):
        return 2
    return 3 if any(word in name for name in names) else None
