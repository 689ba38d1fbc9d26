"""Every operation of the OpenAPI document has a summary, a subject, a place in the list and a page."""

import re
from html import unescape

import pytest
from django.test import Client

from flagadmin.console.api_docs import pages
from flagadmin.console.api_docs.operations import get_openapi_document, list_operations, read_document
from flagadmin.console.api_docs.pages import describe_answers, drop_summary, make_body_example, read_content
from groups.permissions import Permission
from groups.roles.subjects import name_permission
from tests.support.description import faults
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db
LISTED = re.compile(r'<a href="/api/docs/(\w+)/">(.*?)</a>')


def described():
    for path, methods in read_document()["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_every_operation_has_a_summary_and_a_subject() -> None:
    subjects = {tag["name"] for tag in read_document()["tags"]}
    for _, path, operation in described():
        assert 3 < len(operation["summary"]) <= 105, path
        assert operation["summary"][0].isupper()
        assert not operation["summary"].endswith((".", ":", ";"))
        assert set(operation["tags"]) <= subjects


def test_each_is_listed_once_by_its_summary() -> None:
    listed = {found: unescape(summary) for found, summary in LISTED.findall(Client().get("/api/docs/").text)}
    expected = {operation["operationId"]: operation["summary"] for *_, operation in described()}
    assert listed == expected
    assert len(list_operations()) == len(expected)


def test_deprecated_ones_are_marked_and_the_last_of_their_subject() -> None:
    subjects = re.findall(r"<details.*?</details>", Client().get("/api/docs/").text, re.DOTALL)
    marked = [[">deprecated<" in line for line in re.findall(r"<li.*?</li>", one)] for one in subjects]
    assert sum(map(sum, marked)) == sum(operation.is_deprecated for operation in list_operations()) > 0
    assert all(marks == sorted(marks) for marks in marked)
    assert not list_operations()[0].is_deprecated


def test_only_the_first_subject_is_unfolded_unless_it_is_a_search() -> None:
    page, found = Client().get("/api/docs/").text, Client().get("/api/docs/", {"q": "strategies PUT"}).text
    assert re.findall(r'<details class="card subject"( open)?>', page).count(" open") == 1
    assert set(re.findall(r'<details class="card subject"( open)?>', found)) == {" open"}
    summaries = [unescape(summary) for _, summary in LISTED.findall(found)]
    assert "Update a strategy" in summaries
    assert "Delete a group" not in summaries


def test_nothing_found_says_so() -> None:
    text = page_text(Client().get("/api/docs/", {"q": "<b>nosuch"}))
    assert "No operation has all these words." in text
    assert "0 operations" in text


def test_an_unknown_operation_leads_to_the_list() -> None:
    answer = Client().get("/api/docs/getNothing/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/api/docs/?q=getNothing")


@pytest.mark.exhaustive
def test_each_has_a_page_that_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    document = read_document()
    monkeypatch.setattr(pages, "read_document", lambda: document)  # a page parses it anew: half of the time
    for operation in list_operations():
        answer = Client().get(f"/api/docs/{operation.id}/")
        text = page_text(answer)
        assert answer.status_code == 200
        assert operation.summary in text
        assert f"{operation.method} {operation.path}" in text
        shown = document["paths"][operation.path][operation.method.lower()]
        for parameter in shown.get("parameters", ()):
            assert f"<code>{parameter['name']}</code>" in answer.text
        for status in shown["responses"]:
            assert re.search(rf">{status} \w", answer.text)


def test_choices_are_named_once() -> None:
    text = page_text(Client().get("/api/docs/replaceSegmentList/"))
    assert "one of replace, add, remove" in text
    assert "remove - remove" not in text


def test_the_page_says_who_may_call_it() -> None:
    def callers(operation_id: str) -> str:
        text = page_text(Client().get(f"/api/docs/{operation_id}/"))
        return text.partition("Who may call it")[2]

    assert f"{name_permission(Permission.CREATE_FEATURE)} CREATE_FEATURE in the project" in callers(
        "createFeature"
    )
    both = callers("updateSegment")
    assert "Any one of these permissions" in both
    assert "UPDATE_SEGMENT" in both
    assert "UPDATE_PROJECT_SEGMENT" in both
    assert "Token: admin or personal." in callers("getProjects")
    assert "Token: backend or frontend." in callers("evaluateOfrepFlags")
    assert "No token is needed." in callers("login")


def test_permissions_are_those_that_the_view_sets_declare() -> None:
    """As tests/flagadmin/security/permissions.tsv, which is compared with what requests are answered."""
    callers = get_openapi_document().callers
    assert set(callers) == {operation["operationId"] for *_, operation in described()}
    assert list(callers["deleteProject"].permissions) == [Permission.DELETE_PROJECT]
    assert list(callers["getRoleProjectAccess"].permissions) == [Permission.ADMIN, Permission.READ_ROLE]
    assert list(callers["getProjects"].permissions) == []
    assert callers["getProjects"].has_session
    assert not callers["getAllClientFeatures"].has_session


@pytest.mark.exhaustive
def test_examples_of_bodies_are_allowed_by_their_schemas() -> None:
    document = read_document()
    components = {"components": document["components"]}
    for _, path, operation in described():
        media, content = read_content(operation.get("requestBody", {}))
        if "json" in media:
            assert faults(content["schema"] | components, make_body_example(document, content)) == [], path
        assert list(describe_answers(document, operation["responses"]))


@pytest.mark.parametrize(
    ("description", "rest"),
    [
        ("Get a flag.", ""),
        ("Get a flag.\n\nOf v1.2 on.", "Of v1.2 on."),
        ("Get a flag; it may be archived.", "it may be archived."),
        ("Says what v1.2 gets.\n\nMore.", "Says what v1.2 gets.\n\nMore."),
    ],
)
def test_a_description_does_not_repeat_its_summary(description: str, rest: str) -> None:
    assert drop_summary(description, "Get a flag") == rest
