"""Who gets something else after an import: in the preview, on a page of its own."""

import csv
import json
import re
from typing import Any

import pytest

from importer.apply.execute import import_body
from importer.body.schemas import read_body
from importer.effects import compare_plan, plan_states
from importer.openapi import SECTIONS
from importer.plan.build import plan_import
from playground.comparison.compare import Change, Comparison
from playground.comparison.who_changes import MAX_USERS
from playground.snapshot_cache import load_snapshot
from projects.models import Dependency, Flag
from tests.support.cast import make_project
from tests.support.flags import depend, make_flag
from tests.support.import_bodies import body, strategy, switch

pytestmark = pytest.mark.django_db


NORWAY = {"contextName": "country", "operator": "IN", "values": ["NO"]}


def half(name: str, percent: int = 50) -> dict[str, Any]:
    parameters = {"rollout": str(percent), "stickiness": "userId", "groupId": name}
    return {"name": "flexibleRollout", "parameters": parameters}


def stored(name: str, percent: int = 50) -> Flag:
    return make_flag(name, enabled=True, strategies=[half(name, percent)])


def changed(callers: Any, *names: str, percent: int = 75, flag: str = "", **data: Any) -> Any:
    strategies = [half(name, percent) | {"featureName": name} for name in names]
    data = {"featureStrategies": strategies, "featureEnvironments": [switch(name) for name in names]} | data
    plan = plan_import(read_body(body(*names, **data)), caller=callers("admin"))
    assert plan.can_be_applied, plan.issues
    return compare_plan(plan_states(plan), caller=callers("admin"), flag=flag)


def test_a_raised_rollout_turns_a_quarter_on(callers: Any, shop: Any) -> None:
    stored("checkout")
    stored("other")
    comparison = changed(callers, "checkout")
    [flag] = comparison.flags
    assert (flag.name, flag.project, comparison.users, comparison.total) == ("checkout", "shop", MAX_USERS, 1)
    assert 2_300 < flag.counts[Change.OFF_TO_ON] == flag.users == comparison.affected < 2_700
    assert 0.47 < flag.on_before < 0.53
    assert 0.72 < flag.on_after < 0.78


def test_users_are_the_same_for_one_flag_as_for_all(callers: Any, shop: Any) -> None:
    stored("checkout")
    stored("search")
    all_flags = changed(callers, "checkout", "search").flags
    [one_flag] = changed(callers, "checkout", "search", flag="checkout").flags
    assert {flag.name: flag.counts for flag in all_flags}["checkout"] == one_flag.counts


def test_is_what_the_import_then_does(callers: Any, shop: Any) -> None:
    old, parent = stored("old", 100), stored("parent")
    Dependency.objects.create(flag=stored("child", 100), parent=parent, enabled=True, variants=[])
    parsed = read_body(
        body(
            *("parent", "new"),
            features=[{"name": "parent"}, {"name": "new"}, {"name": old.name, "archived": True}],
            featureStrategies=[half("parent", 80) | {"featureName": "parent"}, strategy("new", segments=[5])],
            featureEnvironments=[switch("parent"), switch("new")],
            segments=[{"id": 5, "name": "vip", "constraints": [NORWAY]}],
        )
    )
    states = plan_states(plan_import(parsed, caller=callers("admin")))
    comparison = compare_plan(states, caller=callers("admin"))
    assert {flag.name for flag in comparison.flags if flag.users} == {"old", "child", "parent", "new"}
    import_body(parsed, caller=callers("admin"))
    now = load_snapshot(["shop"], "development").snapshot
    after = Comparison(comparison.comparison.after, now, comparison.comparison.table)
    for name in after.names():
        assert after.flag(name).changed == 0, name


def test_what_no_user_meets_is_found_by_the_rules(callers: Any, shop: Any) -> None:
    needs = [
        {"contextName": f"field-{number}", "operator": "IN", "values": [str(number)]} for number in range(16)
    ]
    narrow = half("narrow", 100) | {"featureName": "narrow", "constraints": needs}
    fields = [{"name": need["contextName"]} for need in needs]
    comparison = changed(callers, "narrow", "a", featureStrategies=[narrow], contextFields=fields)
    flag = {flag.name: flag for flag in comparison.flags}["narrow"]
    assert (flag.users, flag.on_after) == (0, 0)
    assert flag.made > 0
    [example, *_] = comparison.examples(flag, [Change.OFF_TO_ON])
    context = flag.source.table.contexts[example.position]
    assert all(context.fields[need["contextName"]] == need["values"][0] for need in needs)


def test_what_evaluates_the_same_is_not_compared(callers: Any, shop: Any) -> None:
    stored("checkout")
    comparison = changed(
        callers, "checkout", percent=50, features=[{"name": "checkout", "description": "A new text"}]
    )
    assert (comparison.total, comparison.flags) == (0, [])


# Pages -----------------------------------------------------------------------------------------------------


def made(browse: Any, *names: str, **parts: Any) -> tuple[Any, str]:
    """A pending import of new flags, on for half of the users."""
    strategies = [half(name) | {"featureName": name} for name in names]
    switches = [switch(name) for name in names]
    data = body(*names, **{"featureStrategies": strategies, "featureEnvironments": switches} | parts)["data"]
    browser = browse("member")
    sent = {"text": json.dumps(data), "project": "shop", "environment": "production"}
    return browser, f"{browser.post('/import/', sent)['Location']}who-changes/"


