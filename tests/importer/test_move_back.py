"""`manage.py move back`: what is here is written to an Unleash, or to its import files."""

import gzip
import json

import pytest
from django.core.management import CommandError, call_command

from importer.moving.reading import source
from projects.models import Flag, Project, Segment, Strategy
from tests.support.demo import made_once
from tests.support.paths import ROOT
from tests.support.recorded_unleash import ADMIN, PERSON, path_of, replayed, send

pytestmark = pytest.mark.django_db
RECORDING = json.loads(gzip.decompress((ROOT / "tests" / "vectors" / "moving.json.gz").read_bytes()))
IMPORT = "/api/admin/features-batch/import"


@pytest.fixture(scope="module")
def moved(django_db_setup, django_db_blocker):
    with replayed(RECORDING) as replay, pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "WAIT", 0)

        def take(handler):
            is_write = handler.command == "PUT" or (
                handler.command == "POST" and not path_of(handler).endswith("/export")
            )
            if path_of(handler) == IMPORT and handler.headers["Authorization"] != PERSON:
                return send(handler, 403, b'{"name": "NoAccessError"}')
            if is_write:
                replay.written.append((handler.command, path_of(handler), json.loads(handler.body)))
                # The connection is closed after it: asked again there, the client would write twice.
                send(handler, 201 if path_of(handler) != IMPORT else 200, b"", Connection="close")
            return is_write

        replay.lie = take
        with made_once(
            lambda: call_command("move", "apply", "--from", replay.address, "--token", ADMIN),
            django_db_blocker,
        ):
            yield replay


@pytest.fixture
def unleash(moved):
    moved.written.clear()
    return moved


@pytest.fixture
def back(unleash, capsys):
    def back(*options, to=True, token=PERSON):
        capsys.readouterr()
        target = ["--to", unleash.address] if to else []
        call_command("move", "back", *target, "--token", token, *options)
        return capsys.readouterr().out

    return back


def recorded_export(project, environment):
    for request in RECORDING["requests"]:
        body = request["body"] or {}
        flags = request["answer"].get("features") if body.get("environment") == environment else None
        if flags and {flag["project"] for flag in flags} == {project}:
            return request["answer"]
    raise AssertionError(project)


def test_what_came_goes_back_as_it_came(back, unleash):
    text = back()
    bodies = {
        (body["project"], body["environment"]): body["data"]
        for _, path, body in unleash.written
        if path == IMPORT
    }
    assert len(bodies) == len(unleash.written) == 8, text
    assert "archived flags: imports there leave them out" in text
    sent, came = bodies["web", "production"], recorded_export("web", "production")
    names = {flag["name"] for flag in sent["features"]}

    def strategies(export):
        return sorted(
            json.dumps(
                [each["featureName"], each["name"], each["parameters"], each["constraints"]], sort_keys=True
            )
            for each in export["featureStrategies"]
            if each["featureName"] in names and "value" not in str(each["constraints"])
        )

    assert strategies(sent) == strategies(came)
    assert not any("constraints" in segment for segment in sent["segments"])


def test_what_is_missing_there_is_created_before_the_flags(back, unleash):
    Segment.objects.create(name="ours", constraints=[])
    Segment.objects.filter(name="unused").update(constraints=[])
    back("--project", "web")
    written = [(method, path) for method, path, _ in unleash.written]
    assert written[:2] == [("PUT", "/api/admin/segments/6"), ("POST", "/api/admin/segments")] or written[
        :2
    ] == [
        ("POST", "/api/admin/segments"),
        ("PUT", "/api/admin/segments/6"),
    ]
    assert {path for _, path in written[2:]} == {IMPORT}


@pytest.mark.parametrize("options", [(), ("--check",)])
def test_an_admin_token_is_refused_before_anything_is_written(back, unleash, capsys, options):
    Segment.objects.create(name="ours", constraints=[])
    with pytest.raises(CommandError, match="Nothing was written there") as refused:
        back(*options, token=ADMIN)
    text = capsys.readouterr().out
    assert (refused.value.returncode, unleash.written) == (2, [])
    assert f"refuse   imports into {unleash.address}: Unleash refuses them with an admin token" in text
    assert ("create   segment ours" in text) == bool(options)


def test_strategies_that_imports_there_complete_are_named(back):
    here = Strategy.objects.filter(flag__name="base-export-a", environment="production")
    variants = [{"name": "a", "weight": 1, "weightType": "variable", "stickiness": "default"}]
    assert here.update(parameters={"groupId": "", "stickiness": "default"}, variants=variants)
    text = back("--check", "--project", "default")
    subject = "cannot   a strategy of base-export-a in production: imports there complete its "
    assert f"{subject}rollout and groupId and weights of variants, so users get other results" in text
    assert text.count("a strategy of ") == here.count()


def test_a_check_writes_nothing(back, unleash):
    assert "to be imported" in back("--check")
    assert unleash.written == []


def test_projects_that_are_not_there_are_named(back, unleash):
    project = Project.objects.create(id="ours", name="ours")
    project.environments.add("production")
    Flag.objects.create(name="our-flag", project=project, created_at="2026-01-01T00:00:00Z")
    assert "1 flag of ours / production: there is no such project" in back()


def test_files_are_import_bodies(back, unleash, tmp_path):
    back("--files", str(tmp_path / "files"), to=False)
    files = sorted(path.name for path in (tmp_path / "files").iterdir())
    assert len(files) == 8
    assert files[0] == "default.development.json"
    assert json.loads((tmp_path / "files" / files[0]).read_bytes())["project"] == "default"
    assert unleash.written == []


def test_a_check_writes_no_files(back, unleash, tmp_path):
    folder = tmp_path / "files"
    assert "file default.development.json" in back("--files", str(folder), "--check", to=False)
    assert not folder.exists()


@pytest.mark.parametrize("to", [True, False])
def test_a_project_that_is_not_here_is_named(back, unleash, tmp_path, to):
    files = [] if to else ["--files", str(tmp_path / "files")]
    with pytest.raises(CommandError, match=r"No project nope here\. Available: default, "):
        back(*files, "--project", "web", "--project", "nope", to=to)
    assert unleash.written == []


def test_a_refusal_there_is_said(back, unleash, monkeypatch):
    answer = b'{"message": "no such strategy"}'
    monkeypatch.setattr(unleash, "lie", lambda h: path_of(h) == IMPORT and send(h, 400, answer))
    with pytest.raises(CommandError, match=r"status 400: .*no such strategy"):
        back()


def test_a_target_is_needed(back):
    with pytest.raises(CommandError, match="back needs --to or --files"):
        back(to=False)


@pytest.mark.parametrize("options", [(), ("--check",)])
def test_a_list_that_the_server_would_refuse_prevents_it(unleash, capsys, options):
    values = [str(number) for number in range(1_001)]
    Segment.objects.create(
        name="beta", constraints=[{"contextName": "userId", "operator": "IN", "values": values}]
    )

    with pytest.raises(CommandError):
        call_command("move", "back", "--to", unleash.address, "--token", PERSON, *options)
    assert "segment beta: has 1,001 values, and the server accepts 1,000" in capsys.readouterr().out
    assert unleash.written == []
