"""Queries as tables: who may run them, and what they cannot do."""

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from flagadmin.core.errors import Conflict, ValidationError
from playground.outcomes import answer, sql
from playground.user_runs import worker
from tests.playground.outcomes.analyses import START, at, make, rollout, send
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db

URL = "/api/admin/playground/assignments"
RUNS = "/api/admin/playground/users"
PAGE = "/playground/assignments/"
MINUTE = timedelta(minutes=1)
Write = Callable[[str], int]
ORDERS = """
SELECT n AS "userId", timestamptz '2020-01-01 01:00+01' AS time, n * 0.5 AS amount, n = 1 AS first, NULL AS nothing
  FROM generate_series(1, 1200) n;
"""


@pytest.fixture
def queries(settings: Any, tmp_path: Path) -> Write:
    """Writes the file of queries. The database that they read is the one of the tests."""
    parameters = connection.get_connection_params()
    names = {"dbname", "user", "password", "host", "port"} & parameters.keys()
    settings.QUERIES_DATABASE_URL = psycopg.conninfo.make_conninfo(
        **{name: parameters[name] for name in names}
    )
    settings.QUERIES = str(tmp_path / "queries.yaml")
    return Path(settings.QUERIES).write_text


def name_query(text: str, **members: str) -> str:
    lines = "\n".join(f"    {line}" for line in text.strip().splitlines())
    return (
        "it:\n" + "".join(f"  {name}: {value}\n" for name, value in members.items()) + f"  sql: |\n{lines}\n"
    )


def read(name: str = "it") -> list[str]:
    with io.BufferedReader(sql.open_query(name)) as stream:
        return stream.read().decode().splitlines()


def refused(queries: Write, text: str) -> str:
    queries(name_query(text))
    with pytest.raises(ValidationError) as caught:
        read()
    return str(caught.value.details[0])


def test_values_are_those_of_other_tables(queries: Write) -> None:
    queries(name_query(ORDERS))
    lines = read()
    assert lines[:3] == [
        "userId,time,amount,first,nothing",
        "1,2020-01-01T00:00:00+00:00,0.5,true,",
        "2,2020-01-01T00:00:00+00:00,1.0,false,",
    ]
    assert len(lines) == 1_201


WRITES = {
    "a table": "CREATE TABLE stolen (n int)",
    "rows": "WITH gone AS (DELETE FROM groups_user RETURNING id) SELECT id FROM gone",
    "a sequence": "SELECT nextval('groups_user_id_seq')",
    "a large object": "SELECT lo_create(4711)",
    "after it gave itself the right": "SELECT set_config('transaction_read_only', 'off', true), lo_create(4711)",
    "in a second statement": "SELECT 1; DELETE FROM groups_user",
    "in a transaction of its own": "SELECT 1; COMMIT; SELECT lo_create(4711)",
    "a file": "COPY (SELECT 1) TO PROGRAM 'touch /tmp/stolen'",
}


@pytest.mark.parametrize("text", WRITES.values(), ids=WRITES)
def test_a_query_that_writes_fails(queries: Write, text: str) -> None:
    assert "query: it failed: " in refused(queries, text)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_largeobject_metadata")
        assert cursor.fetchone() == (0,)


def test_a_query_without_end_is_ended(queries: Write, settings: Any) -> None:
    settings.QUERIES_SECONDS = 1
    assert "took more than 1 seconds" in refused(queries, "SELECT pg_sleep(60)")
    # Each fetch is quick; all of them are not.
    slow = "SELECT n, pg_sleep(0.002) FROM generate_series(1, 1000000000) n"
    assert "took more than 1 seconds" in refused(queries, slow)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'flagadmin queries' AND state = 'active'"
        )
        assert cursor.fetchone() == (0,)


def test_who_stops_reading_ends_the_query(queries: Write) -> None:
    queries(name_query("SELECT n FROM generate_series(1, 1000000000) n"))
    stream = sql.open_query("it")
    assert stream.read(10)
    stream.close()
    assert stream._connection.closed  # type: ignore[attr-defined]


def test_values_that_no_table_has_are_refused(queries: Write) -> None:
    assert "must select text, numbers, true or false, and times, not dict" in refused(
        queries, "SELECT '{}'::jsonb"
    )
    assert "not bytes" in refused(queries, "SELECT 'x'::bytea")


def test_the_address_of_the_database_is_not_told(queries: Write, settings: Any) -> None:
    settings.QUERIES_DATABASE_URL = "postgresql://reader:secret@127.0.0.1:1/shop"
    told = refused(queries, "SELECT 1")
    assert "cannot be reached" in told
    assert not any(part in told for part in ("127.0.0.1", "reader", "secret"))


@pytest.mark.parametrize(
    "text",
    [
        "- it",
        "it: SELECT 1",
        "it: {sql: ''}",
        "it: {sql: SELECT 1, role: x}",
        "'a b': {sql: SELECT 1}",
        "it: !!python/name:os.system",
    ],
)
def test_a_file_that_is_not_sound_is_refused(queries: Write, callers: Any, text: str) -> None:
    queries(text)
    with pytest.raises(Conflict, match="file of queries cannot be read"):
        sql.list_queries(callers("admin"))


