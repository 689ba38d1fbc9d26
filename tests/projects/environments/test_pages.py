"""/environments/: the environments of the installation in the console."""

import re
from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.models import RolePermission
from projects.models import Environment, FlagEnvironment, Project, ProjectEnvironment, Strategy
from tests.support.cast import make_token
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db
NEW = {"name": "staging", "type": "test", "enabled": "on"}


@pytest.fixture
def staging(shop: Project) -> Environment:
    return Environment.objects.create(name="staging", type="test")


def names() -> list[str]:
    return list(Environment.objects.values_list("name", flat=True))


def delete(browser: Any, name: str = "staging") -> Any:
    page = browser.get(f"/environments/{name}/delete")
    expected = re.search(r'name="expected" value="([^"]+)"', page.text)
    assert expected is not None
    return browser.post(f"/environments/{name}/delete", {"expected": expected[1], "known": "yes"})


def test_lists_environments_in_their_order_with_counts(shop: Project, browse: Any) -> None:
    make_flag("cart", enabled=True)
    page = page_text(browse("viewer").get("/environments/"))
    assert page.index("development") < page.index("production")
    assert "New environment" not in page
    assert "New environment" in page_text(browse("admin").get("/environments/"))
    lines = browse("viewer").get("/environments/?format=csv").getvalue().decode().splitlines()
    assert lines[1] == "development,development,True,2,1,0"

    assert "1 flag is on; turn it off" in page_text(browse("admin").get("/environments/development/"))

    assert 'href="/environments/"' in browse("viewer").get("/search/?q=environments").text
    assert "New environment" in page_text(browse("admin").get("/search/?q=new+environment"))


def test_creates_an_environment(shop: Project, browse: Any) -> None:
    answer = browse("admin").post("/environments/new", NEW, follow=True)
    assert "Created environment staging. No project uses it yet." in page_text(answer)
    stored = Environment.objects.get(name="staging")
    assert (stored.type, stored.enabled, names()[-1]) == ("test", True, "staging")
    assert AuditEvent.objects.latest("id").type == "environment-created"


@for_each(
    ("values", "message"),
    [
        ({"name": "a b"}, "letters, digits"),
        ({"name": "production"}, "already exists"),
        ({"type": ""}, "required"),
    ],
)
def test_a_wrong_value_stands_beside_its_field(shop: Project, browse: Any, values: Any, message: str) -> None:
    answer = browse("admin").post("/environments/new", NEW | values)
    assert answer.status_code in (400, 409)
    assert message in page_text(answer)


def test_moves_an_environment(staging: Environment, browse: Any) -> None:
    browser = browse("admin")
    browser.post("/environments/staging/move", {"move": "up"})
    assert names() == ["development", "staging", "production"]
    browser.post("/environments/staging/move", {"move": "up"})
    assert names()[0] == "staging"
    answer = browser.post("/environments/staging/move", {"move": "up"}, follow=True)
    assert "not beyond the ends" in page_text(answer)
    assert AuditEvent.objects.filter(type="environment-updated").count() >= 2


def test_a_project_begins_and_stops_to_use_it(staging: Environment, browse: Any) -> None:
    browser = browse("admin")
    assert "Shop not used" in page_text(browser.get("/environments/staging/"))
    used = {"environment": "staging", "next": "/environments/staging/"}
    answer = browser.post("/projects/shop/environments", used | {"do": "add"})
    assert answer["Location"] == "/environments/staging/"
    page = browser.get("/environments/staging/")
    assert "Shop no flag is on" in page_text(page)
    expected = re.search(r'name="expected" value="(\w+)">\s*<input type="hidden" name="next"', page.text)
    assert expected is not None
    browser.post("/projects/shop/environments", used | {"do": "remove", "expected": expected[1]})
    assert not ProjectEnvironment.objects.filter(environment="staging").exists()


def test_deletion_says_what_is_lost(staging: Environment, browse: Any) -> None:
    add_strategy(make_flag("cart"), "staging")
    RolePermission.objects.create(role_id=4, permission="UPDATE_FEATURE", environment=staging)
    browser = browse("admin")
    page = page_text(browser.get("/environments/staging/delete"))
    assert "Environment staging (test)" in page
    assert "What 1 flag had there, with 1 strategy" in page
    assert "1 permission of role" in page
    answer = delete(browser)
    assert answer["Location"] == "/environments/"
    assert not Environment.objects.filter(name="staging").exists()
    assert not Strategy.objects.exists()
    assert not FlagEnvironment.objects.filter(environment="staging").exists()
    assert AuditEvent.objects.latest("id").type == "environment-deleted"


def test_one_in_use_is_not_deleted(shop: Project, staging: Environment, browse: Any) -> None:
    browser = browse("admin")
    assert "is in use in" in page_text(browser.get("/environments/production/delete"))
    assert delete(browser, "production").status_code == 409
    make_token("backend", projects=["shop"], environment="staging")
    assert "in use by 1 API tokens" in page_text(browser.get("/environments/staging/delete"))
    assert delete(browser).status_code == 409
    assert "staging" in names()


def test_one_that_was_changed_meanwhile_is_not_deleted(staging: Environment, browse: Any) -> None:
    browser = browse("admin")
    page = browser.get("/environments/staging/delete").text
    expected = re.search(r'name="expected" value="([^"]+)"', page)
    assert expected is not None
    Environment.objects.filter(name="staging").update(type="production")
    answer = browser.post("/environments/staging/delete", {"expected": expected[1]})
    assert answer.status_code == 409
    assert "staging" in names()


@for_each(
    ("path", "sent"),
    [
        ("new", NEW),
        ("staging/", {"type": "production"}),
        ("staging/move", {"move": "up"}),
        ("staging/delete", {}),
    ],
)
def test_only_admins_change_environments(staging: Environment, browse: Any, path: str, sent: Any) -> None:
    for who in ("editor", "owner", "viewer"):
        assert browse(who).post(f"/environments/{path}", sent).status_code == 403
    assert names() == ["development", "production", "staging"]
    assert Environment.objects.get(name="staging").type == "test"
