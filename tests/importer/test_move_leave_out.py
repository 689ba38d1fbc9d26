"""`manage.py move --leave-out`: what cannot come stays there, by choice, and everything else moves."""

from functools import partial

import pytest
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from importer.moving.reading import source
from projects.models import ContextField, Dependency, Flag, Project, ProjectEnvironment, Segment, TagType
from releases.models import ReleaseTemplate
from tests.support.generated_unleash import make_recording
from tests.support.moving import add, run_changed

pytestmark = pytest.mark.django_db
CYCLIC = ("p0.flag-00004", "p0.flag-00006")
STEPS = ("apply", "plan", "prove")


@pytest.fixture(scope="module")
def made_up():
    return make_recording(32)


@pytest.fixture
def move(made_up, capsys, monkeypatch):
    monkeypatch.setattr(source, "WAIT", 0)
    return partial(run_changed, made_up, capsys)


def nothing(answers, recording):
    pass


def refuse_names(answers, recording):
    """Two flags of p1 have names that another project has here, and one of p0 an operator that nobody knows."""
    Project.objects.get_or_create(id="mine", name="mine")
    for name in ("p1.flag-00001", "p1.flag-00003"):
        if not Flag.objects.filter(name=name).exists():
            Flag.objects.create(name=name, project_id="mine", created_at=timezone.now())
    for environment in ("development", "production", "staging"):
        for strategy in answers[f"{environment} p0"]["featureStrategies"]:
            if strategy["featureName"] == CYCLIC[0]:
                strategy["constraints"] = [{"contextName": "a", "operator": "NEAR", "values": ["b"]}]


def test_the_plan_names_each_flag_that_cannot_come_and_what_leaves_it_out(move):
    status, text = move(refuse_names, steps=("plan",))
    assert status == 2
    assert (
        "refuse   flag p1.flag-00001 in p1 / development: p1.flag-00001 already exists in project mine"
        in text
    )
    assert "refuse   flag p1.flag-00003 in p1 / development: " in text
    assert "refuse   flag p0.flag-00004 in p0 / development: data.featureStrategies[" in text
    assert "needs project" not in text
    assert "create   token p1-production: backend, production, with its secret" in text
    options = "--leave-out p0.flag-00004 --leave-out p1.flag-00001 --leave-out p1.flag-00003"
    assert f"To move everything else: {options}" in text
    assert move(refuse_names, *options.split(), steps=("apply",))[0] == 0


def test_what_is_left_out_is_named_with_its_children_and_a_second_run_finds_nothing(move):
    options = ("--leave-out", "p0.flag-00004", "--leave-out", "p1.flag-00001", "--leave-out", "p1.flag-00003")
    applied, planned, proven = move(refuse_names, *options, "--users", "200", steps=STEPS)
    child = "p1.flag-00027"
    text = applied[1]
    assert (applied[0], planned[0], proven[0]) == (0, 0, 0), (applied, planned, proven)
    assert "leave    flag p0.flag-00004: as you chose" in text
    assert f"leave    flag {child}: its parent p1.flag-00001 is left out" in text
    assert not Flag.objects.filter(name=child).exists()
    assert Flag.objects.exclude(project="mine").count() == 32 - 4
    assert not Dependency.objects.filter(flag__project="p1").exists()
    assert Flag.objects.get(name="p1.flag-00001").project_id == "mine"
    assert "4 cannot, 4 leave, 1 note, 28 flags are the same." in planned[1]
    assert "left out: 4 flags: p0.flag-00004, p1.flag-00001, p1.flag-00003, p1.flag-00027" in proven[1]
    assert "tokens get the same here, but for what is left out: 4 flags: " in proven[1]


def test_a_proof_that_is_not_told_says_that_the_flag_is_not_here(move):
    move(nothing, "--leave-out", "p1.flag-00003")
    status, text = move(nothing, "--users", "200", steps=("prove",))
    assert (status, "p1.flag-00003: " in text, "is not here" in text) == (2, True, True)


def test_flags_that_use_a_segment_stay_with_it_and_so_do_default_strategies_and_templates(move):
    strategy = {"id": "s", "strategyName": "default", "sortOrder": 0, "segments": [41]}
    template = {"name": "Slowly", "milestones": [{"name": "m", "sortOrder": 0, "strategies": [strategy]}]}

    def change(answers, recording):
        answers["/api/admin/segments"]["segments"][0]["constraints"][0]["operator"] = "NEAR"
        add(recording, "/api/admin/release-plan-templates", [template])

    status, text = move(change, steps=("plan",))
    assert (status, "refuse   segment nordics: " in text) == (2, True)
    assert "--leave-out segment:nordics" in text
    applied, planned, proven = move(change, "--leave-out", "segment:nordics", "--users", "50", steps=STEPS)
    assert (applied[0], planned[0]) == (0, 0), (applied, planned)
    assert "leave    segment nordics: as you chose" in applied[1]
    assert "leave    flag p1.flag-00025: its segment nordics is left out" in applied[1]
    assert "cannot   default strategy of production in project p0: segment nordics is not here" in applied[1]
    assert "cannot   release template Slowly: segment nordics is not here" in applied[1]
    assert [*Segment.objects.values_list("name", flat=True)] == ["big-carts"]
    assert not ReleaseTemplate.objects.exists()
    assert not ProjectEnvironment.objects.filter(project="p0").exclude(default_strategy=None).exists()
    assert proven[0] == 0, proven[1]


