"""What saved contexts expect: how it is stored, checked and reported, and what a draft would do to it."""

from typing import Any
from xml.etree import ElementTree

import pytest

from groups.access import Caller
from playground.comparison.draft import DraftState
from playground.comparison.states import StatePair, Stored
from playground.models import SavedContext
from playground.saved_contexts.checks import list_lines, summarize, write_junit
from playground.saved_contexts.effects import find_effects
from playground.saved_contexts.expectations import check_expectations, list_expectations
from projects.drafts import Draft
from projects.models import Environment, Flag
from projects.revision import read_revisions
from tests.support.cast import make_project
from tests.support.flags import depend
from tests.support.for_each import for_each
from tests.support.playground import live_flag
from tests.support.records import events, refused

URL = "/api/admin/playground/contexts"
CHECK = "/api/admin/playground/check-expectations"
BLUE = [
    {"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default"},
]


def expected(flag: str, enabled: bool = True, variant: str | None = None, environment: str = "production"):
    return {"flag": flag, "environment": environment, "enabled": enabled, "variant": variant}


def rollout(percent: int, stickiness: str = "userId") -> dict[str, Any]:
    parameters = {"rollout": str(percent), "stickiness": stickiness, "groupId": "dark-theme"}
    return {"name": "flexibleRollout", "parameters": parameters}


@pytest.fixture
def dark(shop):
    """On for buckets up to 50; user 42 is in 53, user 7 within."""
    return live_flag("dark-theme", strategies=[rollout(50)])


def persona(name: str, user: str, *expectations: dict[str, Any], project: str | None = None) -> SavedContext:
    return SavedContext.objects.create(
        name=name, context={"userId": user}, project_id=project, expectations=list(expectations)
    )


def results(who: Any = None) -> list[tuple[str, bool, str]]:
    caller = who or Caller.system()
    found = check_expectations(caller, list_expectations(caller))
    return [(one.expectation.flag, one.met, one.actual) for one in found]


def test_met_and_not_met(dark):
    live_flag("gift", variants=BLUE)
    persona("Ada", "42", expected("dark-theme", enabled=False), expected("gift", variant="blue"))
    persona("Bea", "42", expected("dark-theme"), expected("gift", variant="green"), expected("gift", False))
    assert results() == [
        ("dark-theme", True, "off"),
        ("gift", True, "on, variant blue"),
        ("dark-theme", False, "off"),
        ("gift", False, "on, variant blue"),
        ("gift", False, "on, variant blue"),
    ]


def test_chance_and_what_only_an_sdk_can_tell_meet_nothing(shop):
    live_flag("random", strategies=[rollout(30, "random")])
    live_flag("moon", strategies=[{"name": "moon"}])
    persona("Ada", "42", expected("random"), expected("moon"))
    persona("Bea", "42", expected("random", False), expected("moon", False))
    assert {met for _, met, _ in results()} == {False}
    assert results()[0][2] == "off for 70 % of calls; on for 30 % of calls"


def test_parents_count(dark):
    depend(live_flag("child"), dark)
    persona("Ada", "42", expected("child", False))
    persona("Bea", "7", expected("child"))
    assert [met for _, met, _ in results()] == [True, True]


def test_a_flag_that_is_gone_is_off(dark):
    persona("Ada", "7", expected("dark-theme"), expected("gone", False))
    dark.delete()
    caller = Caller.system()
    first, second = check_expectations(caller, list_expectations(caller))
    assert (first.met, first.reason) == (False, "The flag does not exist, or is archived")
    assert second.met


def test_the_time_is_now_unless_the_context_says(shop):
    after = {"contextName": "currentTime", "operator": "DATE_AFTER", "value": "2030-01-01T00:00:00Z"}
    live_flag("later", strategies=[{"name": "default", "constraints": [after]}])
    persona("Now", "1", expected("later", False))
    later = persona("Later", "1", expected("later"))
    SavedContext.objects.filter(pk=later.pk).update(context={"currentTime": "2031-01-01T00:00:00Z"})
    assert [met for _, met, _ in results()] == [True, True]


def test_expectations_by_the_api(api, dark):
    body = {"name": "Ada", "project": "shop", "context": {"userId": "42"}}
    wanted = [{"flag": "dark-theme", "environment": "production", "enabled": True}]
    made = api["member"].post(URL, body | {"expectations": wanted}).json()
    assert made["expectations"] == [expected("dark-theme") | {"enforcedIn": "shop"}]
    assert api["member"].put(f"{URL}/{made['id']}", {"note": "x"}).json()["expectations"]
    changed = api["member"].put(f"{URL}/{made['id']}", {"expectations": []}).json()
    assert changed["expectations"] == []
    assert events("saved-context-updated")[-1].before["expectations"] == made["expectations"]


