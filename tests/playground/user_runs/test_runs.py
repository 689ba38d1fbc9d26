"""/api/admin/playground/users and /playground/users/: runs of users, whose they are, and how they end."""

import csv
import gzip
from datetime import timedelta
from io import BytesIO, StringIO
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from playground.models import UserRun, UserRunPart
from playground.snapshot_cache import load_snapshot
from playground.user_runs import evaluate, runs, worker
from playground.user_runs.evaluate import UserEvaluation
from playground.user_runs.file import UserFile
from projects.models import ContextField
from tests.support.cast import make_project
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.playground import live_flag
from tests.support.records import refused

URL = "/api/admin/playground/users"
USERS = "userId,country\n42,NO\n7,DE\n"


@pytest.fixture
def lounge(shop):
    ContextField.objects.create(name="country")
    return live_flag("lounge", strategies=[{"name": "userWithId", "parameters": {"userIds": "42"}}])


def send(api: Any, body: str = USERS, who: str = "viewer", query: str = "environment=production") -> Any:
    return api[who].post(f"{URL}?{query}", data=body, content_type="text/csv")


def created(response: Any) -> Any:
    assert response.status_code == 202, response.content
    return response.json()


def told(response: Any, status: int) -> Any:
    assert response.status_code == status, response
    return response.json()


def content(response: Any) -> bytes:
    assert response.status_code == 200, response
    return b"".join(response.streaming_content)


def lines(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text.decode(), newline="")))


def page_of(browse: Any, run: UserRun) -> str:
    return " ".join(page_text(browse("viewer").get(f"/playground/users/{run.pk}/")).split())


@pytest.fixture
def waiting(api, lounge, monkeypatch):
    """A run that waits for the process beside the workers."""
    monkeypatch.setattr(runs, "AT_ONCE", 0)
    return UserRun.objects.get(pk=created(send(api))["id"])


def test_a_short_file_is_evaluated_at_once(api, lounge):
    answer = created(send(api))
    assert (answer["state"], answer["users"], answer["usersDone"]) == ("done", 2, 2)
    assert answer["flags"] == [
        {
            "name": "lounge",
            "results": [
                {"isEnabled": False, "variant": None, "contexts": 1.0},
                {"isEnabled": True, "variant": None, "contexts": 1.0},
            ],
        }
    ]
    address = f"{URL}/{answer['id']}"
    assert api["viewer"].get(address).json() == answer
    [listed] = api["viewer"].get(URL).json()["runs"]
    assert listed == {key: value for key, value in answer.items() if key != "flags"}
    plain = content(api["viewer"].get(f"{address}/result"))
    assert [(line["userId"], line["flag"], line["result"]) for line in lines(plain)] == [
        ("42", "lounge", "On"),
        ("7", "lounge", "Off"),
    ]
    packed = api["viewer"].get(f"{address}/result", headers={"Accept-Encoding": "gzip"})
    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(content(packed)) == plain


def test_a_large_result_is_only_sent_compressed(api, lounge, monkeypatch):
    monkeypatch.setattr(runs, "MAX_PLAIN", 10)
    address = f"{URL}/{created(send(api))['id']}/result"
    assert "curl --compressed" in told(api["viewer"].get(address), 400)["message"]
    assert content(api["viewer"].get(address, headers={"Accept-Encoding": "gzip"}))


@for_each(
    ("query", "message"),
    [
        ("environment=nosuch", "Available: development, production"),
        ("environment=production&project=nosuch", "nosuch"),
        ("environment=production&flag=nosuch", "flag nosuch not found"),
        ("flag=lounge", "environment"),
    ],
)
def test_what_is_not_there_is_named(api, lounge, query, message):
    assert message in told(send(api, query=query), 400)["message"]


def test_problems_of_the_file_are_listed(api, lounge):
    record = told(send(api, "userId,contry\n1,NO\n"), 400)
    assert record["details"][0]["path"] == "row 1, column 2"
    assert not UserRun.objects.exists()


def test_too_many_results(api, lounge, monkeypatch):
    monkeypatch.setattr(runs, "MAX_RESULTS", 1)
    assert "2 users and 1 flags would give 2 results" in told(send(api), 400)["message"]


def test_only_projects_that_one_may_read(api, browse, lounge):
    make_project("docs")
    live_flag("hidden", project="docs")
    run = UserRun.objects.get(pk=created(send(api, who="reader"))["id"])
    assert [each["name"] for each in run.counts] == ["lounge"]
    assert (
        "docs" in told(send(api, who="reader", query="environment=production&project=docs"), 400)["message"]
    )
    # Somebody else, even an administrator, does not see it; nor does its owner without access to its projects.
    for method in ("get", "delete"):
        told(getattr(api["admin"], method)(f"{URL}/{run.pk}"), 404)
    assert browse("admin").get(f"/playground/users/{run.pk}/result").status_code == 404
    UserRun.objects.update(projects=["shop", "docs"])
    told(api["reader"].get(f"{URL}/{run.pk}/result"), 404)
    assert api["reader"].get(URL).json()["runs"] == []
    told(api["reader"].get(f"{URL}/nosuch"), 404)