def test_a_context_field_of_another_project_here_can_stay(move):
    Project.objects.create(id="mine", name="mine")
    ContextField.objects.create(name="country", project_id="mine")
    _, text = move(nothing, steps=("plan",))
    assert "refuse   context field country: belongs to project mine here" in text
    assert "--leave-out context-field:country" in text
    assert move(nothing, "--leave-out", "context-field:country")[0] == 0
    assert ContextField.objects.get(name="country").project_id == "mine"


def test_environments_projects_and_types_can_stay(move):
    options = ["environment:staging", "project:p1", "tag-type:team", "strategy-type:hostGroup"]
    options = [part for choice in options for part in ("--leave-out", choice)]
    applied, planned, proven = move(nothing, *options, "--users", "50", steps=STEPS)
    assert (applied[0], planned[0]) == (0, 0), (applied, planned)
    assert "leave    flag p0.flag-00028: its strategy type hostGroup is left out" not in applied[1]
    assert "leave    project p1: as you chose" in applied[1]
    assert not Flag.objects.filter(project="p1").exists()
    assert not Flag.objects.filter(tags__value="blue").exists()
    assert not ProjectEnvironment.objects.filter(environment="staging").exists()
    assert "token p0-staging (staging): is left out with its environment or projects" in proven[1]
    assert "token p1-production (production): is left out with its environment or projects" in proven[1]
    # A token for both projects has nothing to be for here.
    assert (proven[0], "token several (production): is not here" in proven[1]) == (2, True)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            "flags:a",
            "--leave-out flags:a must be a flag's name, or a kind and a name: context-field, environment",
        ),
        ("segment:", "--leave-out segment: must be"),
        ("", "--leave-out flag: must be"),
    ],
)
def test_choices_that_are_none_are_refused(choice, message, move):
    before = AuditEvent.objects.count()
    status, text = move(nothing, "--leave-out", choice)
    assert (status, message in text) == (1, True), text
    assert AuditEvent.objects.count() == before


def first_strategy(export):
    return next(each for each in export["featureStrategies"] if each["featureName"] == "p0.flag-00002")


@pytest.mark.parametrize(
    "lie",
    [
        lambda export: first_strategy(export).update(name=["default"]),
        lambda export: first_strategy(export).update(segments={"a": 1}),
        lambda export: export["dependencies"].append({"feature": "p0.flag-00002", "dependencies": 7}),
        lambda export: export["featureTags"].append({"featureName": "p0.flag-00002", "tagType": ["a"]}),
    ],
)
def test_a_source_that_lies_is_refused_beside_what_is_left_out(lie, move):
    options = ("--project", "p0", "--leave-out", "p0.flag-00004", "--leave-out", "segment:nordics")
    status, text = move(lambda answers, recording: lie(answers["development p0"]), *options, steps=("plan",))
    assert (status, "refuse   flag p0.flag-00002 in p0 / development: data." in text) == (2, True), text


# All flags are here already for the tests from here on.


def test_a_flag_that_is_here_already_stays_as_it_is_and_so_do_its_children(move, moved):
    def edit(answers, recording):
        for environment in ("development", "production", "staging"):
            for flag in answers[f"{environment} p1"]["features"]:
                flag["description"] = "edited there"

    status, text = move(edit, "--leave-out", "p1.flag-00001")
    assert status == 0, text
    descriptions = dict(Flag.objects.values_list("name", "description"))
    assert descriptions["p1.flag-00001"] == "Says <b>hello</b>"
    assert descriptions["p1.flag-00027"] == "edited there"
    assert "its parent" not in text


def test_flags_keep_tags_of_a_type_that_is_here_and_left_out(move, moved):
    def edit(answers, recording):
        answers["/api/admin/tag-types"]["tagTypes"][-1]["description"] = "edited there"

    status, text = move(edit, "--leave-out", "tag-type:team")
    assert (status, "flag " in text) == (0, False), text
    assert Flag.objects.filter(tags__value="blue").count() == 32
    assert TagType.objects.get(name="team").description != "edited there"


def test_what_is_not_there_is_named(move, moved):
    status, text = move(nothing, "--leave-out", "nobody", "--leave-out", "segment:none")
    assert status == 0
    assert "note     flag nobody: is to be left out, and is not there" in text
    assert "note     segment none: is to be left out, and is not there" in text
