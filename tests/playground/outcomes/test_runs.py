"""Large tables as runs, and the page: whose they are, what they refuse, and what they answer."""

import csv
import gzip
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from flagadmin.core.http.responses import iso
from playground.models import UserRun, UserRunPart
from playground.outcomes import answer, runs
from playground.user_runs import worker
from projects.models import Project
from tests.support.cast import make_project
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db
URL = "/api/admin/playground/assignments"
RUNS = "/api/admin/playground/users"
PAGE = "/playground/assignments/"
BEFORE = "2020-01-01T00:00:00Z"


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs wait for ``worker.work()``; what a process of its own would do is done here."""
    monkeypatch.setattr(worker, "start", lambda: None)
    monkeypatch.setattr(answer, "run_in_process", lambda work, *args: work(*args))


@pytest.fixture
def lounge(shop: Any) -> str:
    """The present, a day after the flag was made."""
    live_flag("lounge")
    return iso(timezone.now() + timedelta(seconds=-1))


def post(api: Any, body: str | bytes, flags: str = "flag=lounge", who: str = "viewer") -> Any:
    return api[who].post(f"{URL}?environment=production&{flags}", data=body, content_type="text/csv")


def upload(browse: Any, text: str | bytes, flag: str = "lounge", who: str = "viewer", **more: Any) -> Any:
    body = text if isinstance(text, bytes) else text.encode()
    values = {"file": SimpleUploadedFile("orders.csv", body), "flag": flag, "environment": "production"}
    return browse(who).post(PAGE, values | {"lag": "0"} | more)


def read_rows(response: Any) -> list[dict[str, str]]:
    assert response.status_code == 200
    return list(csv.DictReader(StringIO(b"".join(response.streaming_content).decode(), newline="")))


def test_a_large_table_becomes_a_run(api: Any, lounge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    live_flag("other")
    monkeypatch.setattr(answer, "AT_ONCE", 4)
    monkeypatch.setattr(runs, "CHUNK", 2)
    body, both = f"userId,time\n1,{BEFORE}\n2,{BEFORE}\n", "flag=lounge&flag=other&lag=0"
    small = post(api, body, both)
    assert small["Content-Type"].startswith("text/csv")
    large = post(api, body + f"3,{BEFORE}\n", both)
    assert large.status_code == 202
    address = large["Location"].replace("users", RUNS)
    assert large.json() | {"state": "waiting", "kind": "assignments", "assigned": []} == large.json()
    worker.work()
    done = api["viewer"].get(address).json()
    assert (done["state"], done["users"], done["usersDone"]) == ("done", 3, 3)
    assert [(flag["name"], flag["results"]["off"]) for flag in done["assigned"]] == [
        ("lounge", 3),
        ("other", 3),
    ]
    found = read_rows(api["viewer"].get(f"{address}/result"))
    assert found[:2] == list(csv.DictReader(StringIO(small.content.decode())))
    assert [row["lounge.result"] for row in found] == ["off"] * 3


def test_a_run_names_the_rows_that_it_refuses(api: Any, browse: Any, lounge: str) -> None:
    body = gzip.compress(b"userId,time\n1,soon\n2,later\n")
    assert upload(browse, body).status_code == 302
    worker.work()
    run = UserRun.objects.get()
    assert (run.state, bytes(run.body)) == ("failed", b"")
    text = page_text(browse("viewer").get(f"/playground/users/{run.pk}/"))
    assert "row 2, column time: must be a time" in text
    assert "row 3, column time" in text


def test_a_bomb_costs_a_run_no_more_than_a_refusal(browse: Any, lounge: str) -> None:
    for body, problem in (
        (b"," * 2_000_000, "row 1: must have at most 1,000 columns"),
        (b'{"time":' + b"[" * 2_000_000, "must have at most 1,000,000 characters"),
        (b"time\n" + b'"' + b"x" * 2_000_000, "must have at most 1,000,000 characters"),
        (b'{"time":1}\n' + b"\n" * 3_000_000, "must have at most 2,000,100 lines"),
        (b"time\n1\n" + b"\n" * 3_000_000, "must have at most 2,000,100 lines"),
    ):
        upload(browse, gzip.compress(body))
        worker.work()
        assert problem in UserRun.objects.latest("created_at").problem
    assert not UserRunPart.objects.exists()


def test_only_its_maker_sees_a_run_and_only_with_access(api: Any, browse: Any, lounge: str) -> None:
    make_project("docs")
    live_flag("hidden", project="docs")
    assert upload(browse, f"time\n{BEFORE}\n", who="reader").status_code == 302
    run = UserRun.objects.get()
    for method in ("get", "delete"):
        assert getattr(api["admin"], method)(f"{RUNS}/{run.pk}").status_code == 404
    assert browse("admin").get(f"/playground/users/{run.pk}/").status_code == 404
    unknown, unreadable = (upload(browse, "time\n5\n", flag, who="reader") for flag in ("nosuch", "hidden"))
    assert unknown.status_code == unreadable.status_code == 404
    # A large table is not read before its run, which knows no more of the flag.
    for flag in ("nosuch", "hidden"):
        upload(browse, gzip.compress(b"time\n5\n"), flag, who="reader")
        worker.work()
        latest = UserRun.objects.latest("created_at")
        assert latest.problem == f"flag[0]: flag {flag} not found in environment production."
    UserRun.objects.update(projects=[*Project.objects.values_list("pk", flat=True)])
    assert browse("reader").get(f"/playground/users/{run.pk}/result").status_code == 404


def test_the_page(browse: Any, lounge: str) -> None:
    live_flag("other", strategies=[{"name": "userWithId", "parameters": {"userIds": "42"}}])
    now = iso(timezone.now())
    response = upload(browse, f"userId,time,note\n42,{now},=1\n7,{BEFORE},+2\n", "lounge, other")
    run = UserRun.objects.get()
    assert response["Location"] == f"/playground/users/{run.pk}/"
    page = browse("viewer").get(response["Location"])
    text = " ".join(page_text(page).split())
    assert "Who had lounge, other in production" in text
    assert "2 rows of orders.csv" in text
    assert "other 11000" in text
    rows = read_rows(browse("viewer").get(f"{response['Location']}result"))
    assert [(row["note"], row["other.result"]) for row in rows] == [("=1", "on"), ("+2", "off")]
    quoted = read_rows(browse("viewer").get(f"{response['Location']}result?spreadsheet=true"))
    assert [row["note"] for row in quoted] == ["'=1", "'+2"]
    listed = page_text(browse("viewer").get(f"{PAGE}?flag=lounge"))
    assert "orders.csv" in listed
    assert 'value="lounge"' in browse("viewer").get(f"{PAGE}?flag=lounge").text
    gone = browse("viewer").post(f"/playground/users/{run.pk}/delete", follow=True)
    assert "Deleted the result for 2 rows." in page_text(gone)


def test_the_page_names_rows(browse: Any, lounge: str) -> None:
    response = upload(browse, "userId,time\n1,soon\n")
    assert response.status_code == 400
    assert "row 2, column time: must be a time" in page_text(response)
    assert not UserRun.objects.exists()
    assert "Name a flag." in page_text(upload(browse, f"time\n{BEFORE}\n", " , "))
