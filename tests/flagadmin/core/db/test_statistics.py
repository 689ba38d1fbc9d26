"""Large writes analyze what they wrote, at the end of the action."""

import uuid

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from flagadmin.core.db.statements import MIN_ROWS, analyze, copy_rows
from flagadmin.core.db.transactions import transactional
from tests.support.examined_rows import clear_statistics


def is_analyzed(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_stats WHERE tablename = %s)", [table])
        return bool(cursor.fetchone()[0])


def copy_tags(rows: int) -> None:
    values = ((f"type-{uuid.uuid4()}", "", timezone.now()) for _ in range(rows))
    copy_rows("projects_tagtype", ("name", "description", "created_at"), values)


@pytest.mark.django_db
def test_many_rows_are_analyzed_at_the_end_of_the_action() -> None:
    clear_statistics()
    analyzed_inside = []

    @transactional
    def write() -> None:
        for _ in range(2):
            copy_tags(MIN_ROWS // 2)
        analyzed_inside.append(is_analyzed("projects_tagtype"))

    write()
    assert analyzed_inside == [False]
    assert is_analyzed("projects_tagtype")


@pytest.mark.django_db
def test_few_rows_are_left_to_autovacuum() -> None:
    clear_statistics()
    transactional(copy_tags)(MIN_ROWS - 1)
    assert not is_analyzed("projects_tagtype")


@pytest.mark.django_db(transaction=True)
def test_tables_that_are_being_vacuumed_are_not_waited_for() -> None:
    given = connection.get_connection_params()
    place = {name: given[name] for name in ("host", "user", "dbname")}
    with psycopg.connect(**place) as other, connection.cursor() as cursor:
        other.execute("LOCK TABLE projects_tagtype IN SHARE UPDATE EXCLUSIVE MODE")
        cursor.execute("SET statement_timeout = '20s'")
        analyze(["projects_tagtype"])
        cursor.execute("RESET statement_timeout")
