"""Analyzes tables after large writes, before anything reads them: autovacuum does so only after a minute."""

from collections import Counter

from flagadmin.core.db.statements import execute
from flagadmin.core.db.transactions import make_at_end_of_action

MIN_ROWS = 1_000


class _Written:
    """The rows that an action has written, by table. Called at its end, analyzes tables that have changed much."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()

    def __call__(self) -> None:
        analyze(sorted(table for table, rows in self.rows.items() if rows >= MIN_ROWS))


def note_written(table: str, rows: int) -> None:
    """Has the current action analyze the table at its end, if there are many rows in all."""
    if written := make_at_end_of_action(_Written):
        written.rows[table] += rows


def analyze(tables: list[str]) -> None:
    """Tables that somebody is analyzing or vacuuming are left out, instead of waiting for that."""
    if tables:
        execute(f"ANALYZE (SKIP_LOCKED) {', '.join(tables)}")