def test_a_longer_file_waits_and_is_evaluated_beside(api, browse, waiting):
    assert waiting.state == "waiting"
    assert "Waiting to start" in page_of(browse, waiting)
    address = f"{URL}/{waiting.pk}"
    assert "waiting" in told(api["viewer"].get(f"{address}/result"), 409)["message"]
    worker.work()
    answer = api["viewer"].get(address).json()
    assert (answer["state"], answer["usersDone"], len(answer["flags"])) == ("done", 2, 1)
    assert len(lines(content(api["viewer"].get(f"{address}/result")))) == 2
    waiting.refresh_from_db()
    assert bytes(waiting.body) == b""


def test_an_interrupted_run_starts_again(api, waiting):
    UserRun.objects.update(state="running", rows_done=1, attempts=1, size=9)
    UserRunPart.objects.create(run=waiting, data=b"half")
    worker.work()
    waiting.refresh_from_db()
    assert (waiting.state, waiting.rows_done) == ("done", 2)
    assert len(lines(content(api["viewer"].get(f"{URL}/{waiting.pk}/result")))) == 2


def test_a_run_that_always_ends_early_fails(browse, waiting):
    UserRun.objects.update(attempts=evaluate.MAX_ATTEMPTS)
    worker.work()
    assert "This run failed. This run ended early several times" in page_of(browse, waiting)


def test_a_run_says_why_it_failed(api, waiting, settings):
    settings.USER_RESULTS_BYTES = 10
    worker.work()
    answer = api["viewer"].get(f"{URL}/{waiting.pk}").json()
    assert (answer["state"], answer["problem"][:20]) == ("failed", "The result is larger")
    assert not UserRunPart.objects.exists()


def test_a_run_that_uses_too_much_cpu_ends_and_others_follow(api, waiting, monkeypatch):
    def go_on(run):
        while True:
            pass

    with monkeypatch.context() as patch:
        patch.setattr(evaluate, "MAX_CPU_SECONDS", 0.05)
        patch.setattr(evaluate, "write_users", go_on)
        worker.work()
    answer = api["viewer"].get(f"{URL}/{waiting.pk}").json()
    assert (answer["state"], answer["problem"][:27]) == ("failed", "This run used more than 0.0")
    UserRun.objects.update(state="waiting", attempts=0, body=waiting.body)
    worker.work()
    assert api["viewer"].get(f"{URL}/{waiting.pk}").json()["state"] == "done"


def test_a_result_that_would_be_too_large_is_refused_at_once(api, lounge, settings, monkeypatch):
    monkeypatch.setattr(runs, "AT_ONCE", 0)
    settings.USER_RESULTS_BYTES = 4 * 500
    users = "userId,country\n" + "".join(f"{number},NO\n" for number in range(1_000))
    [problem] = refused(send(api, users), 400, "ValidationError")["details"]
    assert problem["path"] == "file"
    assert "1,000 users: their results for 1 flags would take about" in problem["message"]
    assert "users at once" in problem["message"]
    assert not UserRun.objects.exists()


def test_a_result_without_space_is_refused_at_once(api, waiting, settings):
    UserRunPart.objects.create(run=waiting, data=bytes(900))
    settings.USER_RESULTS_BYTES = 1_000
    assert "there is space for 0.0 MB" in told(send(api), 409)["message"]
    assert UserRun.objects.count() == 1


def test_a_run_that_waits_has_its_space_reserved(api, lounge, settings, monkeypatch):
    monkeypatch.setattr(runs, "AT_ONCE", 0)
    monkeypatch.setattr(worker, "start", lambda: None)
    users = "userId,country\n" + "".join(f"{number},NO\n" for number in range(1_000))
    created(send(api, users))
    estimate = 3_000
    settings.USER_RESULTS_BYTES = int(1.5 * estimate)
    monkeypatch.setattr(evaluate, "SHARE", 1)
    monkeypatch.setattr(evaluate, "estimate_bytes", lambda *args, **numbers: estimate)
    assert "there is space for 0.0 MB" in told(send(api, users), 409)["message"]
    settings.USER_RESULTS_BYTES = 2 * estimate
    created(send(api, users))


def test_the_estimate_is_close(lounge):
    compiled = load_snapshot(["shop"], "production").snapshot
    text = ("userId,country\n" + "".join(f"{number},NO\n" for number in range(20_000))).encode()

    def evaluation() -> UserEvaluation:
        return UserEvaluation(compiled, ["lounge"], now="2026-11-21T09:00:00.000Z")

    estimate = evaluate.estimate_bytes(evaluation(), UserFile(BytesIO(text)), users=20_000, flags=1)
    written = sum(len(chunk.data) for chunk in evaluation().chunks(UserFile(BytesIO(text))))
    assert written < estimate < 1.5 * written


