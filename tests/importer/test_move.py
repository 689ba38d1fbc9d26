"""`manage.py move`: from a recorded Unleash, from a made-up one, and from servers that lie."""

import gzip
import json
import os
import signal
from copy import deepcopy

import pytest
from django.core.management import call_command
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.login.actions import record_refusal
from groups.models import ApiToken, User
from groups.permissions import BuiltIn
from importer.models import ImportRun
from importer.moving import run as follow
from importer.moving.reading import source
from importer.moving.reading.source import Source, SourceError
from importer.moving.writing import move
from projects.models import (
    Environment,
    Flag,
    Project,
    Segment,
    Strategy,
)
from tests.support.generated_unleash import make_recording
from tests.support.nginx import make_certificate
from tests.support.paths import ROOT
from tests.support.recorded_unleash import ADMIN, EXPORT, path_of, replayed, secured, send

pytestmark = pytest.mark.django_db
FILE = ROOT / "tests" / "vectors" / "moving.json.gz"


@pytest.fixture(scope="module")
def made_up():
    return make_recording(32)


@pytest.fixture
def unleash(made_up):
    with replayed(made_up) as replay:
        yield replay


def rows():
    """What a move may write."""
    tables = (Flag, Strategy, Project, Segment, Environment, ApiToken, ImportRun, User, AuditEvent)
    return [table.objects.count() for table in tables]


@pytest.mark.parametrize("which", ["recorded", "made up"])
def test_moves_everything_once_and_proves_it(which, run):
    if which == "recorded":
        recording = json.loads(gzip.decompress(FILE.read_bytes()))
    else:
        recording = make_recording(60, people=60)
    with replayed(recording) as replay:
        before = rows()
        status, text, _ = run("plan", replay)
        assert (status, rows()) == (2, before), text
        assert "Nothing was written." in text
        assert "segment big-carts: of project" in text
        planned = text.replace("Nothing was written.\n", "")

        status, text, _ = run("apply", replay)
        assert (status, text) == (0, planned)
        assert Flag.objects.count() == 60
        assert Flag.objects.exclude(archived_at=None).count() == (8 if which == "recorded" else 2)
        moved = rows()
        for step in ("plan", "apply"):
            status, text, report = run(step, replay)
            assert (status, report["counts"]["same"], rows()) == (0, 60, moved), text

        status, text, report = run("prove", replay, "--users", "300")
        assert status == 0, text
        assert len(report["tokens"]) == (8 if which == "recorded" else 10)
        assert not any(token["writtenOtherwise"] for token in report["tokens"])
        assert replay.asked.count(("GET", "/api/client/features")) == (7 if which == "recorded" else 8)


def test_what_is_refused_keeps_everything_from_being_written(unleash, run):
    Project.objects.create(id="mine", name="mine")
    Flag.objects.create(name="p1.flag-00003", project_id="mine", created_at=timezone.now())
    before = rows()
    for step in ("plan", "apply"):
        status, text, _ = run(step, unleash)
        assert (status, rows()) == (2, before)
        assert (
            "refuse   flag p1.flag-00003 in p1 / development: p1.flag-00003 already exists in project mine"
            in text
        )
    assert "Nothing was written." in text
    assert run("apply", unleash, "--project", "p0")[0] == 0
    assert Flag.objects.filter(project="p0").count() == 16
    status, text, _ = run("plan", unleash, "--project", "p0")
    assert (status, "0 of" in text) == (0, False), text


