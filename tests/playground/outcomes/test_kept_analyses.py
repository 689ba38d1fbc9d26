"""Analyses are kept: who may read and delete them, what ends with them, and how they are made beside the requests."""

import csv
import gzip
from datetime import timedelta
from io import BytesIO, StringIO
from typing import Any

import pyarrow
import pytest
from django.utils import timezone
from pyarrow import parquet

from flagadmin.core.audit.models import AuditEvent
from playground.models import Analysis
from playground.outcomes.analyses import actions, evaluate
from playground.user_runs import worker
from playground.user_runs.evaluate import MAX_ATTEMPTS
from projects.environments.actions import delete_environment
from projects.flags.archive.actions import archive_flags, delete_flags
from projects.flags.copies.move import move_flag
from projects.models import Environment, Flag
from tests.playground.outcomes.analyses import START, URL, WHO, analyze, at, make, only, rollout, send
from tests.support.cast import make_project
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db
TABLE = "userId,time,=1+1\n" + "".join(f"{user},{at(60)},{user % 3}\n" for user in range(300))
FORMULA = {"proportion": "%3D1%2B1"}


@pytest.fixture(autouse=True)
def divided(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the users have had flag f for three weeks. Analyses wait for ``worker.work()``."""
    monkeypatch.setattr(worker, "start", lambda: None)
    with monkeypatch.context() as patch:
        make(
            lambda minutes: patch.setattr(timezone, "now", lambda: START + timedelta(minutes=minutes)),
            rollout(50),
        )


def test_whoever_may_read_the_flag_may_make_and_read_an_analysis(api: Any) -> None:
    made = send(api, TABLE, who="reader", **FORMULA).json()
    assert (made["state"], made["createdBy"], made["name"]) == ("waiting", "reader", "Does it sell?")
    worker.work()
    address = f"{URL}/{made['id']}"
    [listed] = api["viewer"].get(URL).json()["analyses"]
    assert (listed["id"], listed["state"], bool(listed["sentence"])) == (made["id"], "done", True)
    assert api["admin"].get(address).json()["result"]["counts"]["units"] == 300
    for path in (URL, address, f"{address}/result"):
        assert api["outsider"].get(path).status_code == 404
    assert api["outsider"].delete(address).status_code == 404
    assert send(api, TABLE, who="outsider", **FORMULA).status_code == 404
    [event] = AuditEvent.objects.filter(type="analysis-created")
    assert (event.project, event.feature, event.subject) == ("shop", "f", "Does it sell?")
    assert event.after["method"] == "sequential"
    assert "rows" not in event.after


def test_an_analysis_is_not_found_elsewhere(api: Any) -> None:
    """A reader of one project learns nothing of another's flags, not even with an id from there."""
    make_project("docs")
    live_flag("hidden", "docs")
    made = analyze(api, TABLE, **FORMULA)["id"]
    Analysis.objects.update(flag=Flag.objects.get(name="hidden"))
    hidden = "/api/admin/projects/docs/features/hidden/analyses"
    for address in (f"{URL}/{made}", f"{hidden}/{made}", f"{URL}/nosuch", hidden):
        assert api["reader"].get(address).status_code == 404
    assert api["reader"].delete(f"{URL}/{made}").status_code == 404
    assert api["viewer"].get(f"{hidden}/{made}").status_code == 200


def test_its_maker_deletes_it_and_whoever_may_update_the_flag(api: Any) -> None:
    for who, status in (("viewer", 403), ("reader", 204), ("member", 204)):
        made = send(api, TABLE, who="reader", **FORMULA).json()["id"]
        assert api[who].delete(f"{URL}/{made}").status_code == status, who
    [left] = Analysis.objects.all()
    assert left.caller_name == "reader"
    deleted = AuditEvent.objects.filter(type="analysis-deleted").order_by("pk")
    assert list(deleted.values_list("actor_name", flat=True)) == ["reader", "member"]


def test_a_formula_stays_text_in_spreadsheets(api: Any) -> None:
    made = send(api, TABLE, **FORMULA).json()["id"]
    assert api["viewer"].get(f"{URL}/{made}/result").status_code == 409
    worker.work()
    for query, measure in (("", "=1+1"), ("?spreadsheet=true", "'=1+1")):
        response = api["viewer"].get(f"{URL}/{made}/result{query}")
        [row] = csv.DictReader(StringIO(b"".join(response.streaming_content).decode()))
        assert row["measure"] == measure
        assert (row["side"], row["control"], int(row["units"]) + int(row["control units"])) == (
            "on",
            "off",
            300,
        )


def test_an_interrupted_analysis_starts_again(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = send(api, TABLE, **FORMULA).json()["id"]
    Analysis.objects.update(state="running", rows=300, rows_done=200, attempts=1)
    started: list[Any] = []
    monkeypatch.setattr(worker, "start", lambda: started.append(only().state))
    worker.resume()
    assert started == ["running"]
    worker.work()
    assert (only().state, only().attempts, only().rows_done) == ("done", 2, 300)
    Analysis.objects.update(state="running", attempts=MAX_ATTEMPTS)
    worker.work()
    assert "ended early several times" in api["viewer"].get(f"{URL}/{made}").json()["problem"]


def test_a_deleted_analysis_stops(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = send(api, TABLE, **FORMULA).json()["id"]
    monkeypatch.setattr(evaluate, "CHUNK", 100)
    assign, seen = evaluate.Sides.assign, []

    def delete_first(*args: Any) -> Any:
        seen.append(api["viewer"].delete(f"{URL}/{made}").status_code)
        return assign(*args)

    monkeypatch.setattr(evaluate.Sides, "assign", delete_first)
    worker.work()
    assert seen == [204]
    assert not Analysis.objects.exists()


def test_there_are_only_so_many(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "MAX_UNFINISHED", 1)
    monkeypatch.setattr(actions, "MAX_OF_FLAG", 2)
    assert send(api, TABLE, **FORMULA).status_code == 202
    assert "have not ended" in send(api, TABLE, **FORMULA).json()["message"]
    assert send(api, TABLE, who="reader", **FORMULA).status_code == 202
    Analysis.objects.update(state="failed")
    assert "has 2 analyses" in send(api, TABLE, **FORMULA).json()["message"]


def test_a_bomb_costs_no_more_than_a_refusal(api: Any) -> None:
    for body, problem in (
        (b"," * 2_000_000, "must have at most 1,000 columns"),
        (b'{"time":' + b"[" * 2_000_000, "must have at most 1,000,000 characters"),
        (b"\x1f\x8bno gzip", "is not valid gzip data"),
    ):
        response = send(api, body if body[:1] == b"\x1f" else gzip.compress(body))
        assert response.status_code == 400
        assert problem in response.json()["details"][0]["message"]
    made = send(api, gzip.compress(b"userId,time,bought\n" + b"\n" * 3_000_000)).json()["id"]
    worker.work()
    assert "must have at most 2,000,100 lines" in api["viewer"].get(f"{URL}/{made}").json()["problem"]


def test_it_goes_with_its_flag(api: Any) -> None:
    make_project("docs")
    made = send(api, TABLE, **FORMULA).json()["id"]
    move_flag("shop", "f", "docs", caller=WHO)
    assert api["viewer"].get(f"{URL}/{made}").status_code == 404
    moved = api["viewer"].get(f"/api/admin/projects/docs/features/f/analyses/{made}")
    assert moved.json()["project"] == "docs"
    archive_flags("docs", ["f"], caller=WHO)
    assert api["viewer"].get(f"/api/admin/projects/docs/features/f/analyses/{made}").status_code == 200
    delete_flags("docs", ["f"], caller=WHO)
    assert not Analysis.objects.exists()


def test_it_ends_with_its_environment(api: Any) -> None:
    send(api, TABLE, **FORMULA)
    Analysis.objects.update(environment=Environment.objects.create(name="trial"))
    delete_environment("trial", caller=WHO)
    assert not Analysis.objects.exists()


def test_parquet(api: Any) -> None:
    values = {
        "userId": [str(n) for n in range(300)],
        "time": [at(60)] * 300,
        "bought": [n % 3 for n in range(300)],
    }
    with BytesIO() as file:
        parquet.write_table(pyarrow.table(values), file)
        body = file.getvalue()
    assert analyze(api, body)["result"]["counts"]["units"] == 300
    assert analyze(api, body, mean="profit")["problem"].startswith("file: has no column profit")
