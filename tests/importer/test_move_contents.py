"""`manage.py move`: what another Unleash may have that the recorded one has not."""

import json
from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.installation.models import Installation
from groups.access import Caller
from groups.models import ApiToken
from importer.moving.reading import source
from projects.installation.actions import set_frontend_origins
from projects.models import (
    ContextField,
    Flag,
    FlagLink,
    Project,
    ProjectEnvironment,
    Segment,
    Strategy,
    StrategyType,
)
from releases.models import ReleasePlan, ReleaseTemplate
from releases.plans.actions import resume_plan
from releases.plans.queries import FlagPath
from tests.support.generated_unleash import make_recording
from tests.support.moving import add, run_changed, run_step
from tests.support.recorded_unleash import replayed

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made_up():
    return make_recording(8)


@pytest.fixture
def move(made_up, capsys, monkeypatch):
    """Moves the installation after ``change`` has had its answers by path. Returns exit status and text of each run."""
    monkeypatch.setattr(source, "WAIT", 0)

    return partial(run_changed, made_up, capsys)


@pytest.fixture
def moved(move):
    """Moves, finds nothing more to move afterwards, and returns what the move printed."""

    def moved(change):
        (status, text), (again, later) = move(change, steps=("apply", "plan"))
        assert (status, again) == (0, 0), text + later
        return text

    return moved


def test_a_private_project_is_private_here_from_the_start(moved):
    def change(answers, recording):
        answers["/api/admin/projects/p0/overview"]["mode"] = "private"

    text = moved(change)
    assert "members of private project p0" in text
    assert list(Project.objects.filter(mode="private").values_list("pk", flat=True)) == ["p0"]
    [created] = AuditEvent.objects.filter(type="project-created", project="p0")
    assert created.after["mode"] == "private"


def test_nulls_are_members_that_are_not_there(move):
    def change(answers, recording):
        answers["/api/admin/segments"]["segments"][0]["constraints"][0] |= {"value": None, "inverted": None}
        answers["/api/admin/context"][0] |= {"legalValues": None, "stickiness": None, "sortOrder": None}
        answers["/api/admin/environments"]["environments"][0]["sortOrder"] = None
        overview = answers["/api/admin/projects/p0/overview"]
        overview |= {"featureNaming": None, "linkTemplates": None, "defaultStickiness": None, "mode": None}
        export = answers["production p0"]
        export["featureStrategies"][0] |= {
            "constraints": None,
            "variants": None,
            "segments": None,
            "title": None,
        }
        export["links"] = export["featureTags"] = None

    status, text = move(change)
    assert status == 0, text
    assert Flag.objects.count() == 8
    assert ContextField.objects.get(name="country").legal_values == []


def test_members_of_newer_exports_are_named(move):
    def change(answers, recording):
        export = answers["production p0"]
        export["features"][0]["owner"] = "ann"
        export["featureStrategies"][0] |= {"milestoneId": "01", "empty": None}
        export["featureStrategies"][0]["constraints"][0]["note"] = "new"
        export["releasePlans"] = [{"id": "1", "featureName": "p0.flag-00000"}]

    status, text = move(change)
    assert status == 0, text
    names = "featureStrategies.constraints.note, featureStrategies.milestoneId, features.owner, releasePlans"
    assert f"parts of flags of project p0: exports have {names}, which is unknown here" in text


def test_values_that_are_no_longer_legal_or_not_readable_come_as_they_are(moved):
    def change(answers, recording):
        answers["/api/admin/context"][0]["legalValues"] = [{"value": "DE"}]
        constraint = {
            "contextName": "currentTime",
            "operator": "DATE_AFTER",
            "values": [],
            "value": "2026-01-01",
        }
        answers["/api/admin/segments"]["segments"][1]["constraints"] = [constraint]
        overview = answers["/api/admin/projects/p0/overview"]
        illegal = {"contextName": "country", "operator": "IN", "values": ["NO"]}
        overview["environments"][0]["defaultStrategy"] = {"name": "default", "constraints": [illegal]}
        answers["production p0"]["featureStrategies"][0]["constraints"] = [illegal]

    text = moved(change)
    assert "note     value that SDKs cannot read: SDKs cannot read DATE_AFTER 2026-01-01" in text
    assert Segment.objects.get(name="nordics").constraints[0]["values"] == ["NO", "SE"]
    assert ProjectEnvironment.objects.get(project="p0", environment="development").default_strategy


