"""/api/docs/: a request is sent from an operation's page; one that writes asks first, and no token is kept."""

import pytest
from playwright.sync_api import expect

from projects.models import TagType
from tests.support.cast import make_token

pytestmark = pytest.mark.usefixtures("scenery")
KEPT = """() => [...Object.values(localStorage), ...Object.values(sessionStorage), document.cookie].join()"""


def test_a_search_leads_to_an_operation_and_the_session_sends_its_request(visit, check_accessible):
    page = visit("admin", "/api/docs/")
    page.get_by_role("searchbox", name="Search operations").fill("projects sorted")
    page.get_by_role("link", name="List the projects that the caller can read, sorted by id").click()
    page.get_by_role("button", name="Send").click()

    answer = page.get_by_label("Response", exact=True)
    expect(answer).to_contain_text('"id": "checkout"')
    expect(page.locator("#answer")).to_contain_text("200 OK in")
    check_accessible(page)

    page.goto("/api/docs/deleteTagType/")
    TagType.objects.create(name="spare")
    page.get_by_label("name path").fill("spare")
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_role("button", name="Send DELETE").click()
    expect(page.locator("#answer")).to_contain_text("200 OK")
    assert not TagType.objects.filter(name="spare").exists()


def test_a_write_asks_first_and_keeps_no_token(visit, check_accessible):
    page, secret = visit(None, "/api/docs/createTagType/"), make_token("admin")
    body = page.get_by_label("Body", exact=True)
    body.fill('{"name": "from-the-page"}')
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Send", exact=True).click()
    dialog = page.get_by_role("dialog", name="Send POST to this server?")
    expect(dialog).to_contain_text("POST /api/admin/tag-types")
    check_accessible(page)
    dialog.get_by_role("button", name="Cancel").click()
    assert not TagType.objects.filter(name="from-the-page").exists()

    page.get_by_role("button", name="Send", exact=True).click()
    dialog.get_by_role("button", name="Send POST").click()
    expect(page.locator("#answer")).to_contain_text("201 Created")
    assert TagType.objects.filter(name="from-the-page").exists()
    assert secret not in page.evaluate(KEPT)
    page.reload()
    expect(page.get_by_label("Token")).to_have_value("")
