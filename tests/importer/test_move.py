"""`manage.py move`: from a recorded Unleash, from a made-up one, and from servers that lie."""

import gzip
import json
import os
import re
import signal
from copy import deepcopy

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from groups.login.actions import record_refusal
from groups.models import ApiToken, User
from groups.permissions import BuiltIn
from importer.models import ImportRun
from importer.moving import follow
from importer.moving.reading import exports, source
from importer.moving.reading.source import Source, SourceError
from importer.moving.writing import move
from projects.flags.actions import update_flag
from projects.flags.archive.actions import archive_flags, delete_flags, revive_flags
from projects.models import (
    Dependency,
    Environment,
    Flag,
    FlagEnvironment,
    FlagLink,
    Project,
    ProjectEnvironment,
    Segment,
    Strategy,
)
from projects.projects.actions import update_project
from projects.projects.environments import remove_environment
from projects.segments.actions import update_segment
from projects.strategies.actions import update_strategy
from tests.support.generated_unleash import make_details, make_recording
from tests.support.moving import add
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


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Runs a step. Returns its exit status, what it printed, and its report."""
    monkeypatch.setattr(source, "WAIT", 0)
    monkeypatch.delenv("UNLEASH_TOKEN", raising=False)

    def run(step, replay, *options):
        report, message = tmp_path / "report.json", ""
        status: object = 0
        report.unlink(missing_ok=True)
        try:
            call_command(
                "move", step, "--from", replay.address, "--token", ADMIN, "--report", str(report), *options
            )
        except CommandError as error:
            status, message = error.returncode, str(error)
        except SystemExit as end:
            status = end.code
        text = capsys.readouterr().out + message
        return status, text, json.loads(report.read_bytes()) if report.exists() else None

    return run


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


def test_a_proof_names_each_flag_that_differs_and_why(unleash, run):
    run("apply", unleash)
    strategies = Strategy.objects.filter(environment="production")
    strategies.filter(flag__name="p0.flag-00028").update(
        parameters={"rollout": "99", "stickiness": "userId", "groupId": "g"}
    )
    archive_flags("p0", ["p0.flag-00004"], caller=Caller.system())
    ApiToken.objects.get(name="several").delete()
    segment = Segment.objects.get(name="nordics")
    update_segment(segment.pk, {"constraints": []}, caller=Caller.system())
    status, text, report = run("prove", unleash, "--users", "300")
    tokens = {token["token"]: token for token in report["tokens"]}
    reasons = {each["flag"]: each["reason"] for each in tokens["all"]["differences"]}
    assert status == 2
    assert tokens["several"]["problem"] == "is not here: its applications would be refused"
    assert "is not here (" in reasons["p0.flag-00004"]
    assert "segments[1].constraints is [{" in reasons["p1.flag-00025"]
    assert 'strategies[0].parameters.rollout is "28" there and "99" here' in reasons["p0.flag-00028"]
    assert "tokens get something else here." in text
    status, text, _ = run("plan", unleash, "--overwrite")
    assert status == 2
    assert "change   segment nordics: constraints none → [{" in text
    assert (
        "cannot   flag p0.flag-00004 in development: p0.flag-00004 is archived and will be skipped." in text
    )


def test_flags_with_links_that_were_archived_here_do_not_keep_the_rest_from_moving(run):
    recording = json.loads(gzip.decompress(FILE.read_bytes()))
    with replayed(recording) as replay:
        run("apply", replay)
        archive_flags("web", ["web.cart-m"], caller=Caller.system())
        links = list(FlagLink.objects.filter(flag__name="web.cart-m").values())
        update_segment(Segment.objects.get(name="nordics").pk, {"constraints": []}, caller=Caller.system())
        _, text, report = run("apply", replay, "--overwrite")
    assert "flag web.cart-m in production: web.cart-m is archived and will be skipped." in text
    assert not report["refused"], text
    assert Segment.objects.get(name="nordics").constraints
    assert Flag.objects.get(name="web.cart-m").archived_at
    assert list(FlagLink.objects.filter(flag__name="web.cart-m").values()) == links != []


def revive_there(recording, name):
    """From now on, the archived flag of p0 is active there."""
    answers = {request["path"]: request["answer"] for request in recording["requests"]}
    archived = next(answer for path, answer in answers.items() if "project=IS:p0&archived" in path)
    answers["/api/admin/projects/p0/features"]["features"].append(archived["features"].pop())
    archived["total"] = 0
    for request in recording["requests"]:
        for flag in request["answer"]["features"] if request["path"] == EXPORT else ():
            flag["archived"] = flag["archived"] and flag["name"] != name


@pytest.mark.parametrize("is_ours", [False, True])
def test_a_flag_that_was_archived_there_and_is_active_again_is_so_here(made_up, run, is_ours):
    """Unless somebody has archived it here."""
    name, recording = "p0.flag-00030", deepcopy(made_up)
    add(recording, f"/api/admin/projects/p0/features/{name}", {"environments": make_details(name)})
    with replayed(recording) as replay:
        run("apply", replay)
        assert Flag.objects.get(name=name).is_archived
        if is_ours:
            revive_flags("p0", [name], caller=Caller.system())
            archive_flags("p0", [name], caller=Caller.system())
        revive_there(recording, name)
        planned = run("plan", replay)[1].replace("Nothing was written.\n", "")
        assert Flag.objects.get(name=name).is_archived
        _, text, report = run("apply", replay)
        assert (Flag.objects.get(name=name).is_archived, text) == (is_ours, planned)
        assert (f"change   flag {name}: restored" in text) is not is_ours
        assert ("is archived and will be skipped" in text) is is_ours
        assert report["counts"]["conflict"] == 0
        assert run("plan", replay)[0] == 0
        on = Flag.objects.get(name=name).environments.filter(enabled=True)
        assert on.exists() is not is_ours


@pytest.mark.parametrize("is_edited", [False, True])
def test_a_flag_that_has_another_project_there_gets_it_here(made_up, run, is_edited):
    name, recording = "p1.flag-00003", deepcopy(made_up)
    answers = {request["path"]: request["answer"] for request in recording["requests"]}
    add(recording, f"/api/admin/projects/p0/features/{name}", {"environments": make_details(name)})
    with replayed(recording) as replay:
        run("apply", replay)
        if is_edited:
            update_flag("p1", name, {"description": "ours"}, caller=Caller.system())
        before, after = (
            answers[f"/api/admin/projects/{project}/features"]["features"] for project in ("p1", "p0")
        )
        after.append(next(flag for flag in before if flag["name"] == name))
        before[:] = [flag for flag in before if flag["name"] != name]
        for request in recording["requests"]:
            for flag in request["answer"]["features"] if request["path"] == EXPORT else ():
                flag |= {"project": "p0"} if flag["name"] == name else {}
        status, text, _ = run("apply", replay)
        assert status == (2 if is_edited else 0), text
        assert Flag.objects.get(name=name).project_id == ("p1" if is_edited else "p0")
        if is_edited:
            assert f"refuse   flag {name} in p0 / development: {name} already exists in project p1" in text
        else:
            assert f"change   flag {name}: project p1 → p0" in text
            assert run("plan", replay)[0] == 0


@pytest.mark.parametrize("is_exported", [True, False])
def test_parents_and_links_that_were_removed_there_are_removed_here(made_up, run, is_exported):
    """Exports have no entry for a flag without them. An older server has no such entries at all."""
    recording = deepcopy(made_up)
    with replayed(recording) as replay:
        run("apply", replay)
        before = Dependency.objects.count(), FlagLink.objects.count()
        assert all(before)
        for request in recording["requests"]:
            if request["path"] == EXPORT:
                for member in ("dependencies", "links"):
                    request["answer"].pop(member)
                    request["answer"] |= {member: []} if is_exported else {}
        status, text, report = run("apply", replay)
        assert (status, report["counts"]["change"] > 0) == (0, is_exported), text
        now = Dependency.objects.count(), FlagLink.objects.count()
        assert now == ((0, 0) if is_exported else before)
        assert run("plan", replay)[0] == 0


def test_a_proof_counts_edge_cases_apart_from_users(unleash, run):
    run("apply", unleash)
    archive_flags("p1", ["p1.flag-00025"], caller=Caller.system())
    Strategy.objects.filter(flag__name="p0.flag-00028", environment="production").update(
        parameters={"rollout": "99", "stickiness": "userId", "groupId": "g"}
    )
    _, text, report = run("prove", unleash, "--users", "300")
    differences = [each for token in report["tokens"] for each in token["differences"]]
    assert len(differences) > 2
    for each in differences:
        counts = re.search(r"\(([^()]*)\)$", each["reason"])[1].split(", ")
        users = [count for count in counts if re.match(r"[\d,]+ (?!edge case)", count)]
        assert sum(int(count.split()[0]) for count in users) == each["users"], each
    assert re.search(r"\d edge cases? (on|off) there, (on|off) here", text), text


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


def test_environments_that_ask_for_change_requests_are_not_written(unleash, run):
    run("apply", unleash)
    strategy = Strategy.objects.filter(flag__name="p0.flag-00028", environment="production")
    edited = {"rollout": "99", "stickiness": "userId", "groupId": "g"}
    strategy.update(parameters=edited)
    ProjectEnvironment.objects.filter(environment="production").update(required_approvals=1)
    for step in ("plan", "apply"):
        status, text, _ = run(step, unleash)
        assert status == 2
        assert "refuse   project p0: Changes of production in project p0 need a change request." in text
        assert strategy.get().parameters == edited


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
    monkeypatch.setattr(exports, "MAX_ARCHIVED", 5)
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


def test_what_was_edited_here_since_is_named_and_stays(unleash, run):
    run("apply", unleash)
    strategy = Strategy.objects.get(flag__name="p0.flag-00028", environment="production")
    edited = {"rollout": "99", "stickiness": "userId", "groupId": "g"}
    change = {"parameters": edited}
    update_strategy("p0", "p0.flag-00028", "production", str(strategy.pk), change, caller=Caller.system())
    segment = Segment.objects.get(name="nordics")
    update_segment(segment.pk, {"description": "ours"}, caller=Caller.system())
    update_project("p1", {"description": "ours"}, caller=Caller.system())
    archive_flags("p1", ["p1.flag-00003"], caller=Caller.system())
    delete_flags("p1", ["p1.flag-00003"], caller=Caller.system())
    for step in ("plan", "apply"):
        status, text, report = run(step, unleash)
        assert (status, report["counts"]["conflict"], report["counts"]["change"]) == (2, 4, 0), text
        assert "conflict flag p0.flag-00028 in production: was edited here since the last move" in text
        assert "conflict segment nordics: was edited here" in text
        assert "conflict project p1: was edited here" in text
        assert "conflict flag p1.flag-00003: was deleted here" in text
    # Moving something else does not make it forgotten.
    unleash.edit_segments(description="edited there")
    for _ in range(2):
        status, text, report = run("apply", unleash)
        assert (status, report["counts"]["conflict"]) == (2, 4), text
    assert Segment.objects.get(name="big-carts").description == "edited there"
    assert Strategy.objects.get(pk=strategy.pk).parameters == edited
    assert run("apply", unleash, "--overwrite")[0] == 0
    assert run("plan", unleash)[0] == 0


def test_an_environment_that_a_project_has_given_up_here_stays_away(unleash, run):
    run("apply", unleash)
    FlagEnvironment.objects.filter(flag__project="p1", environment="production").update(enabled=False)
    remove_environment("p1", "production", caller=Caller.system())
    given_up = ProjectEnvironment.objects.filter(project="p1", environment="production")
    for step in ("plan", "apply"):
        status, text, report = run(step, unleash)
        assert (status, report["counts"]["conflict"], report["counts"]["change"]) == (2, 1, 0), text
        assert (
            "conflict production in project p1: was deleted here since the last move, and stays away" in text
        )
        assert not given_up.exists()
    assert run("apply", unleash, "--overwrite")[0] == 0
    assert given_up.exists()
    assert run("plan", unleash)[0] == 0


def test_what_was_overwritten_in_one_environment_is_no_conflict_in_another(made_up, run):
    """What all environments of a flag share is written by the move of the first that differs."""
    name, recording = "p0.flag-00028", deepcopy(made_up)
    with replayed(recording) as replay:
        run("apply", replay)
        update_flag("p0", name, {"description": "ours"}, caller=Caller.system())
        assert run("plan", replay)[2]["counts"]["conflict"] > 0
        assert run("apply", replay, "--overwrite")[0] == 0
        for request in recording["requests"]:
            if request["path"] == EXPORT and request["body"]["environment"] == "production":
                for strategy in request["answer"]["featureStrategies"]:
                    if strategy["featureName"] == name:
                        strategy["title"] = "edited there"
        status, text, report = run("apply", replay)
        assert (status, report["counts"]["conflict"]) == (0, 0), text
        titles = Strategy.objects.filter(flag__name=name, environment="production").values_list(
            "title", flat=True
        )
        assert {*titles} == {"edited there"}


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


def test_a_proof_takes_users_of_a_file(unleash, run, tmp_path):
    run("apply", unleash)
    Strategy.objects.filter(flag__name="p0.flag-00028", environment="production").update(
        parameters={"rollout": "100", "stickiness": "userId", "groupId": "g"}
    )
    file = tmp_path / "users.csv"
    file.write_text("userId\n" + "".join(f"u{number}\n" for number in range(400)))
    status, text, report = run("prove", unleash, "--users", str(file))
    flags = {each["flag"]: each for token in report["tokens"] for each in token["differences"]}
    assert (status, flags["p0.flag-00028"]["of"]) == (2, 400)
    assert 200 < flags["p0.flag-00028"]["users"] < 400
    file.write_text("nonsense\n1\n")
    status, text, _ = run("prove", unleash, "--users", str(file))
    assert (status, "--users: row 1, column 1: nonsense is not a context field." in text) == (1, True), text
    assert run("prove", unleash, "--users", str(tmp_path / "missing.csv"))[0] == 1


def test_the_command_shows_what_it_does(made_up, capsys):
    with replayed(made_up) as replay, pytest.raises(SystemExit):
        call_command("move", "plan", "--from", replay.address, "--token", ADMIN)
    assert "Reading project p0 …" in capsys.readouterr().err