@for_each(
    ("expectation", "path"),
    [
        (expected("nowhere"), "expectations[0].flag"),
        (expected("in-docs"), "expectations[0].flag"),
        (expected("dark-theme", environment="moon"), "expectations[0].environment"),
        (expected("dark-theme", False, "blue"), "expectations[0].variant"),
        (expected("dark-theme") | {"result": "on"}, "expectations[0].result"),
    ],
)
def test_refused(api, dark, expectation, path):
    make_project("docs")
    live_flag("in-docs", "docs")
    body = {"name": "Ada", "project": "shop", "context": {}, "expectations": [expectation]}
    assert refused(api["admin"].post(URL, body), 400, "ValidationError")["details"][0]["path"] == path


def test_one_for_each_flag_and_environment(api, dark):
    twice = [expected("dark-theme"), expected("dark-theme", False)]
    body = {"name": "Ada", "context": {}, "expectations": twice}
    record = refused(api["editor"].post(URL, body), 400, "ValidationError")
    assert record["details"][0]["path"] == "expectations[1]"


def test_what_has_gone_since_may_stay(api, dark):
    saved = persona("Ada", "42", expected("dark-theme"), expected("gone"), project="shop")
    kept = [expected("gone"), expected("dark-theme", False)]
    answer = api["member"].put(f"{URL}/{saved.pk}", {"expectations": kept})
    assert answer.json()["expectations"] == [one | {"enforcedIn": "shop"} for one in kept]


def test_flags_of_other_projects_are_not_told_and_not_lost(api, callers, dark):
    make_project("docs")
    live_flag("in-docs", "docs")
    everywhere = persona("Everywhere", "7", expected("dark-theme"), expected("in-docs"), expected("gone"))
    own = persona("Own", "7", expected("dark-theme"), expected("in-docs"), expected("gone"), project="shop")
    shown = api["reader"].get(URL).json()["contexts"]
    assert [[one["flag"] for one in each["expectations"]] for each in shown] == [
        ["dark-theme"],
        ["dark-theme", "gone"],
    ]
    assert {flag for flag, _, _ in results(callers("reader"))} == {"dark-theme", "gone"}
    assert len(api["viewer"].get(f"{URL}/{everywhere.pk}").json()["expectations"]) == 3
    assert api["member"].put(f"{URL}/{own.pk}", {"expectations": []}).json()["expectations"] == []
    own.refresh_from_db()
    assert own.expectations == [expected("in-docs")]


def test_checked_by_the_api(api, dark):
    persona("Ada", "42", expected("dark-theme"))
    persona("Bea", "7", expected("dark-theme"), expected("dark-theme", False, environment="development"))
    answer = api["reader"].post(CHECK, {"environments": ["production"]})
    assert answer.json() == {
        "checked": 2,
        "failed": 1,
        "expectations": [
            {
                "savedContext": "Ada",
                "project": "shop",
                **expected("dark-theme"),
                "enforcedIn": None,
                "met": False,
                "results": [{"isEnabled": False, "variant": None, "payload": None, "share": 1}],
                "reason": "userId 42 is in bucket 53 and the rollout stops at 50 %",
            },
            {
                "savedContext": "Bea",
                "project": "shop",
                **expected("dark-theme"),
                "enforcedIn": None,
                "met": True,
                "results": [{"isEnabled": True, "variant": None, "payload": None, "share": 1}],
                "reason": "userId 7 is in bucket 44, 50 % rollout",
            },
        ],
    }
    assert api["reader"].post(CHECK, {}).json()["checked"] == 3
    assert api["reader"].post(CHECK, {"contexts": ["Ada"]}).json()["checked"] == 1
    assert api["reader"].post(CHECK, {"projects": ["shop"]}).json()["checked"] == 3
    assert api["viewer"].post(CHECK, {"projects": ["default"]}).json()["checked"] == 0


@for_each(
    ("body", "path"),
    [
        ({"projects": ["docs"]}, "projects"),
        ({"environments": ["moon"]}, "environments[0]"),
        ({"contexts": ["Nobody"]}, "contexts[0]"),
        ({"project": "shop"}, "project"),
        ({"asIf": {"environment": "production", "drafts": {}}}, "asIf.drafts"),
    ],
)
def test_a_check_names_what_it_does_not_find(api, dark, body, path):
    make_project("docs")
    assert refused(api["reader"].post(CHECK, body), 400, "ValidationError")["details"][0]["path"] == path


def test_a_check_is_bounded(api, dark, monkeypatch):
    monkeypatch.setattr("playground.saved_contexts.expectations.MAX_CHECKED", 1)
    persona("Ada", "7", expected("dark-theme"), expected("dark-theme", environment="development"))
    refused(api["reader"].post(CHECK, {}), 400, "ValidationError")