def cut(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"segments": [')


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"[" * 65_536)
    except OSError:
        return


LIES = {
    "500": (lambda h: send(h, 500, b"{}"), "segments: status 500, 5 times in a row"),
    "429": (lambda h: send(h, 429, b"{}", Retry_After="0"), "segments: status 429, 5 times in a row"),
    "wait": (lambda h: send(h, 429, b"{}", Retry_After="86400"), "asks to wait for 86400 seconds"),
    "redirect": (
        lambda h: send(h, 302, b"", Location="https://elsewhere.example/"),
        "redirect to https://elsewhere",
    ),
    "token": (lambda h: send(h, 401, b"{}"), "does not accept the token (status 401)"),
    "page": (lambda h: send(h, 200, b"<html>"), "is not JSON but an HTML page"),
    "shape": (
        lambda h: send(h, 200, b'{"segments": [{"id": 1, "name": 7}]}'),
        "0.name: Input should be a valid string",
    ),
    "nul": (
        lambda h: send(h, 200, b'{"segments": [{"id": 1, "name": "a\\u0000"}]}'),
        "segments[0].name: a NUL character",
    ),
    "cut": (cut, "cut off, 5 times in a row"),
    "endless": (endless, "has more than 1,000,000 bytes"),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_named_and_nothing_is_written(lie, unleash, run, monkeypatch):
    monkeypatch.setattr(source, "MAX_BYTES", 1_000_000)
    answer, message = LIES[lie]
    unleash.lie = lambda handler: path_of(handler) == "/api/admin/segments" and (answer(handler), True)[1]
    before = rows()
    status, text, _ = run("apply", unleash)
    assert (status, rows()) == (1, before)
    assert message in text
    assert f"{unleash.address}/api/admin/segments" in text
    assert ADMIN not in text


def cycle(export):
    first, second = (flag["name"] for flag in export["features"][:2])
    export["dependencies"] = [
        {"feature": child, "dependencies": [{"feature": parent, "enabled": True}]}
        for child, parent in ((first, second), (second, first))
    ]


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (cycle, 2, "flags cannot depend on each other"),
        (lambda e: e["features"][0].update(name="a name"), 2, "refuse   flag a name in p0 / development: "),
        (lambda e: e["featureStrategies"][0].update(id=["1"]), 1, "featureStrategies.0.id: Input should be"),
        (lambda e: e["features"][0].update(project="p1"), 1, "of another project than p0"),
        (lambda e: e.pop("features"), 1, "features: Field required. Unleash 8 answers otherwise."),
    ],
)
def test_exports_that_cannot_be_taken_leave_nothing_of_the_project(change, status, message, unleash, run):
    def lie(handler):
        if path_of(handler) != EXPORT:
            return False
        export = deepcopy(unleash.answer("POST", EXPORT, ADMIN, handler.body)[1])
        if export["features"][0]["project"] == "p0" and export["featureStrategies"]:
            change(export)
        return send(handler, 200, json.dumps(export).encode())

    unleash.lie = lie
    found, text, _ = run("apply", unleash)
    assert found == status, text
    assert message in text
    assert not Project.objects.filter(id="p0").exists()


def test_a_list_without_an_end_is_given_up(unleash, run, monkeypatch):
    monkeypatch.setattr("importer.moving.reading.installation.MAX_ARCHIVED", 5)
    page = b'{"features": [{"name": "a"}, {"name": "b"}], "total": 1000000000}'
    unleash.lie = lambda h: path_of(h) == "/api/admin/search/features" and send(h, 200, page)
    status, text, _ = run("plan", unleash)
    assert (status, "has more than 5 archived flags" in text) == (1, True)


