"""`manage.py check_expectations`: as stored, and as if a file had been imported."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from playground.models import SavedContext
from projects.models import Flag
from tests.support.cast import make_project
from tests.support.import_bodies import body, strategy, switch
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db

ONLY_42 = {"contextName": "userId", "operator": "IN", "values": ["42"]}


@pytest.fixture
def flag(shop: Any) -> Flag:
    """On for user 7 in production, and user 42 expects to see it."""
    return live_flag("lounge", strategies=[{"name": "userWithId", "parameters": {"userIds": "7"}}])


def persona(
    name: str, user: str, enabled: bool, flag: str = "lounge", environment: str = "production"
) -> None:
    expectation = {"flag": flag, "environment": environment, "enabled": enabled, "variant": None}
    SavedContext.objects.create(name=name, context={"userId": user}, expectations=[expectation])


def status(*arguments: str) -> int:
    try:
        call_command("check_expectations", *arguments)
    except CommandError as error:
        return error.returncode
    return 0


def test_all_met(flag, capsys):
    persona("Ada", "42", enabled=False)
    persona("Bea", "7", enabled=True)
    assert status() == 0
    assert capsys.readouterr().out.splitlines() == [
        "ok  production  lounge  Ada  expected off",
        "ok  production  lounge  Bea  expected on",
        "2 expectations met.",
    ]


def test_some_not_met(flag, capsys):
    persona("Ada", "42", enabled=True)
    persona("Bea", "7", enabled=True)
    with pytest.raises(CommandError, match=r"1 of 2 expectations is not met\.") as refused:
        call_command("check_expectations")
    assert refused.value.returncode == 1
    first, why, _ = capsys.readouterr().out.splitlines()
    assert first == "FAIL  production  lounge  Ada  expected on"
    assert why.startswith("      is off: ")


def test_only_a_project_or_an_environment(flag, capsys):
    persona("Ada", "42", enabled=True)
    persona("Dev", "42", enabled=False, environment="development")
    assert status("--environment", "development") == 0
    assert status("--environment", "production") == 1
    assert status("--environment", "development", "--environment", "production") == 1
    assert status("--project", "shop") == 1
    assert status("--project", "default") == 0
    assert "There are no expectations." in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--project", "nowhere"),
        ("--environment", "moon"),
        ("--into", "shop/production"),
        ("--all",),
        ("--synthetic", "10"),
        ("--as-if-imported", "/nowhere.json"),
        ("--junit", "/nowhere/there.xml"),
    ],
)
def test_what_cannot_be_checked(flag, arguments):
    assert status(*arguments) == 2


def test_junit(flag, tmp_path):
    persona("Ada", "42", enabled=True)
    path = tmp_path / "expectations.xml"
    assert status("--junit", str(path)) == 1
    suites = ElementTree.parse(path).getroot()
    assert (suites.tag, suites.get("failures")) == ("testsuites", "1")
    assert suites.find("testsuite/testcase/failure").get("message").startswith("lounge is off in production")


@pytest.fixture
def file(tmp_path):
    """An export that lets user 42 in instead of user 7."""
    inside = strategy("lounge", name="default", constraints=[ONLY_42])
    sent = body(
        "lounge", environment="production", featureStrategies=[inside], featureEnvironments=[switch("lounge")]
    )
    path = tmp_path / "export.json"
    path.write_text(json.dumps(sent))
    return path


def test_as_if_imported(flag, file, capsys):
    persona("Ada", "42", enabled=True)
    persona("Bea", "7", enabled=False)
    assert status() == 1
    assert status("--as-if-imported", str(file)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 expectations met."
    strategies = Flag.objects.get().strategies
    assert strategies.get().name == "userWithId"  # nothing was written
    assert status() == 1


def test_as_if_imported_breaks_one(flag, file, capsys):
    persona("Bea", "7", enabled=True)
    persona("Elsewhere", "7", enabled=False, environment="development")
    assert status() == 0
    assert status("--as-if-imported", str(file)) == 1
    assert "Bea" in next(line for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL"))
    assert status("--as-if-imported", str(file), "--into", "shop/development") == 0


def test_only_what_the_import_breaks_counts(flag, file, capsys):
    """In its project and environment; `--all` counts everything."""
    persona("Bea", "7", enabled=False)  # mended
    persona("Carl", "9", enabled=True)  # neither now nor then
    persona("Elsewhere", "7", enabled=True, environment="development")
    make_project("docs")
    live_flag("page", "docs")
    persona("Reader", "7", enabled=False, flag="page")
    assert status("--as-if-imported", str(file)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1 expectation not met now either; --all counts them.",
        "ok  production  lounge  Bea  expected off",
        "1 expectation met.",
    ]
    assert status("--as-if-imported", str(file), "--all") == 1
    failed = [line.split()[3] for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL")]
    assert failed == ["Carl", "Elsewhere", "Reader"]


def test_only_some_saved_contexts(flag, file):
    persona("Ada", "7", enabled=True)
    persona("Bea", "8", enabled=False)
    assert status("--as-if-imported", str(file), "--saved", "Bea") == 0
    assert status("--as-if-imported", str(file), "--saved", "Bea", "--saved", "Ada") == 1
    assert status("--saved", "Nobody") == 2


@pytest.mark.parametrize(
    ("people", "said"),
    [
        (("--synthetic", "200"), "2 of 200 people change (1 %)"),
        (("--synthetic", "200", "--fixed", "userId=7"), "200 of 200 people change (100 %)"),
        (("--synthetic", "200", "--fixed", "userId=9"), "0 of 200 people change (0 %)"),
        (("--contexts", "people.csv"), "1 of 3 people change (33.3 %)"),
        (("--contexts", "people.json"), "2 of 2 people change (100 %)"),
    ],
)
def test_how_many_people_change(flag, file, people, said, capsys, monkeypatch):
    monkeypatch.chdir(file.parent)
    Path("people.csv").write_text("userId\n7\n8\n9\n")
    Path("people.json").write_text('[{"userId": "7"}, {"userId": "42"}]')
    assert status("--as-if-imported", str(file), *people) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{said}."
    assert status("--as-if-imported", str(file), *people, "--at-most", "100") == 0
    share = float(said.split("(")[1].removesuffix(" %)"))
    if share:
        with pytest.raises(CommandError, match=r"people change \(.* %\); at most 0\.5 % may\.") as refused:
            call_command("check_expectations", "--as-if-imported", str(file), *people, "--at-most", "0.5%")
        assert refused.value.returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--at-most", "1"),
        ("--at-most", "1", "--fixed", "country=DE", "--contexts", "people.csv"),
        ("--fixed", "country=DE"),
        ("--synthetic", "0"),
        ("--contexts", "nowhere.csv"),
        ("--contexts", "people.csv"),
    ],
)
def test_which_people_must_be_clear(flag, file, arguments, monkeypatch):
    monkeypatch.chdir(file.parent)
    Path("people.csv").write_text("userId,nosuch\n7,1\n")
    assert status("--as-if-imported", str(file), *arguments) == 2


def test_as_if_imported_elsewhere(flag, file):
    assert status("--as-if-imported", str(file), "--into", "shop") == 2
    assert status("--as-if-imported", str(file), "--into", "nowhere/production") == 2
    persona("Bea", "7", enabled=True)
    assert status("--as-if-imported", str(file), "--into", "default/production") == 2  # the flag is in shop


def test_a_flag_that_the_import_creates(shop, file):
    persona("Ada", "42", enabled=True)
    assert status() == 1
    assert status("--as-if-imported", str(file)) == 0


@pytest.fixture
def bringing(file):
    """Adds saved contexts to the file."""

    def bring(*saved):
        sent = json.loads(file.read_text())
        sent["data"]["savedContexts"] = list(saved)
        file.write_text(json.dumps(sent))
        return str(file)

    return bring


def brought(name, user, **members):
    return {"name": name, "context": {"userId": user}, "expectations": [{"flag": "lounge"} | members]}


def test_what_the_file_expects_is_checked_too(flag, bringing, capsys):
    """A new saved context, and a stored one that changes its mind."""
    persona("Ada", "42", enabled=False)
    persona("Other", "42", enabled=True)
    met = bringing(brought("Ada", "42", enabled=True), brought("New", "7", enabled=False))
    assert status("--as-if-imported", met) == 0
    assert capsys.readouterr().out.count("\nok ") + 1 == 3
    not_met = bringing(brought("New", "7", enabled=True))
    assert status("--as-if-imported", not_met) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL")]
    assert [line.split()[3] for line in failed] == ["Ada", "New"]
    assert SavedContext.objects.count() == 2  # nothing was written


def test_what_the_file_expects_of_new_flags_is_of_its_project(shop, bringing):
    file = bringing(brought("New", "42", enabled=True), brought("Bea", "7", enabled=True))
    assert status("--as-if-imported", file, "--project", "shop") == 1
    assert status("--as-if-imported", file, "--project", "default") == 0
    assert status("--as-if-imported", file, "--environment", "development") == 0


def test_the_api_says_what_the_file_would_not_meet(api, flag, bringing):
    """`lounge` is on for user 7 now, and for user 42 after the import."""
    persona("Bea", "7", enabled=True)
    persona("Carl", "7", enabled=True)
    file = bringing(
        brought("Bea", "7", enabled=False),
        brought("New", "7", enabled=True),
        brought("Eve", "42", enabled=True),
    )
    sent = json.loads(Path(file).read_text())
    answer = api["admin"].post("/api/admin/features-batch/compare", sent).json()["expectations"]
    assert [(broken["savedContext"], broken["project"]) for broken in answer["broken"]] == [
        ("Carl", "shop"),
        ("New", "shop"),
    ]
    assert answer["met"] == []
    by_name = {broken["savedContext"]: broken for broken in answer["broken"]}
    assert by_name["New"]["before"]["results"][0]["isEnabled"] is True
    assert by_name["New"]["after"]["results"][0]["isEnabled"] is False


def test_no_json(flag, tmp_path):
    path = tmp_path / "export.json"
    path.write_text("{")
    assert status("--as-if-imported", str(path)) == 2
