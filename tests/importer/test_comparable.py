"""Imports that are not applied, compared with any other state: in the playground and through the API."""

import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.conf import LazySettings

from importer.models import ImportRun
from playground.models import SavedContext
from projects.models import Flag, FlagEnvironment
from tests.support.cast import make_project
from tests.support.import_bodies import body, strategy, switch
from tests.support.page_text import page_text
from tests.support.playground import live_flag
from tests.support.records import refused

pytestmark = pytest.mark.django_db
PAGE, API = "/playground/who-changes/", "/api/admin/playground/compare"
SEVEN = {"contextName": "userId", "operator": "IN", "values": ["7"]}


@pytest.fixture
def cart(shop: Any) -> Flag:
    """On for everybody in production, off in development; `other` is on in production."""
    live_flag("other")
    return live_flag("cart")


def uploaded(browser: Any, *names: str, **data: Any) -> str:
    """The id of an import that is previewed: these flags for user 7 only."""
    data = {
        "featureStrategies": [strategy(name, name="default", constraints=[SEVEN]) for name in names],
        "featureEnvironments": [switch(name) for name in names],
    } | data
    sent = body(*names, environment="production", **data)
    form = {"text": json.dumps(sent), "project": "shop", "environment": "production"}
    return str(browser.post("/import/", form)["Location"]).split("/")[2]


def ask(browser: Any, run: str, **query: Any) -> Any:
    parameters = {"from": "production", "to": f"import:{run}", "users": 500} | query
    return browser.get(f"{PAGE}?{urlencode(parameters)}")


def compare(client: Any, before: Any, after: Any, **body: Any) -> Any:
    sent = {"from": before, "to": after, "contexts": {"explicit": [{"userId": "7"}, {"userId": "42"}]}}
    return client.post(API, sent | body)


def test_an_import_is_offered_and_compared_with_the_present(browse: Any, cart: Flag) -> None:
    browser = browse("admin")
    run = uploaded(browser, "cart", "fresh")
    offered = unescape(browser.get(PAGE).text)
    assert f'<option value="import:{run}">shop / production: pasted, ' in offered

    page = ask(browser, run)
    text = page_text(page)
    assert "2 of 3 flags change" in text
    assert f'<option value="import:{run}" selected>' in page.text
    assert f"/import/{run}/evaluate/?context.userId=" in unescape(page.text)
    assert FlagEnvironment.objects.get(flag__name="cart", environment="production").enabled
    assert not Flag.objects.filter(name="fresh").exists()


def test_with_another_environment_and_the_other_way_around(browse: Any, cart: Flag) -> None:
    browser = browse("admin")
    run = uploaded(browser, "cart")
    assert "off → on" in page_text(ask(browser, run, **{"from": "development"}))
    swapped = ask(browser, run, **{"from": f"import:{run}", "to": "production"})
    assert "off → on" in page_text(swapped)
    assert "No change" in page_text(ask(browser, run, **{"from": f"import:{run}"}))


def test_by_api_with_the_past(api: Any, browse: Any, cart: Flag) -> None:
    run = uploaded(browse("admin"), "cart")
    created = Flag.objects.get(name="cart").created_at
    then = {"environment": "production", "at": created.isoformat()}
    for before in ({"environment": "production"}, then):
        answer = compare(api["admin"], before, {"import": run}).json()
        [changed_flag] = [entry for entry in answer["flags"] if entry["name"] == "cart"]
        assert changed_flag["counts"]["onToOff"] == 1
        [example] = [entry for entry in answer["examples"] if entry["flag"] == "cart"]
        assert example["context"] == {"userId": "42"}


def test_rules_of_the_import_make_contexts(api: Any, browse: Any, cart: Flag) -> None:
    run = uploaded(browse("admin"), "cart")
    sides = {"environment": "production"}, {"import": run}
    answer = compare(api["admin"], *sides, flag="cart", contexts={"generated": True}).json()
    assert {entry["isEnabled"] for entry in answer["flags"][0]["after"]} == {True, False}


