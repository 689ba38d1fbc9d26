"""/projects/ID/environments/NAME/strategy: the default strategy of flags turned on without one."""

import pytest

from projects.models import ProjectEnvironment
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.scenery import make_vocabulary

PAGE = "/projects/shop/environments/production/strategy"
QUARTER = {
    "do": "save", "name": "flexibleRollout", "was-name": "flexibleRollout",
    "p-rollout": "25", "p-stickiness": "userId", "p-groupId": "",
}  # fmt: skip


@pytest.fixture
def place(shop):
    make_vocabulary()
    return ProjectEnvironment.objects.get(project=shop, environment="production")


def test_it_is_saved_told_in_the_settings_and_removed(browse, place):
    browser = browse("owner")

    assert browser.post(PAGE, QUARTER)["Location"] == "/projects/shop/settings/approvals/"

    place.refresh_from_db()
    assert place.default_strategy["parameters"] == {"rollout": "25", "stickiness": "userId", "groupId": ""}
    told = "Default strategy: On for 25 % of users, by userId."
    assert told in page_text(browser.get("/projects/shop/settings/approvals/"))
    assert "Remove default strategy" in page_text(browser.get(PAGE))

    browser.post(PAGE, {"do": "delete"})

    place.refresh_from_db()
    assert place.default_strategy is None


def test_forms_without_one_of_its_own_of_another_type_and_with_a_fault(browse, place):
    page = browse("owner").get(PAGE)

    assert "On for everyone." in page_text(page)
    assert "Remove default strategy" not in page_text(page)

    refused = browse("owner").post(PAGE, QUARTER | {"p-rollout": "120"})

    assert refused.status_code == 400
    assert "use a whole number from 0 to 100" in page_text(refused)
    place.refresh_from_db()
    assert place.default_strategy is None

    shown = browse("owner").post(PAGE, QUARTER | {"do": "refresh", "name": "userWithId"})
    assert "User IDs" in page_text(shown)

    browser = browse("owner")
    assert browser.get("/projects/shop/environments/nosuch/strategy").status_code == 404
    assert browser.get("/projects/nosuch/environments/production/strategy").status_code == 404


@for_each("who", ["reader", "viewer"])
def test_who_may_not_change_it_is_told_why(browse, place, who):
    shown = browse(who).get(PAGE)
    assert 'You need the "' in page_text(shown)
    assert "Save default strategy" not in page_text(shown)

    assert browse(who).post(PAGE, QUARTER).status_code == 403
    assert browse(who).post(PAGE, {"do": "delete"}).status_code == 403
