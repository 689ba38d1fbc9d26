"""Parts of comments become links."""

import pytest
from django.db import transaction

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.record import Event, record
from flagadmin.core.change_options import changing
from groups.access import Caller
from projects.models import Project
from projects.projects import settings
from projects.projects.links import MAX_LINKED, comment_link_problems, split_comment
from projects.projects.settings_pages import SettingsForm
from tests.support.for_each import for_each
from tests.support.page_text import page_text

TICKETS = {"pattern": "PAY-[0-9]+", "url": "https://tickets.example.com/browse/{match}"}
ISSUES = {"pattern": "#([0-9]+)", "url": "https://git.example.com/issues/{match}"}
SETTINGS = "/api/admin/projects/shop/settings"


TICKET = "https://tickets.example.com/browse/PAY-7"
WIDE = {"pattern": "[A-Z]+-[0-9]+", "url": "https://other.example.com/{match}"}
ANYTHING = {"pattern": "T:.+", "url": "https://t.example.com/?q={match}"}


@pytest.mark.parametrize(
    ("comment", "links", "parts"),
    [
        ("For PAY-7.", [TICKETS], [("For ", ""), ("PAY-7", TICKET), (".", "")]),
        ("#12", [ISSUES], [("#12", "https://git.example.com/issues/12")]),
        (
            "PAY-7 A-1",
            [TICKETS, WIDE],
            [("PAY-7", TICKET), (" ", ""), ("A-1", "https://other.example.com/A-1")],
        ),
        ('T:a"/?&#ö', [ANYTHING], [('T:a"/?&#ö', "https://t.example.com/?q=T%3Aa%22%2F%3F%26%23%C3%B6")]),
    ],
    ids=["text around it", "a group", "the first of two patterns", "escaped"],
)
def test_matches_become_links(comment, links, parts):
    assert [(part.text, part.url) for part in split_comment(comment, links)] == parts


def test_a_comment_has_at_most_so_many_links():
    parts = split_comment("PAY-1 " * 100, [TICKETS])
    assert sum(bool(part.url) for part in parts) == MAX_LINKED


@pytest.mark.parametrize(
    ("link", "path", "message"),
    [
        ({"pattern": "(", "url": TICKETS["url"]}, "[0].pattern", "is not a valid regular expression"),
        ({"pattern": "(?=x)", "url": TICKETS["url"]}, "[0].pattern", "is not a valid regular expression"),
        ({"pattern": "x*", "url": TICKETS["url"]}, "[0].pattern", "matches an empty text"),
        ({"pattern": "x" * 201, "url": TICKETS["url"]}, "[0].pattern", "at most 200 characters"),
        ({"pattern": "([a-z]{1,30}){1,30}", "url": TICKETS["url"]}, "[0].pattern", "is too complex"),
        ({"pattern": "", "url": TICKETS["url"]}, "[0].pattern", "a pattern is required"),
        ({"pattern": "x", "url": "https://t.example.com/"}, "[0].url", "must contain {match}"),
        ({"pattern": "x", "url": "javascript:alert({match})"}, "[0].url", "is not a web URL"),
        ({"pattern": "x", "url": "ftp://t.example.com/{match}"}, "[0].url", "is not a web URL"),
        ({"pattern": "x", "url": "https://{match}.example.com/"}, "[0].url", "after the host"),
        ({"pattern": "x", "url": "https://a b/{match}"}, "[0].url", "is not a web URL"),
        ({"pattern": "x"}, "[0]", "must have a pattern and a url"),
    ],
)
def test_what_is_refused(link, path, message):
    [problem] = comment_link_problems([link])
    assert problem.path == f"commentLinks{path}"
    assert message in problem.message


def test_too_many():
    [problem] = comment_link_problems([TICKETS] * 6)
    assert problem.message == "must have at most 5 entries, not 6"


def test_by_api(api, people):
    saved = api["owner"].put(SETTINGS, {"commentLinks": [TICKETS]}, format="json")
    assert saved.status_code == 200
    assert api["viewer"].get("/api/admin/projects/shop/overview").json()["commentLinks"] == [TICKETS]
    refused = api["owner"].put(SETTINGS, {"commentLinks": [TICKETS | {"url": "x"}]}, format="json")
    assert refused.status_code == 400
    assert refused.json()["details"][0]["path"] == "commentLinks[0].url"


def test_on_the_settings_page(browse, people):
    form = {"name": "Shop", "mode": "open", "default_stickiness": "default"}
    lines = f"{TICKETS['pattern']}  {TICKETS['url']}\r\n\r\nissue ([0-9]+) {ISSUES['url']}"
    assert (
        browse("owner").post("/projects/shop/settings/", form | {"comment_links": lines}).status_code == 302
    )
    assert Project.objects.get(pk="shop").comment_links == [TICKETS, ISSUES | {"pattern": "issue ([0-9]+)"}]
    assert f"{TICKETS['pattern']} {TICKETS['url']}" in page_text(
        browse("owner").get("/projects/shop/settings/")
    )
    refused = browse("owner").post("/projects/shop/settings/", form | {"comment_links": "PAY-[0-9]+"})
    assert refused.status_code == 400
    assert "a pattern is required" in page_text(refused)


@for_each("address", ["/activity/", "/projects/shop/activity/", "/activity/?change={id}"])
def test_pages_show_links(browse, people, address):
    Project.objects.filter(pk="shop").update(comment_links=[TICKETS])
    with changing(comment="<i>PAY-7</i>"), transaction.atomic():
        record(Event(type=EventType.PROJECT_UPDATED, project="shop"), actor=Caller.system())
    page = browse("viewer").get(address.format(id=AuditEvent.objects.latest("id").pk), follow=True)
    assert '&lt;i&gt;<a href="https://tickets.example.com/browse/PAY-7">PAY-7</a>&lt;/i&gt;' in page.text


def test_the_settings_page_has_every_field_of_its_form():
    """One that is no setting would be missing, and saved as empty."""
    assert {*SettingsForm.base_fields} <= {setting.field for setting in settings.SETTINGS}
