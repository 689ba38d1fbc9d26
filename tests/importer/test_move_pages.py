"""Moving from an Unleash server on the pages of the console."""

import json
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from importer.models import InstallationMove, SourceEvent
from importer.moving import run as background
from importer.moving.reading import source
from projects.flags.archive.actions import archive_flags
from projects.models import Flag, Project, Strategy
from tests.support.generated_unleash import make_recording
from tests.support.page_text import page_text
from tests.support.racing import together
from tests.support.receiver import LOOPBACK
from tests.support.recorded_unleash import ADMIN, replayed, send

pytestmark = pytest.mark.django_db
PAGE = "/move/"


@pytest.fixture
def unleash(settings, monkeypatch):
    settings.INTEGRATION_NETWORKS = LOOPBACK
    monkeypatch.setattr(source, "WAIT", 0)
    monkeypatch.setattr(background, "start", lambda run_id, source, do: do())
    with replayed(make_recording(12)) as replay:
        yield replay


@pytest.fixture
def begin(browse, unleash, django_capture_on_commit_callbacks):
    """Sends the form, and returns the page that it leads to."""

    def begin(step, who="admin", **values):
        browser = browse(who)
        form = {"address": unleash.address, "token": ADMIN, "users": 100, "step": step} | values
        with django_capture_on_commit_callbacks(execute=True):
            answer = browser.post(PAGE, form)
        return browser.get(answer["Location"]) if answer.status_code == 302 else answer

    return begin


def test_checks_then_moves_and_proves(begin, browse):
    before = AuditEvent.objects.count()
    checked = page_text(begin("plan"))
    assert "What would move" in checked
    assert "6 flags: p0.flag-00000" in checked
    assert "token admin : is of type admin" in checked.replace("admin:", "admin :")
    assert (Flag.objects.count(), AuditEvent.objects.count()) == (0, before)
    moved = begin("apply")
    text = page_text(moved)
    assert Flag.objects.count() == 12
    assert "all 10 tokens get the same here" in text
    assert "UNLEASH_URL=http://testserver/api" in text
    assert "Nothing to move" in page_text(begin("plan"))
    report = json.loads(browse("admin").get(f"{moved.request['PATH_INFO']}?format=json").content)
    assert (report["step"], len(report["tokens"]), report["moved"]["counts"]["create"]) == ("apply", 10, 36)
    assert AuditEvent.objects.filter(comment__endswith=f"by {report['by']}").exists()


def test_a_proof_names_flags_that_differ(begin):
    begin("apply")
    archive_flags("p0", ["p0.flag-00004"], caller=Caller.system())
    text = page_text(begin("prove"))
    assert "tokens get something else here" in text
    assert "p0.flag-00004" in text


def test_a_proof_takes_users_of_a_file(begin):
    begin("apply")
    Strategy.objects.filter(flag__name="p0.flag-00004", environment="production").update(
        constraints=[{"contextName": "country", "operator": "IN", "values": ["FI"]}]
    )
    users = SimpleUploadedFile("ours.csv", b"userId,country\n1,FI\n2,NO\n", content_type="text/csv")
    text = page_text(begin("prove", users=1, file=users))
    assert "those of ours.csv" in text
    assert "of 3 users" in text
    users = SimpleUploadedFile("ours.csv", b"userId\n1,FI\n")
    refused = begin("prove", file=users)
    assert "row 2" in page_text(refused)
    assert InstallationMove.objects.count() == 2


def test_the_command_for_the_database_is_complete(begin, unleash):
    text = page_text(begin("plan", projects="p0, p1"))
    assert f"manage.py move apply --from {unleash.address} --project p0 --project p1" in text


def test_what_is_refused_can_be_left_out(begin, browse):
    Project.objects.create(id="mine", name="mine")
    Flag.objects.create(name="p0.flag-00004", project_id="mine", created_at=timezone.now())
    refused = begin("plan", projects="p0")
    run = InstallationMove.objects.get()
    assert "p0.flag-00004 already exists in project mine" in page_text(refused)
    link = f"{PAGE}?run={run.pk}&amp;without=1"
    assert link in refused.content.decode()
    form = browse("admin").get(link.replace("&amp;", "&")).context["form"]
    assert form.initial["left_out"] == "p0.flag-00004"
    assert form.initial["projects"] == "p0"
    moved = page_text(begin("apply", projects="p0", left_out=" p0.flag-00004 \n\n"))
    assert "left out flag p0.flag-00004" in moved
    assert "Left out of the move, and not compared: p0.flag-00004." in moved
    assert "--project p0 --leave-out p0.flag-00004" in moved
    assert Flag.objects.filter(project="p0").count() == 5
    wrong = begin("plan", left_out="flags:a")
    assert "flags:a must be a flag's name, or a kind and a name" in page_text(wrong)
    assert browse("admin").get(f"{PAGE}?run=nonsense").status_code == 200


