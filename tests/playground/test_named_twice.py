"""Names that are given twice are answered once, and a project that has nothing to answer with says why."""

from typing import Any

import pytest

from tests.support.flags import make_flag

ADVANCED = "/api/admin/playground/advanced"
BASIC = "/api/admin/playground"


@pytest.fixture
def flag(shop: Any) -> Any:
    return make_flag("cart")


def ask(api: Any, path: str = ADVANCED, **body: Any) -> Any:
    answer = api["admin"].post(path, {"context": {"appName": "app"}, **body})
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_environments_and_projects_given_twice(api: Any, flag: Any) -> None:
    once = ask(api, environments=["development"], projects=["shop"])
    twice = ask(api, environments=["development", "development"], projects=["shop", "shop"])
    assert twice["features"] == once["features"]
    [feature] = ask(api, BASIC, environment="development", projects=["shop", "shop"])["features"]
    assert feature["name"] == "cart"


def test_an_archived_project_and_an_environment_it_does_not_use(api: Any, flag: Any, shop: Any) -> None:
    assert "notes" not in ask(api, environments=["development"], projects=["shop"])
    shop.environments.remove("development")
    answer = ask(api, environments=["development", "production"], projects=["shop"])
    assert answer["notes"] == ["Project shop does not use environment development. Used: production."]
    assert answer["features"], "its flags are said, all switched off"
    assert "notes" not in ask(api, environments=["production"], projects=["shop"])
    flag.delete()
    api["admin"].post("/api/admin/projects/archive/shop")
    notes = ask(api, environments=["development"], projects=["shop"])["notes"]
    assert notes == [
        "Project shop is archived.",
        "Project shop does not use environment development. Used: production.",
    ]
    assert ask(api, BASIC, environment="development", projects=["shop"])["notes"] == notes