def test_files_can_be_sent_though_the_file_of_queries_is_not_sound(
    queries: Write, browse: Any, shop: Any
) -> None:
    live_flag("f")
    queries("- it")
    for page in (PAGE, "/projects/shop/features/f/analyses/new"):
        response = browse("viewer").get(page)
        assert response.status_code == 200
        assert (
            page_text(response).count("The server's file of queries cannot be read; its log says why.") == 1
        )
        assert 'name="file"' in response.text
        assert 'name="query"' not in response.text


def test_whoever_may_update_flags_of_the_project_may_run_it(
    queries: Write, api: Any, callers: Any, shop: Any
) -> None:
    live_flag("f")
    queries(
        name_query('SELECT 1 AS "userId"', project="shop") + name_query(ORDERS).replace("it:", "orders:", 1)
    )
    listed = {who: sql.list_queries(callers(who)) for who in ("admin", "owner", "viewer")}
    assert listed == {"admin": ["it", "orders"], "owner": ["it"], "viewer": []}
    address = f"{URL}?environment=production&flag=f&query="
    answers = [
        api[who].post(address + query, data=b"", content_type="text/csv")
        for who, query in (("viewer", "it"), ("owner", "orders"), ("owner", "it"))
    ]
    assert [answer.status_code for answer in answers] == [400, 400, 202]
    assert answers[0].json()["details"][0]["message"] == "there is no query that you may run"
    assert answers[1].json()["details"][0]["message"] == "must be one of it"


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "start", lambda: None)
    monkeypatch.setattr(answer, "run_in_process", lambda work, *args: work(*args))


def test_rows_of_a_query_are_answered_beside_requests(
    queries: Write, api: Any, shop: Any, beside: None
) -> None:
    live_flag("f")
    queries(name_query(ORDERS))
    begun = api["admin"].post(
        f"{URL}?environment=production&flag=f&query=it", data=b"", content_type="text/csv"
    )
    assert begun.json()["state"] == "waiting"
    worker.work()
    address = begun["Location"].replace("users", RUNS)
    assert api["admin"].get(address).json()["state"] == "done"
    result = b"".join(api["admin"].get(f"{address}/result").streaming_content).decode()
    rows = list(csv.DictReader(io.StringIO(result, newline="")))
    assert len(rows) == 1_200
    assert (rows[1]["userId"], rows[1]["amount"], rows[1]["result"]) == ("2", "1.0", "off")


def test_a_query_that_fails_is_named_by_its_run(queries: Write, api: Any, shop: Any, beside: None) -> None:
    live_flag("f")
    queries(name_query("SELECT 1 / (n - 3) AS time FROM generate_series(1, 5) n"))
    begun = api["admin"].post(
        f"{URL}?environment=production&flag=f&query=it", data=b"", content_type="text/csv"
    )
    worker.work()
    run = api["admin"].get(begun["Location"].replace("users", RUNS)).json()
    assert run["state"] == "failed"
    assert "it failed: division by zero" in str(run)


def test_the_page_offers_queries_to_those_who_may_run_them(
    queries: Write, browse: Any, shop: Any, beside: None
) -> None:
    live_flag("f")
    queries(name_query(ORDERS, project="shop"))
    assert "Or a query" not in page_text(browse("viewer").get(PAGE))
    assert "Or a query" in page_text(browse("owner").get(PAGE))
    values = {"flag": "f", "environment": "production", "lag": "0"}
    assert "Choose a table or a query." in page_text(browse("owner").post(PAGE, values))
    assert browse("owner").post(PAGE, values | {"query": "it"}).status_code == 302
    assert "Select a valid choice" in page_text(browse("owner").post(PAGE, values | {"query": "other"}))


def test_an_analysis_reads_a_query_once(
    queries: Write, api: Any, browse: Any, shop: Any, beside: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(lambda minutes: monkeypatch.setattr(timezone, "now", lambda: START + minutes * MINUTE), rollout(50))
    # Other users each time that it runs.
    visits = f"""
SELECT n + (random() * 1e9)::bigint * 1000 AS "userId", timestamptz '{at(60)}' AS time, n % 3 = 0 AS bought
  FROM generate_series(1, 600) n"""
    queries(name_query(visits, project="shop"))
    assert send(api, "", query="it").json()["details"][0]["message"] == "there is no query that you may run"
    begun = send(api, "", who="owner", query="it")
    assert (begun.status_code, begun.json()["state"]) == (202, "waiting")
    worker.work()
    done = api["viewer"].get(f"/api/admin/projects/shop/features/f/analyses/{begun.json()['id']}").json()
    assert done["problem"] is None
    assert (done["state"], done["result"]["counts"]["units"]) == ("done", 600)
    assert sum(done["result"]["shares"][0]["units"].values()) == 600
    new = "/projects/shop/features/f/analyses/new"
    assert (
        "Or a query" in page_text(browse("owner").get(new)),
        "Or a query" in page_text(browse("viewer").get(new)),
    ) == (
        True,
        False,
    )


def test_the_command_reads_a_query(queries: Write, shop: Any) -> None:
    live_flag("f")
    queries(name_query(ORDERS))
    out = io.StringIO()
    call_command(
        "assignments", query="it", environment="production", flag=["f"], stdout=out, stderr=io.StringIO()
    )
    assert len(out.getvalue().splitlines()) == 1_201
    with pytest.raises(CommandError, match="query: must be one of it"):
        call_command("assignments", query="other", environment="production", flag=["f"], stderr=io.StringIO())