def test_settings_of_projects_that_are_not_possible_here_are_named(moved):
    link = {"title": "Ticket", "urlTemplate": "https://t.example/{{feature}}"}

    def change(answers, recording):
        overview = answers["/api/admin/projects/p0/overview"]
        overview["featureNaming"] = {"pattern": "^(?!old).*$", "example": "new", "description": "not old"}
        overview["defaultStickiness"] = "gone"
        overview["linkTemplates"] = [link]
        overview["environments"][0]["defaultStrategy"] = {"name": "nobodyKnows"}

    text = moved(change)
    assert "cannot   featureNaming.pattern of project p0: " in text
    assert "cannot   defaultStickiness of project p0: context field gone not found." in text
    assert (
        "cannot   default strategy of development in project p0: strategy type nobodyKnows not found" in text
    )
    project = Project.objects.get(id="p0")
    assert (project.naming_pattern, project.link_templates) == ("", [link])
    # They are for new flags: those that move have their own.
    assert not FlagLink.objects.filter(url__contains="t.example").exists()


def test_link_templates_that_are_none_are_named(moved):
    def change(answers, recording):
        overview = answers["/api/admin/projects/p0/overview"]
        overview["linkTemplates"] = [{"title": None, "urlTemplate": "javascript:{{feature}}"}]

    text = moved(change)
    assert "cannot   linkTemplates[0].urlTemplate of project p0: must be a web URL" in text


def test_strategy_types_that_were_deleted_there_come_as_deprecated_ones(moved):
    def change(answers, recording):
        types = answers["/api/admin/strategies"]
        types["strategies"] = [each for each in types["strategies"] if each["name"] != "hostGroup"]
        new = {"name": "brandNew", "editable": False, "parameters": []}
        types["strategies"].append(new)
        answers["production p0"]["featureStrategies"][0] |= {"name": "brandNew", "parameters": {"x": 5}}

    text = moved(change)
    assert "note     strategy type hostGroup: flags use it" in text
    assert "note     strategy type brandNew: is built in there and unknown here" in text
    assert StrategyType.objects.get(name="hostGroup").deprecated
    assert Strategy.objects.get(name="brandNew").parameters == {"x": "5"}


def test_a_server_that_counts_more_than_it_lists_is_not_believed(move):
    def change(answers, recording):
        for token in answers["/api/admin/api-tokens"]["tokens"]:
            token["projects"] = ["p0"]
        counts = {"projects": 4, "featureToggles": 9, "archivedFeatureToggles": 2}
        add(recording, "/api/admin/instance-admin/statistics", counts)
        events = [{"project": "p1"}, {"project": "gone"}, {"project": None}]
        add(recording, "/api/admin/search/events?limit=1000", {"events": events})

    status, text = move(change)
    assert status == 0, text
    assert Project.objects.filter(id="p1").exists()
    for missing in ("2 more projects", "3 more flags"):
        assert f"cannot   {missing}: are there and not listed: name their projects with --project" in text
    assert "archived flags:" not in text


def test_an_older_version_says_what_it_does_not_list(move):
    def change(answers, recording):
        answers["/api/admin/ui-config"]["version"] = "6.0.1"
        listed = answers["/api/admin/projects/p0/features"]
        found = answers["/api/admin/search/features?project=IS:p0&archived=IS:true&limit=100"]
        found["features"] = listed["features"]
        found["total"] = len(listed["features"])
        for environment in ("development", "staging", "production"):
            export = answers[f"{environment} p0"]
            export["features"] = export["features"][:-1]
            gone = f"p0.flag-{6:05}"
            for part, key in (
                ("featureStrategies", "featureName"),
                ("featureEnvironments", "featureName"),
                ("featureTags", "featureName"),
            ):
                export[part] = [each for each in export[part] if each[key] != gone]

    status, text = move(change)
    assert status == 0, text
    assert "note     Unleash 6.0.1: moves have been tried with Unleash 8." in text
    assert "cannot   archived flags of project p0: Unleash 6.0.1 does not list them" in text