def test_what_saved_contexts_expect_after_the_import(api: Any, browse: Any, cart: Flag) -> None:
    """The import changes what Ada expects; Bea's expectation breaks."""
    on = {"flag": "cart", "environment": "production", "enabled": True, "variant": None}
    for name in ("Ada", "Bea"):
        SavedContext.objects.create(name=name, context={"userId": "42"}, expectations=[on])
    ada = {"name": "Ada", "context": {"userId": "42"}, "expectations": [{"flag": "cart", "enabled": False}]}
    run = uploaded(browse("admin"), "cart", savedContexts=[ada])
    answer = compare(api["admin"], {"environment": "production"}, {"import": run}).json()
    assert [entry["savedContext"] for entry in answer["expectations"]["broken"]] == ["Bea"]


def test_only_ones_own_pending_imports(api: Any, browse: Any, cart: Flag) -> None:
    browser = browse("admin")
    run = uploaded(browser, "cart")
    assert "import:" not in browse("viewer").get(PAGE).text
    page = ask(browse("viewer"), run)
    assert page.status_code == 400
    assert f"To: Import {run} not found. It may have expired." in page_text(page)
    record = refused(
        compare(api["viewer"], {"environment": "production"}, {"import": run}), 400, "ValidationError"
    )
    assert record["details"][0]["path"] == "to.import"

    browser.post(f"/import/{run}/", {"do": "confirm", "fingerprint": ImportRun.objects.get().fingerprint})
    done = ask(browser, run)
    assert done.status_code == 400
    assert "no longer pending" in page_text(done)
    assert "import:" not in browser.get(PAGE).text.replace(f"import:{run}", "")


def test_other_projects_are_not_the_imports(api: Any, browse: Any, cart: Flag) -> None:
    make_project("docs")
    run = uploaded(browse("admin"), "cart")
    answer = compare(api["admin"], {"environment": "production"}, {"import": run}, projects=["docs"])
    record = refused(answer, 400, "ValidationError")
    assert record["details"] == [
        {"path": "to.import", "message": "is into project shop, which is not among the projects"}
    ]


@pytest.mark.parametrize(
    ("state", "path", "message"),
    [
        ({"import": "x"}, "to.import", ""),
        ({"import": 5}, "to.import", ""),
        (
            {"import": str(uuid4()), "environment": "production"},
            "to.environment",
            "must be left out with import",
        ),
        ({"import": str(uuid4()), "at": "2026-01-01T00:00:00Z"}, "to.at", "must be left out with import"),
        ({"import": str(uuid4()), "draft": {}}, "to.draft", "must be left out with import"),
        ({}, "to.environment", ""),
    ],
)
def test_odd_states(api: Any, cart: Flag, state: Any, path: str, message: str) -> None:
    record = refused(compare(api["admin"], {"environment": "production"}, state), 400, "ValidationError")
    [problem] = record["details"]
    assert problem["path"] == path
    assert message in problem["message"]


def test_a_large_file_is_read_in_a_process_of_its_own(
    browse: Any, cart: Flag, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = browse("admin")
    run = uploaded(browser, "cart")
    works = []

    def here(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        works.append(work.__name__)
        return work(*args, **kwargs)

    monkeypatch.setattr("importer.bulk_work.run_in_process", here)
    settings.IMPORT_PROCESS_BYTES = 10
    assert "1 of 2 flags change" in page_text(ask(browser, run))
    assert works == ["read_planned_import"]


def test_an_import_with_problems_is_compared_and_says_so(browse: Any, cart: Flag) -> None:
    browser = browse("admin")
    odd = strategy("cart", name="default", segments=[999])
    run = uploaded(browser, "cart", featureStrategies=[odd])
    text = page_text(ask(browser, run))
    assert "The import would be refused as it is: its preview says why." in text


def test_the_preview_leads_there(browse: Any, cart: Flag) -> None:
    browser = browse("admin")
    run = uploaded(browser, "cart")
    [url] = re.findall(
        r'href="(/playground/who-changes/[^"]*import[^"]*)"', browser.get(f"/import/{run}/who-changes/").text
    )
    assert "1 of 2 flags change" in page_text(browser.get(unescape(url)))