def test_the_preview_asks_for_it_and_links_to_it(browse: Any) -> None:
    browser, url = made(browse, "a", "b")
    page = browser.get(url.removesuffix("who-changes/"))
    assert f'hx-get="{url}" hx-trigger="load"' in page.text
    assert f'<a href="{url}">Compare</a>' in page.text
    part = browser.get(url, headers={"HX-Request": "true", "HX-Target": "who-changes"}).text
    assert re.search(
        r"</strong> of 10,000 generated users get a different result from <strong>2 flags</strong>\.", part
    )
    assert re.search(r"[45],\d\d\d of 10,000 users off → on", part)
    assert "<html" not in part
    assert not Flag.objects.exists()


def test_nobody_changes(browse: Any) -> None:
    browser, url = made(browse, "a", featureStrategies=[], featureEnvironments=[])
    part = browser.get(url, headers={"HX-Request": "true", "HX-Target": "who-changes"}).text
    assert "No change for 10,000 generated users: 1 changed flag gives the same results." in part


def test_the_page_has_numbers_and_examples_with_reasons(browse: Any) -> None:
    browser, url = made(browse, "a", "b")
    page = browser.get(url).text
    assert "2 of 2 flags change" in page
    assert "The flag does not exist, or is archived" in page
    assert "50 % rollout" in page
    assert f'href="{url.removesuffix("who-changes/")}evaluate/?context.userId=' in page


def test_one_flag_paged_and_as_csv(browse: Any) -> None:
    browser, url = made(browse, "a", "b")
    page = browser.get(f"{url}?only=a").text
    assert re.search(r"1–50 of [45],\d\d\d", page)
    lines = b"".join(browser.get(f"{url}?only=a&format=csv").streaming_content).decode().splitlines()
    rows = list(csv.DictReader(lines))
    assert f"1–50 of {len(rows):,}" in page
    assert {row["Change"] for row in rows} == {"off → on"}
    assert browser.get(f"{url}?only=nosuch").status_code == 404


def test_all_flags_as_csv(browse: Any) -> None:
    browser, url = made(browse, "a", "b")
    lines = b"".join(browser.get(f"{url}?q=a&format=csv").streaming_content).decode().splitlines()
    [row] = csv.DictReader(lines)
    assert row["Flag"] == "a"
    assert row["Change"] == row["Off → on"]


def test_filters(browse: Any) -> None:
    browser, url = made(browse, "a", "b")
    assert "No flags match these filters." in browser.get(f"{url}?change=onToOff").text
    assert 'id="who-b"' not in browser.get(f"{url}?q=a").text
    assert browser.get(f"{url}?change=nosuch").status_code == 400


def test_only_for_the_pending_import_of_oneself(browse: Any) -> None:
    _, url = made(browse, "a")
    assert browse("editor").get(url).status_code == 404


# API -------------------------------------------------------------------------------------------------------

COMPARE = "/api/admin/features-batch/compare"


def sent(name: str, percent: int = 75) -> dict[str, Any]:
    data = {
        "featureStrategies": [half(name, percent) | {"featureName": name}],
        "featureEnvironments": [switch(name)],
    }
    return body(name, **data)


def test_the_api_says_who_changes(api: Any, shop: Any) -> None:
    stored("checkout")
    response = api["viewer"].post(f"{COMPARE}?synthetic=400&limit=1", sent("checkout"))
    assert response.status_code == 200, response.content
    answer = response.json()
    [flag], [example] = answer["flags"], answer["examples"]
    changed = answer["counts"]["offToOn"]
    assert 70 < changed < 130
    assert answer["contexts"] == 400 == changed + answer["counts"]["unchanged"]
    assert flag["name"] == example["flag"] == "checkout"
    assert example["change"] == "offToOn"
    assert example["after"]["reason"].endswith("75 % rollout")
    assert response.json() == api["viewer"].post(f"{COMPARE}?synthetic=400&limit=1", sent("checkout")).json()
    assert not Flag.objects.exclude(name="checkout").exists()


@pytest.mark.parametrize(
    ("query", "document", "path"),
    [
        ("?synthetic=0", sent("a"), "synthetic"),
        ("?seed=x", sent("a"), "seed"),
        ("", sent("bad name"), "data.features[0].name"),
        ("", {"project": "shop"}, "environment"),
    ],
)
def test_what_the_api_refuses(api: Any, shop: Any, query: str, document: Any, path: str) -> None:
    response = api["viewer"].post(COMPARE + query, document)
    assert response.status_code == 400
    assert path in [problem["path"] for problem in response.json()["details"]]


def test_too_many(api: Any, shop: Any) -> None:
    names = [f"flag-{number:03}" for number in range(101)]
    document = body(
        *names,
        featureStrategies=[strategy(name) for name in names],
        featureEnvironments=[switch(name) for name in names],
    )
    response = api["viewer"].post(f"{COMPARE}?synthetic=10000", document)
    assert response.status_code == 400
    assert "101 flags × 10,000 users" in response.text


def test_only_who_reads_the_project(api: Any, shop: Any) -> None:
    document = sent("a") | {"project": make_project("vault").id}
    assert api["member"].post(COMPARE, document).status_code == 404
    assert api["admin"].post(COMPARE, document | {"project": "nosuch"}).status_code == 404
    assert api["admin"].post(COMPARE, document).status_code == 200


def test_the_example_in_the_api_description(api: Any) -> None:
    make_project("checkout")
    answer = api["admin"].post(f"{COMPARE}?limit=1", SECTIONS["Example of an import"]).json()
    assert answer == SECTIONS["Example of a comparison"]


def test_flags_that_only_depend_on_those_of_the_file_are_counted(browse: Any) -> None:
    parent = make_flag("parent", environment="production", strategies=[{}])
    child = make_flag("child", environment="production", enabled=True, strategies=[{}])
    depend(child, parent)
    browser, url = made(browse, "parent")
    part = browser.get(url, headers={"HX-Request": "true", "HX-Target": "who-changes"}).text
    assert "<strong>2 flags</strong> (1 in the file, 1 that depends on it)" in part
