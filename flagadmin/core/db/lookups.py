"""Finds rows by their fields, by search words, or by names spelled similarly.

Ranks of matches: 0 if the name equals the search text; otherwise each word adds 1 (the name begins with it), 2 (a part
of the name after ``- . _ / :`` or a space does), 3 (it is inside the name) or 4 (only in the other text).

Checks texts against the lengths of their columns, for callers without a serializer or form.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import BooleanField, Count, Func, IntegerField, Manager, Model, Q, QuerySet, Window
from django.db.models.expressions import OrderBy

from flagadmin.core.errors import NotFound, Problem

Row = TypeVar("Row", bound=Model)


def get_or_404(rows: Manager[Row] | QuerySet[Row], message: str, **lookups: Any) -> Row:
    """The first row with these values. Raises NotFound with the message, which Django's own shortcut cannot take."""
    try:
        row = rows.filter(**lookups).first()
    except ValidationError:  # no row can have this value, for example an invalid UUID
        row = None
    if row is None:
        raise NotFound(message)
    return row


M = TypeVar("M", bound=Model)
MAX_WORDS, MAX_LETTERS = 8, 200
WORD_START = "[-._/: ]"


def split_words(text: str) -> tuple[str, ...]:
    """The words that a row must contain, without duplicates. Ignores the rest of a very long text."""
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

    ``first`` sorts rows of the same rank, then their names do. Each row has its ``rank`` and, as ``match_count``, the
    number of matching rows. ``limit`` bounds the rows ranked in a large table: if more match, it ranks rows whose first
    name begins with the search text and an arbitrary set of others. The first name then needs an index.
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
    """An SQL expression over columns and words, built in one piece: Django is slow to compile many small ones."""

    def __init__(self, *columns: Any, words: Sequence[str] = (), **extra: Any) -> None:
        super().__init__(*columns, **extra)
        self.words = words

    def any_column(self, compiler: Any, operator: str, text: str) -> Sql:
        """Compares the columns in capitals. Folds only ASCII where that finds the same rows, which is much faster."""
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
    """The rank of an item outside the database; None if a word occurs in none of its names."""
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


PIECE = 3  # consecutive letters that a candidate must share with the search text
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

    Compares only the MAX_CANDIDATES that share the most pieces with the words.
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

    None if a word has more than one error, or more than two from six letters on. Words are in lower case.
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
    """Letters to add, drop, change or swap until the word is a prefix of the part (optimal string alignment)."""
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


def length_problems(row: Model, **paths: str) -> Iterator[Problem]:
    """Yields a problem for each text that is too long for its column. ``paths`` are JSON paths, by column."""
    for column, path in paths.items():
        longest, text = getattr(row._meta.get_field(column), "max_length", None), getattr(row, column) or ""
        if longest is not None and len(text) > longest:
            yield Problem(path, f"must have at most {longest} characters, not {len(text):,}")
