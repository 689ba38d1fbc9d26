"""Comparisons list the expectations of saved contexts that break, and those that are met again."""

from typing import Any

import pytest

from playground.models import SavedContext
from tests.support.flags import depend
from tests.support.for_each import for_each
from tests.support.import_bodies import body, switch
from tests.support.playground import live_flag

URL = "/api/admin/playground/compare"
OFF = {"flag": "dark-theme", "enabled": False}


def expected(flag: str, enabled: bool = True) -> dict[str, Any]:
    return {"flag": flag, "environment": "production", "enabled": enabled, "variant": None}


@pytest.fixture
def dark(shop: Any) -> None:
    """On; `child` depends on it."""
    depend(live_flag("child"), live_flag("dark-theme"))
    SavedContext.objects.create(
        name="Ada", context={"userId": "42"}, expectations=[expected("dark-theme"), expected("child")]
    )
    SavedContext.objects.create(
        name="Bea", context={"userId": "7"}, project=shop, expectations=[expected("dark-theme", False)]
    )


def compared(api: Any, to: dict[str, Any], who: str = "viewer", **members: Any) -> dict[str, Any]:
    given = {"from": {"environment": "production"}, "to": {"environment": "production"} | to}
    answer = api[who].post(URL, given | {"contexts": {"explicit": [{}]}} | members)
    assert answer.status_code == 200, answer.json()
    found: dict[str, Any] = answer.json()["expectations"]
    return found


def names(found: dict[str, Any]) -> dict[str, list[tuple[str, str]]]:
    return {kind: [(one["savedContext"], one["flag"]) for one in listed] for kind, listed in found.items()}


@for_each("members", [{}, {"flag": "dark-theme"}])
def test_what_breaks_and_what_is_met_again(api, dark, members):
    """Also of flags that depend on the one that is asked for."""
    found = compared(api, {"draft": OFF}, **members)
    assert names(found) == {
        "broken": [("Ada", "dark-theme"), ("Ada", "child")],
        "met": [("Bea", "dark-theme")],
    }
    first = found["broken"][0]
    assert first["before"]["results"] == [{"isEnabled": True, "variant": None, "payload": None, "share": 1.0}]
    assert first["after"] == {
        "results": [{"isEnabled": False, "variant": None, "payload": None, "share": 1.0}],
        "reason": "Switched off in production",
    }
    assert {key: first[key] for key in ("project", "environment", "enabled", "variant")} == {
        "project": "shop",
        "environment": "production",
        "enabled": True,
        "variant": None,
    }


def test_nothing_changes(api, dark):
    nothing = {"broken": [], "met": []}
    assert compared(api, {}) == nothing
    assert compared(api, {"draft": {"flag": "dark-theme", "enabled": True}}) == nothing


def test_two_environments_have_expectations_of_their_own(api, dark):
    assert compared(api, {"environment": "development"}) == {"broken": [], "met": []}


def test_an_import(api, dark):
    given = body("dark-theme", environment="production", featureEnvironments=[switch("dark-theme", False)])
    answer = api["reader"].post("/api/admin/features-batch/compare", given)
    assert names(answer.json()["expectations"]) == {
        "broken": [("Ada", "dark-theme"), ("Ada", "child")],
        "met": [("Bea", "dark-theme")],
    }