def test_release_templates_come_once(moved):
    strategy = {
        "strategyName": "flexibleRollout",
        "sortOrder": 0,
        "title": "",
        "parameters": {"groupId": "{{featureName}}", "rollout": "25", "stickiness": "default"},
        "segments": [41],
    }
    template = {
        "id": "01KC6TD3HASJWRPMKT1ACY8M3A",
        "name": "Careful",
        "description": None,
        "milestones": [
            {"id": "01KC6VHE9VYKDN12C5VASZ5GQY", "name": "All", "sortOrder": 1, "strategies": []},
            {
                "id": "01KC6VHE9VB6YX6B3QVJ6J8M7D",
                "name": "Few",
                "sortOrder": 0,
                "strategies": [strategy | {"id": "01KC6VJDDYAYBRCZT92YFF1H5Q"}],
                "transitionCondition": {"intervalMinutes": 60},
            },
        ],
    }

    def change(answers, recording):
        broken = {"name": "Broken", "milestones": [{"name": "x", "strategies": [{"strategyName": "gone"}]}]}
        archived = {"name": "Old", "archivedAt": "2026-01-01T00:00:00Z"}
        add(recording, "/api/admin/release-plan-templates", [template, template, broken, archived])

    text = moved(change)
    assert "create   release template Careful" in text
    assert "cannot   release template Careful: another one there has the same name" in text
    assert "cannot   release template Broken: strategy type gone not found" in text
    few, _ = ReleaseTemplate.objects.get().milestones.all()
    assert (few.name, few.transition) == ("Few", {"intervalMinutes": 60})
    [stored] = few.strategies
    assert stored["parameters"] == {"rollout": "25", "stickiness": "default"}
    assert stored["segments"] == [Segment.objects.get(name="nordics").pk]


def test_release_plans_that_the_log_names_come_once_and_wait(moved, move):
    """What would go on by itself is paused: it goes on there."""
    flag = "p0.flag-00002"

    def change(answers, recording):
        [stored] = [
            each for each in answers["production p0"]["featureStrategies"] if each["featureName"] == flag
        ]
        stored["parameters"] = stored["parameters"] | {"groupId": ""}
        first = stored | {"strategyName": stored["name"], "sortOrder": 0, "title": None}
        named = stored["parameters"] | {"rollout": "90", "groupId": "{{featureName}}"}
        then = first | {"parameters": named, "id": "then"}
        plan = {
            "id": "01KC6TD3HASJWRPMKT1ACY8M3B",
            "name": "Careful",
            "featureName": flag,
            "environment": "production",
            "activeMilestoneId": "few",
            "releasePlanTemplateId": "template",
            "milestones": [
                {
                    "id": "few",
                    "name": "Few",
                    "sortOrder": 0,
                    "strategies": [first],
                    "startedAt": "2026-11-20T10:00:00Z",
                    "transitionCondition": {"intervalMinutes": 60},
                },
                {"id": "most", "name": "Most", "sortOrder": 1, "strategies": [then]},
            ],
        }
        add(
            recording,
            "/api/admin/release-plan-templates",
            [{"id": "template", "name": "T", "milestones": []}],
        )
        event = {
            "type": "release-plan-added",
            "project": "p0",
            "featureName": flag,
            "environment": "production",
        }
        path = "/api/admin/search/events?type=IS:release-plan-added&limit=1000&offset=0"
        add(recording, path, {"events": [event, event, event | {"featureName": "gone"}], "total": 3})
        path = f"/api/admin/projects/p0/features/{flag}/environments/production/release-plans"
        add(recording, path, [plan])

    text = moved(change)
    assert f"create   release plan Careful of {flag} in production: Moved here, where its next" in text
    plan = ReleasePlan.objects.get()
    assert (plan.state, plan.active.name, plan.look_at) == ("paused", "Few", None)
    groups = [each.strategies[0]["parameters"]["groupId"] for each in plan.milestones.all()]
    assert groups == ["", flag]
    assert plan.strategy_ids == [str(Strategy.objects.get(flag__name=flag, environment="production").pk)]
    resume_plan(FlagPath("p0", flag, "production"), plan.pk, caller=Caller.system())
    assert ReleasePlan.objects.get().look_at is not None
    ReleasePlan.objects.get().delete()
    status, text = move(change, "--leave-out", flag)
    assert (status, "release plan" in text) == (0, False)


