"""`manage.py move` of what has moved before: what was edited there or here since, and proofs of it."""

import re

import pytest

from groups.access import Caller
from groups.models import ApiToken
from projects.flags.actions import update_flag
from projects.flags.archive.actions import archive_flags, delete_flags, revive_flags
from projects.models import (
    Dependency,
    Flag,
    FlagEnvironment,
    FlagLink,
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
from tests.support.recorded_unleash import EXPORT

pytestmark = pytest.mark.django_db


@pytest.fixture
def unleash(moved):
    """Its answers are the test's own. They have details of two more flags, which a test moves within p0 or to it."""
    recording = make_recording(32)
    for name in ("p0.flag-00030", "p1.flag-00003"):
        add(recording, f"/api/admin/projects/p0/features/{name}", {"environments": make_details(name)})
    moved.load(recording)
    return moved


def exports(unleash, environment=None):
    """Its answers with the flags of a project, in this environment or in each."""
    for request in unleash.recording["requests"]:
        if request["path"] == EXPORT and environment in (None, request["body"]["environment"]):
            yield request["answer"]


def test_a_proof_names_each_flag_that_differs_and_why_and_counts_edge_cases_apart(unleash, run):
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
    for each in (each for token in tokens.values() for each in token["differences"]):
        counts = re.search(r"\(([^()]*)\)$", each["reason"])[1].split(", ")
        users = [count for count in counts if re.match(r"[\d,]+ (?!edge case)", count)]
        assert sum(int(count.split()[0]) for count in users) == each["users"], each
    assert re.search(r"\d edge cases? (on|off) there, (on|off) here", text), text
    status, text, _ = run("plan", unleash, "--overwrite")
    assert status == 2
    assert "change   segment nordics: constraints none → [{" in text
    assert (
        "cannot   flag p0.flag-00004 in development: p0.flag-00004 is archived and will be skipped." in text
    )


def test_flags_with_links_that_were_archived_here_do_not_keep_the_rest_from_moving(unleash, run):
    name = "p0.flag-00000"
    archive_flags("p0", [name], caller=Caller.system())
    links = list(FlagLink.objects.filter(flag__name=name).values())
    update_segment(Segment.objects.get(name="nordics").pk, {"constraints": []}, caller=Caller.system())
    _, text, report = run("apply", unleash, "--overwrite")
    assert f"flag {name} in production: {name} is archived and will be skipped." in text
    assert not report["refused"], text
    assert Segment.objects.get(name="nordics").constraints
    assert Flag.objects.get(name=name).archived_at
    assert list(FlagLink.objects.filter(flag__name=name).values()) == links != []


def revive_there(unleash, name):
    """From now on, the archived flag of p0 is active there."""
    answers = {request["path"]: request["answer"] for request in unleash.recording["requests"]}
    archived = next(answer for path, answer in answers.items() if "project=IS:p0&archived" in path)
    answers["/api/admin/projects/p0/features"]["features"].append(archived["features"].pop())
    archived["total"] = 0
    for export in exports(unleash):
        for flag in export["features"]:
            flag["archived"] = flag["archived"] and flag["name"] != name


@pytest.mark.parametrize("is_ours", [False, True])
def test_a_flag_that_was_archived_there_and_is_active_again_is_so_here(unleash, run, is_ours):
    """Unless somebody has archived it here."""
    name = "p0.flag-00030"
    assert Flag.objects.get(name=name).is_archived
    if is_ours:
        revive_flags("p0", [name], caller=Caller.system())
        archive_flags("p0", [name], caller=Caller.system())
    revive_there(unleash, name)
    planned = run("plan", unleash)[1].replace("Nothing was written.\n", "")
    assert Flag.objects.get(name=name).is_archived
    _, text, report = run("apply", unleash)
    assert (Flag.objects.get(name=name).is_archived, text) == (is_ours, planned)
    assert (f"change   flag {name}: restored" in text) is not is_ours
    assert ("is archived and will be skipped" in text) is is_ours
    assert report["counts"]["conflict"] == 0
    assert run("plan", unleash)[0] == 0
    on = Flag.objects.get(name=name).environments.filter(enabled=True)
    assert on.exists() is not is_ours


@pytest.mark.parametrize("is_edited", [False, True])
def test_a_flag_that_has_another_project_there_gets_it_here(unleash, run, is_edited):
    name = "p1.flag-00003"
    answers = {request["path"]: request["answer"] for request in unleash.recording["requests"]}
    if is_edited:
        update_flag("p1", name, {"description": "ours"}, caller=Caller.system())
    before, after = (
        answers[f"/api/admin/projects/{project}/features"]["features"] for project in ("p1", "p0")
    )
    after.append(next(flag for flag in before if flag["name"] == name))
    before[:] = [flag for flag in before if flag["name"] != name]
    for export in exports(unleash):
        for flag in export["features"]:
            flag |= {"project": "p0"} if flag["name"] == name else {}
    status, text, _ = run("apply", unleash)
    assert status == (2 if is_edited else 0), text
    assert Flag.objects.get(name=name).project_id == ("p1" if is_edited else "p0")
    if is_edited:
        assert f"refuse   flag {name} in p0 / development: {name} already exists in project p1" in text
    else:
        assert f"change   flag {name}: project p1 → p0" in text
        assert run("plan", unleash)[0] == 0


@pytest.mark.parametrize("is_exported", [True, False])
def test_parents_and_links_that_were_removed_there_are_removed_here(unleash, run, is_exported):
    """Exports have no entry for a flag without them. An older server has no such entries at all."""
    before = Dependency.objects.count(), FlagLink.objects.count()
    assert all(before)
    for export in exports(unleash):
        for member in ("dependencies", "links"):
            export.pop(member)
            export |= {member: []} if is_exported else {}
    status, text, report = run("apply", unleash)
    assert (status, report["counts"]["change"] > 0) == (0, is_exported), text
    now = Dependency.objects.count(), FlagLink.objects.count()
    assert now == ((0, 0) if is_exported else before)
    assert run("plan", unleash)[0] == 0


def test_environments_that_ask_for_change_requests_are_not_written(unleash, run):
    strategy = Strategy.objects.filter(flag__name="p0.flag-00028", environment="production")
    edited = {"rollout": "99", "stickiness": "userId", "groupId": "g"}
    strategy.update(parameters=edited)
    ProjectEnvironment.objects.filter(environment="production").update(required_approvals=1)
    for step in ("plan", "apply"):
        status, text, _ = run(step, unleash)
        assert status == 2
        assert "refuse   project p0: Changes of production in project p0 need a change request." in text
        assert strategy.get().parameters == edited


def test_what_was_edited_here_since_is_named_and_stays(unleash, run):
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


def test_what_was_overwritten_in_one_environment_is_no_conflict_in_another(unleash, run):
    """What all environments of a flag share is written by the move of the first that differs."""
    name = "p0.flag-00028"
    update_flag("p0", name, {"description": "ours"}, caller=Caller.system())
    assert run("plan", unleash)[2]["counts"]["conflict"] > 0
    assert run("apply", unleash, "--overwrite")[0] == 0
    for export in exports(unleash, "production"):
        for strategy in export["featureStrategies"]:
            if strategy["featureName"] == name:
                strategy["title"] = "edited there"
    status, text, report = run("apply", unleash)
    assert (status, report["counts"]["conflict"]) == (0, 0), text
    titles = Strategy.objects.filter(flag__name=name, environment="production").values_list(
        "title", flat=True
    )
    assert {*titles} == {"edited there"}


def test_a_proof_takes_users_of_a_file(unleash, run, tmp_path):
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