def test_the_token_is_nowhere_stored(begin):
    users = SimpleUploadedFile("ours.csv", b"userId\nann-who-is-secret\n")
    begin("apply", file=users)
    run = InstallationMove.objects.values().get()
    assert "unleash-admin-secret" not in json.dumps(run, default=str)
    assert "ann-who-is-secret" not in json.dumps(run, default=str)


def test_what_goes_wrong_is_said(begin, unleash, settings):
    unleash.lie = lambda handler: send(handler, 401, b"{}")
    assert "does not accept the token (status 401)." in page_text(begin("apply"))
    assert "Move now" not in page_text(begin("plan"))
    assert "is not an address like" in page_text(begin("plan", address="unleash"))
    settings.INTEGRATION_NETWORKS = []
    unleash.asked.clear()
    assert "Allow it with FLAGADMIN_INTEGRATION_NETWORKS." in page_text(begin("plan"))
    assert unleash.asked == []


def test_a_failure_of_our_own_is_no_page_of_secrets(begin, monkeypatch):
    monkeypatch.setattr(background, "move_from", lambda *_, **__: 1 / 0)
    assert "The move failed; this server's log says why" in page_text(begin("apply"))


def test_a_proof_that_fails_does_not_deny_the_move(begin, monkeypatch):
    monkeypatch.setattr(background, "prove", lambda *_, **__: 1 / 0)
    shown = page_text(begin("apply"))
    assert (
        shown.count("Nothing was written")
        == shown.count("Nothing was written, unless it is listed below.")
        == 1
    )
    assert Flag.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("earlier", [0, 1])
def test_of_several_that_begin_at_once_one_does(monkeypatch, earlier):
    monkeypatch.setattr(background, "start", lambda *_: None)
    for _ in range(earlier):
        InstallationMove.objects.create(
            step="plan", address="u", caller_name="ann", finished_at=timezone.now()
        )

    def work(name):
        run = InstallationMove(step="apply", address="https://u.example", caller_name=name)
        return lambda: background.begin(run, None)

    outcomes = together(work("ann"), work("ben"), work("cid"), work("dan"))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == [*["Conflict"] * 3, "NoneType"]
    assert InstallationMove.objects.filter(finished_at=None).count() == 1


def test_one_at_a_time(begin, browse):
    running = InstallationMove.objects.create(step="apply", address="https://u.example", caller_name="ann")
    assert "ann started a move" in page_text(begin("plan"))
    page = browse("admin").get(f"/move/{running.pk}/")
    assert (page["Refresh"], "Started." in page_text(page)) == ("2", True)
    InstallationMove.objects.update(beat_at=timezone.now() - timedelta(minutes=1))
    page = browse("admin").get(f"/move/{running.pk}/")
    assert ("Refresh" in page, "interrupted this" in page_text(page)) == (False, True)
    assert "What would move" in page_text(begin("plan"))


def test_only_admins_may_move(begin, browse):
    run = InstallationMove.objects.create(step="plan", address="https://u.example", caller_name="ann")
    for who in ("editor", "viewer"):
        assert begin("apply", who).status_code == 403
        for page in (PAGE, f"/move/{run.pk}/", f"/move/{run.pk}/?format=json", "/move/history/"):
            assert browse(who).get(page).status_code == 403
    assert Flag.objects.count() == 0


def test_the_history_of_the_source_is_searched(browse):
    for number, flag in enumerate(("cart", "search")):
        SourceEvent.objects.create(
            source="https://u.example",
            event_id=number,
            created_at=timezone.now(),
            type="feature-updated",
            feature=flag,
            created_by="ann",
        )
    text = page_text(browse("admin").get("/move/history/?flag=cart"))
    assert ("cart" in text, "search" in text.lower().replace("search ", "")) == (True, False)