def test_dates_that_lists_have_come_over_the_api(moved):
    def change(answers, recording):
        flag = answers["/api/admin/projects/p0/features"]["features"][0]
        flag["createdAt"] = "2024-05-06T07:08:09.000Z"
        flag["environments"][0]["lastSeenAt"] = "2025-05-06T07:08:09.000Z"

    moved(change)
    flag = Flag.objects.get(name="p0.flag-00000")
    assert flag.created_at.year == 2024
    assert flag.last_seen.get().seen_at.year == 2025


def test_people_with_a_custom_root_role_are_named(move):
    def change(answers, recording):
        answers["/api/admin/user-admin"]["users"][0]["rootRole"] = 99

    status, text = move(change)
    assert status == 0, text
    assert "cannot   root role of person1@example.com: is a custom one, which only --database brings" in text


def test_json_of_reports_has_all_of_this(move):
    status, text = move(lambda answers, recording: None, "--json", steps=("plan",))
    assert status == 2
    assert {line["kind"] for line in json.loads(text)["lines"]} >= {"create", "cannot"}


def test_a_flag_that_is_on_without_an_active_strategy_stays_on_for_everybody(move):
    def change(answers, recording):
        overview = answers["/api/admin/projects/p0/overview"]
        for used in overview["environments"]:
            used["defaultStrategy"] = {"name": "flexibleRollout", "parameters": {"rollout": "25"}}
        export = answers["production p0"]
        name = export["features"][0]["name"]
        switch = next(each for each in export["featureEnvironments"] if each["featureName"] == name)
        switch["enabled"] = True
        for strategy in export["featureStrategies"]:
            strategy["disabled"] = strategy.get("disabled", False) or strategy["featureName"] == name
        names.append(name)

    names = []
    (status, text), (_, again) = move(change, steps=("apply", "plan"))
    assert status == 0, text
    [name] = names
    [strategy] = Strategy.objects.filter(flag__name=name, environment="production", disabled=False)
    assert (strategy.name, strategy.constraints, strategy.parameters) == ("default", [], {})
    assert f"flag {name} in production: is on without an active strategy" in text
    assert f"flag {name} in production: strateg" not in again


UNEQUAL: list[dict[str, Any]] = [
    {"name": "z", "weight": 300, "weightType": "fix", "stickiness": "userId"},
    {"name": "a", "weight": 100},
]
"""Variants whose weights do not add up to 1000, in another order than that of their names."""
ODD: dict[str, dict[str, Any]] = {
    "p0.flag-00000": {"parameters": {"rollout": "50", "groupId": "", "stickiness": "userId"}},
    "p0.flag-00002": {"parameters": {"rollout": "50"}},
    "p0.flag-00004": {"parameters": {"rollout": "100", "stickiness": "userId"}, "variants": UNEQUAL},
    "p1.flag-00001": {"parameters": {"rollout": "50", "groupId": "g", "stickiness": ""}},
    "p1.flag-00003": {"parameters": {"groupId": "g", "stickiness": "userId"}},
}
"""What people wrote into strategies before they were checked there."""


