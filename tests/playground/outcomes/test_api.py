"""/api/admin/playground/assignments: tables, their limits, what is not known, and who may ask."""

import csv
import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import orjson
import pytest
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.http.responses import iso
from groups.access import Caller
from playground.models import UserRun
from playground.outcomes import answer, runs, table
from playground.user_runs import worker
from projects.flags.actions import NewFlag, create_flag
from projects.flags.archive import actions as archive
from projects.flags.copies.move import move_flag
from projects.flags.environments import actions as environments
from projects.models import Strategy
from projects.strategies import actions as strategies
from tests.support.cast import make_project
from tests.support.for_each import for_each

pytestmark = pytest.mark.django_db
URL = "/api/admin/playground/assignments"
WHO = Caller.system()
START = timezone.now().replace(microsecond=0) - timedelta(days=1)
Clock = Callable[[int], None]


@pytest.fixture
def clock(shop: Any, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets the time of the next changes to so many minutes after START."""
    return lambda minutes: monkeypatch.setattr(timezone, "now", lambda: START + timedelta(minutes=minutes))


def at(minutes: float) -> str:
    return iso(START + timedelta(minutes=minutes))


def rollout(percent: int, **others: Any) -> dict[str, Any]:
    parameters = {"rollout": str(percent), "stickiness": others.pop("stickiness", "default"), "groupId": "f"}
    return {"name": "flexibleRollout", "parameters": parameters} | others


def make(
    clock: Clock, *each: dict[str, Any], name: str = "f", project: str = "shop", minute: int = 0
) -> None:
    """A flag that is created and enabled with these strategies, at minute 0."""
    clock(minute)
    create_flag(project, NewFlag(name=name), caller=WHO)
    for strategy in each:
        strategies.add_strategy(project, name, "production", strategy, caller=WHO)
    environments.enable_flag(project, name, "production", caller=WHO)


def is_user(user: str) -> dict[str, Any]:
    return {"contextName": "userId", "operator": "IN", "values": [user]}


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The work that a process of its own would do; its fork server takes seconds to start."""
    names: list[str] = []

    def run(work: Any, *args: Any) -> Any:
        names.append(work.__name__)
        return work(*args)

    monkeypatch.setattr(answer, "run_in_process", run)
    return names


@pytest.fixture
def lounge(clock: Clock) -> None:
    """On for everyone from minute 0, off from minute 10, on from minute 20; archived at minute 30."""
    make(clock, rollout(100))
    clock(10)
    environments.disable_flag("shop", "f", "production", caller=WHO)
    clock(20)
    environments.enable_flag("shop", "f", "production", caller=WHO)
    clock(30)
    archive.archive_flags("shop", ["f"], caller=WHO)
    clock(60)


def send(
    api: Any, body: str | bytes, who: str = "viewer", query: str = "flag=f", kind: str = "text/csv"
) -> Any:
    return api[who].post(f"{URL}?environment=production&{query}", data=body, content_type=kind)


def rows(response: Any) -> list[dict[str, str]]:
    assert response.status_code == 200, response.content
    assert response["Content-Type"].startswith("text/csv")
    return list(csv.DictReader(StringIO(response.content.decode(), newline="")))


def results(response: Any) -> list[str]:
    return [row["result"] for row in rows(response)]


def refused(response: Any, status: int) -> Any:
    assert response.status_code == status, response.content
    return response.json()


# The answer -----------------------------------------------------------------------------------------------


def test_rows_keep_their_order_and_columns(api: Any, lounge: None) -> None:
    times = [at(25), at(-5), at(5), at(15), at(25), at(35)]
    body = "order,userId,time\n" + "".join(f"{n},42,{time}\n" for n, time in enumerate(times))
    found = rows(send(api, body))
    assert list(found[0]) == ["order", "userId", "time", "result", "variant", "since", "change", "lacks"]
    assert [(row["order"], row["time"]) for row in found] == [(str(n), time) for n, time in enumerate(times)]
    assert [row["result"] for row in found] == ["on", "off", "on", "off", "on", "off"]
    assert [row["since"] for row in found] == [at(20), "", at(0), at(10), at(20), at(30)]
    changes = [row["change"] for row in found]
    kinds = dict(AuditEvent.objects.values_list("id", "type"))
    assert [kinds[int(change)] for change in changes if change] == [
        "feature-environment-enabled",
        "feature-environment-enabled",
        "feature-environment-disabled",
        "feature-environment-enabled",
        "feature-archived",
    ]


def test_since_is_the_last_change_that_altered_the_row(api: Any, clock: Clock) -> None:
    """A rollout that grows changes only the users who are new in it."""
    make(clock, rollout(50))
    clock(10)
    [strategy] = Strategy.objects.all()
    strategies.update_strategy("shop", "f", "production", str(strategy.pk), rollout(100), caller=WHO)
    clock(60)
    users = "".join(f"{user},{at(20)}\n" for user in range(20))
    found = rows(send(api, "userId,time\n" + users))
    assert {row["result"] for row in found} == {"on"}
    assert {row["since"] for row in found} == {at(0), at(10)}


@for_each("written", ["iso", "offset", "naive", "seconds", "milliseconds", "fraction"])
def test_times(api: Any, lounge: None, written: str) -> None:
    time = START + timedelta(minutes=15)
    text = {
        "iso": at(15),
        "offset": f"{time + timedelta(hours=2):%Y-%m-%dT%H:%M:%S}+02:00",
        "naive": f"{time:%Y-%m-%d %H:%M:%S}",
        "seconds": f"{time.timestamp():.0f}",
        "milliseconds": f"{time.timestamp() * 1000:.0f}",
        "fraction": f"{time.timestamp():.1f}",
    }[written]
    assert [row["since"] for row in rows(send(api, f"userId,time\n42,{text}\n"))] == [at(10)]


def test_a_row_sees_its_own_time(api: Any, clock: Clock) -> None:
    before = {"contextName": "currentTime", "operator": "DATE_BEFORE", "value": at(30)}
    make(clock, rollout(100, constraints=[before]))
    clock(60)
    body = f"userId,time,currentTime\n42,{at(20)},\n42,{at(40)},\n42,{at(40)},{at(20)}\n"
    assert results(send(api, body)) == ["on", "off", "on"]


def test_lag(api: Any, lounge: None) -> None:
    times = "".join(f"42,{at(10 + seconds / 60)}\n" for seconds in (-1, 0, 14, 15, 59, 60))
    body = "userId,time\n" + times
    assert results(send(api, body)) == ["on", "in between", "in between", "off", "off", "off"]
    assert results(send(api, body, query="flag=f&lag=60"))[1:] == ["in between"] * 4 + ["off"]
    assert results(send(api, body, query="flag=f&lag=0")) == ["on"] + ["off"] * 5


def test_lag_marks_only_rows_that_change(api: Any, clock: Clock) -> None:
    make(clock, rollout(100, constraints=[is_user("1")]))
    clock(10)
    strategies.add_strategy("shop", "f", "production", rollout(100, constraints=[is_user("2")]), caller=WHO)
    clock(60)
    body = "userId,time\n" + "".join(f"{user},{at(10)}\n" for user in (1, 2, 3))
    assert results(send(api, body)) == ["on", "in between", "off"]


def test_several_flags(api: Any, lounge: None, clock: Clock) -> None:
    make(clock, name="g", minute=40)
    clock(60)
    [row] = rows(send(api, f"userId,time\n42,{at(50)}\n", query="flag=f&flag=g&flag=f"))
    assert (row["f.result"], row["g.result"], row["g.since"]) == ("off", "on", at(40))


# What is not known ----------------------------------------------------------------------------------------

NORWAY = {"contextName": "country", "operator": "IN", "values": ["NO"]}
BLUE = [{"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default"}]


@pytest.mark.parametrize(
    ("each", "head", "cells", "expected"),
    [
        ([rollout(100, constraints=[NORWAY])], "userId", "42", "unknown"),
        ([rollout(100, constraints=[NORWAY])], "userId,country", "42,NO", "on"),
        ([rollout(100, constraints=[NORWAY])], "userId,country", "42,", "off"),
        ([rollout(0, constraints=[NORWAY])], "userId", "42", "off"),
        ([rollout(100, constraints=[NORWAY]), rollout(100)], "userId", "42", "on"),
        # In Norway, the variant would be blue.
        ([rollout(100, constraints=[NORWAY], variants=BLUE), rollout(100)], "userId", "42", "unknown"),
        ([rollout(100), rollout(100, constraints=[NORWAY], variants=BLUE)], "userId", "42", "on"),
        ([rollout(50)], "country", "NO", "unknown"),
        ([rollout(50)], "sessionId", "7", "unknown"),
        ([rollout(100)], "country", "NO", "on"),
        ([rollout(50)], "userId", '""', "unknown"),
        ([rollout(50)], "userId,sessionId", ",", "random"),
        ([rollout(50, stickiness="random")], "country", "NO", "random"),
        ([rollout(50, stickiness="companyId")], "userId", "42", "unknown"),
        ([rollout(50, stickiness="companyId")], "userId,companyId", "42,", "off"),
        ([rollout(100, variants=BLUE)], "country", "NO", "on"),
    ],
)
def test_only_what_the_table_tells(
    api: Any, clock: Clock, each: list[dict[str, Any]], head: str, cells: str, expected: str
) -> None:
    make(clock, *each)
    clock(60)
    [row] = rows(send(api, f"{head},time\n{cells},{at(20)}\n"))
    assert row["result"] == expected, row
    assert bool(row["lacks"]) is (expected == "unknown")
    if expected == "unknown":
        assert (row["variant"], row["since"], row["change"]) == ("", "", "")


def test_what_lacks_is_counted(api: Any, clock: Clock) -> None:
    make(clock, rollout(100, constraints=[NORWAY]))
    clock(60)
    body = f"userId,time\n1,{at(-1)}\n2,{at(20)}\n3,{at(20)}\n"
    response = send(api, body, query="flag=f&summary=true")
    assert response.json() == {
        "rows": 3,
        "flags": [
            {
                "name": "f",
                "results": {"on": 0, "off": 1, "unknown": 2, "random": 0, "in between": 0},
                "lacks": {"country": 2},
            }
        ],
    }


def test_an_answer_after_an_unknown_one_has_no_beginning(api: Any, clock: Clock) -> None:
    """It may have been the same before."""
    make(clock, rollout(100, constraints=[NORWAY]))
    clock(10)
    strategies.add_strategy("shop", "f", "production", rollout(100), caller=WHO)
    clock(60)
    [row] = rows(send(api, f"userId,time\n1,{at(20)}\n"))
    assert (row["result"], row["since"], row["change"]) == ("on", "", "")


# Forms of tables ------------------------------------------------------------------------------------------


def test_json_lines(api: Any, lounge: None) -> None:
    lines = [
        {"userId": 42, "time": at(5), "properties": {"plan": None}, "ok": True},
        {"time": int(START.timestamp()) + 900},
    ]
    body = b"\n".join(map(orjson.dumps, lines)) + b"\n\n"
    found = rows(send(api, body, kind="application/x-ndjson"))
    assert [(row["userId"], row["ok"], row["properties.plan"], row["result"]) for row in found] == [
        ("42", "true", "", "on"),
        ("", "", "", "off"),
    ]


@pytest.mark.parametrize("kind", ["application/gzip", "text/csv"])
def test_gzip(api: Any, lounge: None, kind: str, beside: list[str]) -> None:
    body = gzip.compress(f"userId;time\n42;{at(5)}\n".encode())
    assert results(send(api, body, kind=kind)) == ["on"]
    assert beside == ["read_small_table"]


def test_large_tables_are_read_beside(api: Any, lounge: None, beside: list[str], settings: Any) -> None:
    body = f"userId,time\n42,{at(5)}\n"
    assert results(send(api, body)) == ["on"]
    assert not beside
    settings.IMPORT_PROCESS_BYTES = 10
    assert results(send(api, body)) == ["on"]
    assert beside == ["read_small_table"]


@for_each(
    ("body", "path", "message"),
    [
        ("userId\n42\n", "row 1", "must have a column time"),
        ("userId,time\n", "file", "must have rows"),
        ("userId,time,userId\n", "row 1, column 3", "is there twice"),
        ("userId,time,since\n1,2,3\n", "row 1", "since, which the answer adds"),
        ("userId,time\n42,AT\n42,yesterday\n", "row 3, column time", 'not "yesterday"'),
        ("userId,time\n42,\n", "row 2, column time", "must be a time"),
        ("userId,time\n42,9999-12-31T23:59:59-23:00\n", "row 2, column time", "must be a time"),
        ("userId,time\n42,99999999999999999999\n", "row 2, column time", "must be a time"),
        ("userId,time\n42,FUTURE\n", "row 2, column time", "must not be in the future"),
        ("userId,time\n42,AT,7\n", "row 2", "must have 2 cells, not 3"),
        ("userId,time\n" + "x" * 1_001 + ",AT\n", "row 2", "1,000 characters"),
        ("time,currentTime\nAT,soon\n", "row 2, column currentTime", 'not "soon"'),
        ('{"time": "AT"}\n{"time": 5, "x": 1}\n', "line 2", "x is not in the first line"),
        ('{"time": "AT"}\n{"time": \n', "line 2", "must be a JSON object"),
        ('{"time": "AT"}\n{"time": [5]}\n', "line 2", "time must be a string or number"),
        (b"\x1f\x8bnonsense", "file", "is not valid gzip data"),
        (gzip.compress(b"userId,time\n" * 99, mtime=0)[:-9], "file", "is not valid gzip data"),
        (b"\xff\xfe", "file", "must be UTF-8"),
        (b"", "row 1", "must name"),
    ],
)
def test_tables_that_cannot_be_read(
    api: Any, lounge: None, body: str | bytes, path: str, message: str
) -> None:
    if isinstance(body, str):
        body = body.replace("AT", at(1)).replace("FUTURE", at(9_999))
    record = refused(send(api, body), 400)
    assert record["details"][0]["path"] == path
    assert message in record["details"][0]["message"]


def test_every_bad_row_is_named(api: Any, lounge: None) -> None:
    body = f"userId,time\n1,x\n2,{at(1)}\n3,y\n"
    paths = [each["path"] for each in refused(send(api, body), 400)["details"]]
    assert paths == ["row 2, column time", "row 4, column time"]


def test_formulas(api: Any, lounge: None) -> None:
    body = f"userId,time\n=1+1,{at(5)}\n"
    assert rows(send(api, body))[0]["userId"] == "=1+1"
    assert rows(send(api, body, query="flag=f&spreadsheet=true"))[0]["userId"] == "'=1+1"


# Limits and rights ----------------------------------------------------------------------------------------


def test_bombs_cost_no_more_than_a_refusal(api: Any, lounge: None, settings: Any) -> None:
    assert "1,000 columns" in refused(send(api, b"," * 2_000_000), 400)["message"]
    assert "1,000 columns" in refused(send(api, b"time\n" + b"," * 2_000_000), 400)["message"]
    deep = b'{"time":' + b"[" * 2_000_000
    assert "1,000,000 characters" in refused(send(api, deep), 400)["message"]
    settings.IMPORT_BODY_LIMIT = 1_000_000
    packed = gzip.compress(b"time,x\n" + (b"5," + b"x" * 990 + b"\n") * 1_100)
    assert send(api, packed).json()["state"] == "waiting"


def test_too_many_changes_of_several_flags(api: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    make(clock, name="first")
    make(clock, name="second")
    make_project("docs")
    make(clock, name="secret", project="docs")
    body, query = f"time\n{at(5)}\n", "flag=first&flag=second"
    monkeypatch.setattr(answer, "MAX_CHANGES", 2)  # each flag has one, since the clock stands still
    assert results(send(api, body, query="flag=first")) == ["on"]
    assert send(api, body, query=query).status_code == 200
    monkeypatch.setattr(answer, "MAX_CHANGES", 1)
    monkeypatch.setattr(runs, "MAX_CHANGES_OF_RUN", 1)
    assert send(api, body, query=query).status_code == 202
    worker.work()
    run = UserRun.objects.get()
    assert run.problem.startswith(
        "flag[1]: second has changed 1 times, and the flags before it 1 times; at most 1."
    )
    monkeypatch.setattr(answer, "MAX_CHANGES", 0)
    unreadable = refused(send(api, body, who="reader", query="flag=secret"), 404)
    assert unreadable["message"] == "flag[0]: flag secret not found in environment production."


def test_unknown_and_unreadable_flags_are_alike(api: Any, clock: Clock) -> None:
    make_project("docs")
    make(clock, name="secret", project="docs")
    clock(60)
    body = f"userId,time\n42,{at(5)}\n"
    messages = [
        refused(send(api, body, who="reader", query=f"flag={name}"), 404)["message"].replace(name, "F")
        for name in ("secret", "nosuch")
    ]
    assert messages[0] == messages[1] == "flag[0]: flag F not found in environment production."
    assert refused(send(api, body, who="reader", query="flag=secret&flag=x"), 404)["message"].startswith(
        "flag[0]"
    )
    assert results(send(api, body, who="admin", query="flag=secret")) == ["on"]


def test_the_time_in_another_project_stays_hidden(api: Any, clock: Clock) -> None:
    make_project("docs")
    make(clock, project="docs")
    clock(10)
    move_flag("docs", "f", "shop", caller=WHO)
    clock(60)
    body = f"userId,time\n42,{at(5)}\n42,{at(20)}\n"
    found = rows(send(api, body, who="reader"))
    assert [(row["result"], row["since"]) for row in found] == [("unknown", ""), ("on", "")]
    assert results(send(api, body, who="admin")) == ["on", "on"]


@for_each(
    ("query", "status", "path"),
    [
        ("environment=nosuch&flag=f", 400, "environment"),
        ("environment=production", 400, "flag"),
        ("environment=production&flag=f&lag=-1", 400, "lag"),
        ("environment=production&" + "&".join(f"flag=f{n}" for n in range(21)), 400, "flag"),
    ],
)
def test_parameters(api: Any, lounge: None, query: str, status: int, path: str) -> None:
    response = api["viewer"].post(f"{URL}?{query}", data="time\n5\n", content_type="text/csv")
    assert [each["path"] for each in refused(response, status)["details"]] == [path]


def test_other_content(api: Any, lounge: None) -> None:
    refused(send(api, json.dumps({"time": 5}), kind="application/json"), 415)


def test_epochs_and_years_are_told_apart() -> None:
    assert table.read_time("0") == datetime(1970, 1, 1, tzinfo=UTC)
    assert table.read_time(" 1795615200000 ") == datetime.fromtimestamp(1_795_615_200, UTC)
    assert table.read_time("2026-11-25") == datetime(2026, 11, 25, tzinfo=UTC)
    assert table.read_time("12:30") is None
