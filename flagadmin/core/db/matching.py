"""Finds rows by the words of a search and puts the best matches first.

Ranks: 0 the name is what was typed; otherwise each word adds 1 (the name begins with it), 2 (a part of the
name after ``- . _ / :`` or a space does), 3 (it is inside the name) or 4 (only in the other text).
"""

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from django.db.models import BooleanField, Count, Func, IntegerField, Model, Q, QuerySet, Window
from django.db.models.expressions import OrderBy

M = TypeVar("M", bound=Model)
MAX_WORDS, MAX_LETTERS = 8, 200
WORD_START = "[-._/: ]"


def split_words(text: str) -> tuple[str, ...]:
    """The words that a row must contain, each once. The rest of a very long text is ignored."""
    return tuple(dict.fromkeys(text[:MAX_LETTERS].split()))[:MAX_WORDS]


def find_best_matches(
    rows: QuerySet[M],
    words: Sequence[str],
    *names: str,
    also: Sequence[str] = (),
    first: Sequence[str | OrderBy] = (),
    limit: int | None = None,
) -> QuerySet[M]:
    """Rows that contain every word in a name or in a column of ``also``, ignoring case; the best first.

    ``first`` orders rows of the same rank, then their names do. Each row has its ``rank`` and, as ``match_count``,
    the number of matching rows. ``limit`` bounds the rows that are ranked in a large table: if more match, they
    are those that begin with what was typed, and any others. The first name then needs an index.
    """
    typed = " ".join(words)
    matches: Any = rows.filter(_Matches(*names, *also, words=words))
    if limit is not None:
        beginning = Q(**{f"{names[0]}__startswith": typed}) | Q(**{f"{names[0]}__startswith": typed.lower()})
        any_matches, beginning_matches = (
            queryset.order_by().values("pk")[:limit] for queryset in (matches, matches.filter(beginning))
        )
        matches = rows.filter(pk__in=any_matches.union(beginning_matches))
    matches = matches.annotate(rank=_Rank(*names, words=words), match_count=Window(Count("*")))
    return matches.order_by("rank", *first, *names[:1], "pk")


Sql = tuple[str, list[Any]]


class _OfWords(Func):
    """An SQL expression of columns and words, written in one piece: Django takes long to compile many small ones."""

    def __init__(self, *columns: Any, words: Sequence[str] = (), **extra: Any) -> None:
        super().__init__(*columns, **extra)
        self.words = words

    def any_column(self, compiler: Any, operator: str, text: str) -> Sql:
        """Compares the columns in capitals. Folding only ASCII, where that finds the same, is much faster."""
        collate = ' COLLATE "C"' if "".join(self.words).isascii() else ""
        columns = [compiler.compile(column) for column in self.get_source_expressions()]
        sql = " OR ".join(f"UPPER(({column}){collate}) {operator} UPPER(%s)" for column, _ in columns)
        return f"({sql})", [parameter for _, parameters in columns for parameter in (*parameters, text)]


class _Matches(_OfWords):
    """Whether every word is in one of the columns."""

    output_field = BooleanField()

    def as_sql(self, compiler: Any, connection: Any, **_: Any) -> Sql:  # type: ignore[override]
        parts = [
            self.any_column(compiler, "LIKE", f"%{_escape_like(connection, word)}%") for word in self.words
        ]
        return " AND ".join(sql for sql, _ in parts), [
            parameter for _, parameters in parts for parameter in parameters
        ]


class _Rank(_OfWords):
    output_field = IntegerField()

    def as_sql(self, compiler: Any, connection: Any, **_: Any) -> Sql:  # type: ignore[override]
        exact, parameters = self.any_column(compiler, "=", " ".join(self.words))
        ranks = []
        for word in self.words:
            text = _escape_like(connection, word)
            tests = (("LIKE", f"{text}%"), ("~", WORD_START + re.escape(word)), ("LIKE", f"%{text}%"))
            cases = [self.any_column(compiler, *test) for test in tests]
            whens = " ".join(f"WHEN {sql} THEN {rank}" for rank, (sql, _) in enumerate(cases, 1))
            ranks.append(f"CASE {whens} ELSE 4 END")
            parameters = [*parameters, *(parameter for _, more in cases for parameter in more)]
        return f"CASE WHEN {exact} THEN 0 ELSE {' + '.join(ranks)} END", parameters


def _escape_like(connection: Any, text: str) -> str:
    return connection.ops.prep_for_like_query(text)


def rank_names(words: Sequence[str], names: Sequence[str]) -> int | None:
    """The rank of something that is not in the database; None if a word is missing in all its names."""
    folded = [name.casefold() for name in names]
    ranks = [_rank_word(folded, word.casefold()) for word in words]
    if any(rank is None for rank in ranks):
        return None
    return 0 if " ".join(words).casefold() in folded else sum(filter(None, ranks))


def _rank_word(names: Sequence[str], word: str) -> int | None:
    if any(name.startswith(word) for name in names):
        return 1
    if any(re.search(WORD_START + re.escape(word), name) for name in names):
        return 2
    return 3 if any(word in name for name in names) else None