def test_as_if_a_draft_were_saved(api, dark):
    persona("Bea", "7", expected("dark-theme"), expected("dark-theme", environment="development"))
    draft = {"environment": "production", "draft": {"flag": "dark-theme", "enabled": False}}
    assert api["reader"].post(CHECK, {"environments": ["production"]}).json()["failed"] == 0
    answer = api["reader"].post(CHECK, {"asIf": draft}).json()
    assert (answer["checked"], answer["failed"]) == (1, 1)
    assert answer["expectations"][0]["reason"] == "Switched off in production"
    assert api["reader"].post(CHECK, {"environments": ["production"]}).json()["failed"] == 0
    unknown = {"environment": "production", "draft": {"flag": "nowhere", "enabled": False}}
    record = refused(api["reader"].post(CHECK, {"asIf": unknown}), 400, "ValidationError")
    assert record["details"][0]["path"] == "asIf.draft.flag"
    record = refused(
        api["reader"].post(CHECK, {"asIf": draft | {"environment": "x"}}), 400, "ValidationError"
    )
    assert record["details"][0]["path"] == "asIf.environment"


def test_the_number_of_queries_does_not_grow(dark, django_assert_max_num_queries):
    for number in range(20):
        live_flag(f"flag-{number}")
        persona(f"User {number}", str(number), expected(f"flag-{number}"), expected("dark-theme"))
    with django_assert_max_num_queries(20):
        assert len(results()) == 40


def test_reports(dark):
    persona("Ada", "42", expected("dark-theme"))
    persona("Bea\x01", "7", expected("dark-theme"))
    found = check_expectations(Caller.system(), list_expectations(Caller.system()))
    assert summarize(found) == "1 of 2 expectations is not met"
    assert list(list_lines(found)) == [
        "FAIL  production  dark-theme  Ada   expected on",
        "      is off: userId 42 is in bucket 53 and the rollout stops at 50 %",
        "ok    production  dark-theme  Bea\x01  expected on",
    ]
    suites = ElementTree.fromstring(write_junit(found))
    [suite] = suites
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("production", "2", "1")
    ada, bea = suite
    assert ada.get("classname") == "shop.dark-theme"
    assert ada.find("failure").get("message") == "dark-theme is off in production for Ada, expected on"
    assert bea.get("name") == "Bea�: dark-theme is on"
    assert bea.find("failure") is None


def test_no_reports_without_expectations():
    assert summarize([]) == "There are no expectations"
    assert list(list_lines([])) == []
    assert len(ElementTree.fromstring(write_junit([]))) == 0


# What a change would do -------------------------------------------------------------------------------------


def effects(caller: Caller, flags: Any = None, **changes: Any):
    draft = DraftState("production", Draft("dark-theme", **changes))
    pair = StatePair(read_revisions(caller.readable_projects), Stored("production"), draft)
    return find_effects(caller, *pair.snapshots, flags=flags)


def test_what_a_draft_breaks_and_mends(callers, dark):
    persona("Ada", "42", expected("dark-theme"))
    persona("Bea", "7", expected("dark-theme"), expected("dark-theme", environment="development"))
    persona("Carl", "7", expected("dark-theme", False), project="shop")
    persona("Dora", "7")

    found = effects(callers("reader"), changes={"enabled": False})

    assert len(found.who) == 3
    assert [(one.saved.name, one.flag, *one.words) for one in found.changes] == [
        ("Bea", "dark-theme", "on", "off"),
        ("Carl", "dark-theme", "on", "off"),
        ("Dora", "dark-theme", "on", "off"),
    ]
    assert [one.sentence for one in found.broken] == ["dark-theme is off in production for Bea, expected on"]
    assert [one.expectation.saved.name for one in found.mended] == ["Carl"]
    assert found.changes[0].after.reason == "Switched off in production"


def test_what_changes_nothing_has_no_effects(callers, dark):
    persona("Ada", "42", expected("dark-theme"))
    assert not effects(callers("reader"), changes={})
    assert not effects(callers("outsider"), changes={})


def test_children_and_archiving(callers, dark):
    depend(live_flag("child"), dark)
    persona("Bea", "7", expected("child"))
    found = effects(callers("reader"), archived=True)
    assert [one.expectation.flag for one in found.broken] == ["child"]
    assert len(found.who) == 1


def test_the_prediction_is_what_comes(callers, dark):
    """What a draft would break is what fails once it is saved."""
    users = [str(number) for number in range(30)]
    for user in users:
        persona(f"User {user}", user, expected("dark-theme"))
    before = {flag for flag, met, _ in results() if not met}
    assert before == {"dark-theme"}
    failing = [one for one in results() if not one[1]]
    predicted = effects(callers("admin"), changes={"strategies": [], "enabled": False})
    Flag.objects.get(name="dark-theme").environments.update(enabled=False)
    assert len([one for one in results() if not one[1]]) == len(failing) + len(predicted.broken)
    assert Environment.objects.exists()
