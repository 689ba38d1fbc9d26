"""Checks texts against the lengths of their columns, for callers without a serializer or form."""

from collections.abc import Iterator

from django.db.models import Model

from flagadmin.core.errors import Problem


def length_problems(row: Model, **paths: str) -> Iterator[Problem]:
    """Yields a problem for each text that is too long for its column. ``paths`` are JSON paths, by column."""
    for column, path in paths.items():
        longest, text = getattr(row._meta.get_field(column), "max_length", None), getattr(row, column) or ""
        if longest is not None and len(text) > longest:
            yield Problem(path, f"must have at most {longest} characters, not {len(text):,}")