def test_a_certificate_that_is_not_trusted_is_named(unleash, run, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make_certificate(key, certificate)
    unleash.server.socket = secured(unleash.server.socket, key, certificate)
    unleash.address = unleash.address.replace("http:", "https:")
    before = rows()
    status, text, _ = run("apply", unleash)
    assert (status, rows()) == (1, before)
    assert "its certificate is not accepted: " in text


def test_a_move_that_is_interrupted_leaves_nothing(unleash, run, monkeypatch):
    before = rows()
    for step in ("move_shared", "move_people", "ProjectMove", "record"):
        work = getattr(move, step)

        def interrupted(*args, step=step, work=work, **options):
            result = work(*args, **options)
            list(result) if step.startswith("move_") else None
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(move, step, interrupted)
            with pytest.raises(KeyboardInterrupt):
                run("apply", unleash, "--project", "p0")
        assert rows() == before
    assert run("apply", unleash, "--project", "p0")[0] == 0


def test_people_come_with_their_root_roles_and_those_here_stay(unleash, run):
    User.objects.create(username="Person1@example.com", root_role_id=BuiltIn.VIEWER)
    _, text, _ = run("apply", unleash)
    assert "note     person person1@example.com: has Viewer here and Editor there, and stays" in text
    person = User.objects.get(email="person3@example.com")
    assert (person.root_role_id, person.has_usable_password()) == (BuiltIn.ADMIN, False)
    assert User.objects.filter(email__startswith="person").count() == 5


def test_who_was_refused_a_login_before_is_not_taken_for_deleted(made_up, run):
    recording = deepcopy(made_up)
    [people] = [
        request["answer"]["users"]
        for request in recording["requests"]
        if request["path"] == "/api/admin/user-admin"
    ]
    newcomer = people.pop()
    with replayed(recording) as replay:
        run("apply", replay)
        record_refusal(newcomer["email"], "has no account", address="127.0.0.1")
        people.append(newcomer)
        status, text, report = run("apply", replay)
        assert (status, report["counts"]["conflict"]) == (0, 0), text
    assert User.objects.filter(email=newcomer["email"]).exists()


def test_a_report_can_be_printed_as_json(unleash, run):
    status, text, report = run("plan", unleash, "--json")
    assert (status, json.loads(text)) == (2, report)


def test_an_outage_is_waited_for_and_another_version_refused(unleash, run):
    statuses = iter([503, 429])
    unleash.lie = lambda handler: bool(status := next(statuses, 0)) and send(handler, status, b"{}")
    assert run("plan", unleash)[0] == 2
    assert unleash.asked[:3] == [("GET", "/api/admin/ui-config")] * 3
    wrong = b'{"version": "5.1.0"}'
    unleash.lie = lambda handler: path_of(handler) == "/api/admin/ui-config" and send(handler, 200, wrong)
    status, text, _ = run("apply", unleash)
    assert (status, "names version 5.1.0. Only Unleash 6 to 8 can be moved from." in text) == (1, True)


@pytest.mark.parametrize(
    "address", ["unleash.example.com", "ftp://a.example", "https://u:p@a.example", "https://[x"]
)
def test_addresses_that_are_none(address):
    with pytest.raises(SourceError, match="is not an address like"):
        Source(address, ADMIN)


def test_a_token_is_needed():
    for token in ("", "a\nb", "ü"):
        with pytest.raises(SourceError, match="Give a token of that server, in ASCII"):
            Source("https://unleash.example.com/api", token)


def test_follow_moves_what_changes_there_until_it_is_stopped(unleash, run, monkeypatch):
    """Three rounds: the first moves all, the next finds only what reading left in the log, the last a change."""
    rounds = []
    exported, changed = {"type": "features-exported"}, {"type": "feature-updated"}
    log = [{"id": 9, **changed}, {"id": 10, **changed}]
    unleash.lie = lambda h: (
        path_of(h) == "/api/admin/search/events" and send(h, 200, json.dumps({"events": log[-100:]}).encode())
    )

    def after_each_round(stopping, seconds):
        rounds.append(unleash.asked.count(("GET", "/api/admin/segments")))
        assert seconds == 30
        if len(rounds) == 1:
            log.append({"id": 11, **exported})
        elif len(rounds) == 2:
            unleash.edit_segments(description="edited there")
            log.append({"id": 12, **changed})
        else:
            stopping.set()

    monkeypatch.setattr(follow, "pause", after_each_round)
    status, text, report = run("follow", unleash, "--every", "30", "--users", "10")
    assert (status, rounds) == (0, [1, 1, 2]), text
    assert Segment.objects.get(name="nordics").description == "edited there"
    assert text.count("All 10 tokens get the same here.") == 3
    assert (report["problem"], report["moved"]["counts"]["change"]) == ("", 2)


def test_follow_survives_an_outage_and_says_so(unleash, run, monkeypatch):
    monkeypatch.setattr(follow, "pause", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    unleash.lie = lambda h: send(h, 500, b"{}")
    status, text, report = run("follow", unleash)
    assert (status, "status 500, 5 times in a row" in report["problem"]) == (2, True), text


def test_the_command_shows_what_it_does(made_up, capsys):
    with replayed(made_up) as replay, pytest.raises(SystemExit):
        call_command("move", "plan", "--from", replay.address, "--token", ADMIN)
    assert "Reading project p0 …" in capsys.readouterr().err