def test_users_keep_what_strategies_without_group_stickiness_or_whole_weights_give_them(move):
    def make_odd(first, name):
        if name in ODD:
            first |= {"constraints": [], "variants": [], **ODD[name]}

    def change(answers, recording):
        for project in ("p0", "p1"):
            export = answers[f"production {project}"]
            for strategy in export["featureStrategies"]:
                if strategy["id"].endswith("/0"):
                    make_odd(strategy, strategy["featureName"])
            for entry in export["featureEnvironments"]:
                entry["variants"] = UNEQUAL if entry["featureName"] == "p1.flag-00005" else []
        for request in recording["requests"]:
            of_production = request["token"] in ("p0-production", "p1-production", "all", "several")
            for flag in request["answer"]["features"] if of_production else ():
                make_odd(flag["strategies"][0], flag["name"])
                flag["variants"] = UNEQUAL if flag["name"] == "p1.flag-00005" else []

    results = move(change, "--users", "500", steps=("apply", "plan", "prove"))
    assert [status for status, _ in results] == [0, 0, 0], results[2][1]
    assert "note     p1 / production: p1.flag-00003: SDKs read the percentage" in results[0][1]
    stored = {
        each.flag.name: each
        for each in Strategy.objects.filter(
            flag__in=Flag.objects.filter(name__in=ODD), environment="production"
        )
    }
    assert stored["p0.flag-00002"].parameters["stickiness"] == "default"  # not the project's
    assert [each["weight"] for each in stored["p0.flag-00004"].variants] == [300, 100]


def test_origins_of_the_frontend_api_come_unless_they_were_edited_here(made_up, capsys):
    recording = deepcopy(made_up)
    [settings] = [each for each in recording["requests"] if each["path"] == "/api/admin/ui-config"]
    settings["answer"]["frontendApiOrigins"] = ["https://app.example.com"]
    subject = "origins that may call the frontend API"
    with replayed(recording) as replay:
        status, text = run_step("apply", replay.address, capsys)
        assert (status, f"change   {subject}: * → https://app.example.com" in text) == (0, True), text
        assert Installation.objects.get().frontend_origins == ["https://app.example.com"]
        assert run_step("plan", replay.address, capsys)[0] == 0
        set_frontend_origins(["https://other.example.com"], caller=Caller.system())
        status, text = run_step("apply", replay.address, capsys)
    assert (status, f"conflict {subject}: was edited here" in text) == (2, True), text
    assert Installation.objects.get().frontend_origins == ["https://other.example.com"]


def test_banners_are_named(move):
    def change(answers, recording):
        add(recording, "/api/admin/banners", {"banners": [{"id": 1, "message": "Freeze on Friday"}]})

    assert "cannot   banner 'Freeze on Friday': flagadmin's console has none" in move(change)[1]


def test_aliases_and_secrets_without_their_scope_work_as_before(move, client):
    alias, old = "an-old-proxy-secret", "0123456789abcdef" * 4

    def change(answers, recording):
        for token in answers["/api/admin/api-tokens"]["tokens"]:
            if token["tokenName"] == "browser":
                token["alias"] = alias
            elif token["tokenName"] == "all":
                token["alias"] = "short"
            elif token["tokenName"] == "p1-staging":
                token["secret"] = recording["tokens"][token["tokenName"]] = old
            elif token["tokenName"] == "p1-development":
                token |= {"secret": f"{old}0", "environment": "*"}

    results = move(change, "--users", "100", steps=("apply", "plan", "prove"))
    assert [status for status, _ in results] == [0, 0, 0], results
    text, proof = results[0][1], results[2][1]
    assert "token alias of all (production): is not here: applications that use it" in proof
    assert "alias of browser" not in proof
    assert "create   alias of token browser: frontend, production, with its secret" in text
    assert "cannot   alias of token all: has fewer than 16 characters" in text
    assert "create   token p1-staging: backend, staging, with its secret" in text
    assert "cannot   token p1-development: is for all environments" in text
    for path, secret in (("/api/frontend", alias), ("/api/client/features", old)):
        assert client.get(path, headers={"Authorization": secret}).status_code == 200, path
    assert {*ApiToken.objects.values_list("alias", flat=True)} == {None}
    assert not ApiToken.objects.filter(prefix__contains=alias).exists()