def test_a_file_for_spreadsheets_runs_no_formula(api, browse, lounge):
    sent = 'userId,country\n+47,NO\n"=1,\n2",DE\n'
    run = UserRun.objects.get(pk=created(send(api, sent))["id"])
    address = f"{URL}/{run.pk}/result"
    as_sent, quoted = ["+47", "=1,\n2"], ["'+47", "'=1,\n2"]
    assert [line["userId"] for line in lines(content(api["viewer"].get(address)))] == as_sent
    answer = content(api["viewer"].get(address, {"spreadsheet": "true"}))
    assert [line["userId"] for line in lines(answer)] == quoted
    packed = api["viewer"].get(address, {"spreadsheet": "true"}, headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(content(packed)) == answer
    page = f"/playground/users/{run.pk}/result"
    assert f"{page}?spreadsheet=true" in browse("viewer").get(f"/playground/users/{run.pk}/").text
    assert b"'+47" in content(browse("viewer").get(f"{page}?spreadsheet=true"))


def test_a_deleted_run_stops(api, waiting, monkeypatch):
    seen = []

    def users(self: Any) -> Any:
        seen.append(api["viewer"].delete(f"{URL}/{waiting.pk}").status_code)
        yield 2, {"userId": "42"}

    monkeypatch.setattr(evaluate.UserFile, "users", users)
    worker.work()
    assert seen == [204]
    assert not UserRun.objects.exists()
    assert not UserRunPart.objects.exists()


def test_the_oldest_makes_room_unless_all_are_at_work(api, lounge):
    ids = [created(send(api))["id"] for _ in range(runs.MAX_RUNS + 1)]
    assert {each["id"] for each in api["viewer"].get(URL).json()["runs"]} == {*ids[1:]}
    UserRun.objects.update(state="running")
    assert "Cancel one" in told(send(api), 409)["message"]
    created(send(api, who="admin"))


def test_old_runs_are_deleted(api, lounge):
    for days in (6, 8):
        made = timezone.now() - timedelta(days=days)
        UserRun.objects.filter(pk=created(send(api))["id"]).update(created_at=made)
    worker.delete_old_runs()
    assert UserRun.objects.count() == 1


def test_only_an_interrupted_run_is_taken_up(waiting, monkeypatch):
    started = []
    monkeypatch.setattr(worker, "start_process", started.append)
    worker.resume()
    assert started == [worker.work]
    UserRun.objects.update(state="done")
    worker.resume()
    assert len(started) == 1


def upload(browse: Any, text: str, **more: Any) -> Any:
    file = SimpleUploadedFile("users.csv", text.encode(), "text/csv")
    return browse("viewer").post("/playground/users/", {"file": file, "environment": "production"} | more)


def test_the_page(browse, lounge):
    response = upload(browse, USERS, project="shop", flag="lounge")
    assert response.status_code == 302, page_text(response)
    run = UserRun.objects.get()
    text = page_of(browse, run)
    assert "lounge for 2 users in production" in text
    assert "50 %" in text
    assert "1 On" in text
    assert "users.csv" in page_text(browse("viewer").get("/playground/users/"))
    assert len(lines(content(browse("viewer").get(f"/playground/users/{run.pk}/result")))) == 2
    assert b"lounge" in content(browse("viewer").get(f"/playground/users/{run.pk}/?format=csv"))
    gone = browse("viewer").post(f"/playground/users/{run.pk}/delete", follow=True)
    assert "Deleted the result for 2 users." in page_text(gone)


def test_the_page_names_rows_and_columns(browse, lounge):
    response = upload(browse, "userId,contry,plan\n1,NO,pro\n")
    assert response.status_code == 400
    text = page_text(response)
    assert "row 1, column 2: contry is not a context field. Available: " in text
    assert "row 1, column 3: plan" in text


def test_many_variants_are_counted(browse, lounge):
    names = [f"v{number}" for number in range(12)]
    weights = [{"name": n, "weight": 100, "weightType": "variable", "stickiness": "default"} for n in names]
    live_flag("split", strategies=[{"name": "default", "variants": weights}])
    upload(browse, "country\nNO\n", flag="split")
    text = page_of(browse, UserRun.objects.get())
    assert "v0 < 1" in text
    assert "and 4 more" in text


def test_the_progress_part(browse, waiting):
    address = f"/playground/users/{waiting.pk}/progress"
    UserRun.objects.update(state="running", rows_done=1)
    assert "1 of 2 users evaluated" in page_text(browse("viewer").get(address))
    UserRun.objects.update(state="done")
    assert browse("viewer").get(address)["HX-Redirect"] == f"/playground/users/{waiting.pk}/"


def test_the_stored_file_is_what_was_sent(waiting):
    assert gzip.decompress(bytes(waiting.body)).decode() == USERS


def test_json_is_not_taken_for_csv(api, lounge):
    answer = api["viewer"].post(f"{URL}?environment=production", {"userId": "1"})
    assert refused(answer, 415, "ContentTypeError")["message"].startswith("Send text/csv.")
