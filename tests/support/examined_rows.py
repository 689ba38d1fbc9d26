"""How many rows the database examines for a statement, and planner statistics that are missing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection

REMOVED = ("Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck")


@dataclass(frozen=True, slots=True)
class Examined:
    """A statement, the rows that it returned, and those that all nodes of its plan examined."""

    statement: str
    returned: int
    examined: int


@contextmanager
def count_examined_rows() -> Iterator[list[Examined]]:
    """Lists the SELECT statements that are executed in the context. Each is executed twice."""
    counted: list[Examined] = []

    def explain(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if sql.lstrip().startswith("SELECT"):
            execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}", params, many, context)
            [[[explained]]] = context["cursor"].fetchall()
            plan = explained["Plan"]
            counted.append(Examined(sql, round(plan["Actual Rows"]), round(_examined(plan))))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        yield counted


def _examined(node: dict[str, Any]) -> float:
    """Rows of a node and of those below it. PostgreSQL counts them as averages of the node's loops."""
    own = (node["Actual Rows"] + sum(node.get(key, 0) for key in REMOVED)) * node["Actual Loops"]
    return float(own) + sum(_examined(inner) for inner in node.get("Plans", ()))


def clear_statistics() -> None:
    """As if no table had ever been analyzed."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT pg_clear_relation_stats(schemaname, tablename) FROM pg_tables WHERE schemaname = 'public';
            SELECT pg_clear_attribute_stats(schemaname, tablename, attname, false) FROM pg_stats
             WHERE schemaname = 'public'
            """
        )


def analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
