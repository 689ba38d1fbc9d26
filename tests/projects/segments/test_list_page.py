"""/segments/ID/list: what is shown before a list is saved, searching it and downloading it."""

import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction

from flagadmin.core.audit.models import AuditEvent
from projects.models import ProjectEnvironment, Segment
from releases.models import ChangeRequest
from releases.requests.apply import make_changes_as
from tests.support.flags import add_strategy, make_flag, switch_on
from tests.support.page_text import csv_rows, page_text
from tests.support.records import events

PLAIN = {"inverted": False, "caseInsensitive": False}


@pytest.fixture
def vip(shop: Any) -> Segment:
    constraint = {"contextName": "userId", "operator": "IN", "values": ["7", "42", "43"]} | PLAIN
    segment = Segment.objects.create(name="vip", constraints=[constraint])
    lounge = make_flag("lounge")
    add_strategy(lounge, "production", segments=[segment])
    switch_on(lounge, "production")
    return segment


def address(segment: Segment) -> str:
    return f"/segments/{segment.pk}/list"


def values(segment: Segment) -> list[str]:
    segment.refresh_from_db()
    return segment.constraints[0]["values"]


def test_the_difference_is_shown_before_it_is_saved(browse: Any, vip: Segment) -> None:
    browser = browse("editor")
    file = SimpleUploadedFile("ids.csv", b"mail,userId\na@x,42\nb@x,99\n", "text/csv")

    shown = browser.post(address(vip), {"file": file, "mode": "replace", "do": "compare"})
    page = page_text(shown)
    assert "+ 1 (99), − 2 (7, 43)" in page
    assert "3 values now, 2 then." in page
    assert "in 1 environment (production)" in page
    assert ">42\n99</textarea>" in shown.text
    assert values(vip) == ["7", "42", "43"]

    form = {"text": "42\n99", "mode": "replace", "confirmed": "yes", "comment": "Left the program"}
    beside = browser.post(f"/if-saved{address(vip)}", form, headers={"HX-Request": "true"})
    assert "3 of 10,000 generated users change" in page_text(beside)

    assert browser.post(address(vip), form)["Location"] == address(vip)
    assert values(vip) == ["42", "99"]
    assert events("segment-updated")[-1].comment == "Left the program"


def test_what_changed_meanwhile_is_not_overwritten(browse: Any, vip: Segment) -> None:
    browser = browse("editor")
    (expected,) = re.findall('name="expected" value="([^"]+)"', browser.get(address(vip)).text)
    browse("admin").post(address(vip), {"text": "1", "mode": "add", "confirmed": "yes"})

    refused = browser.post(
        address(vip), {"text": "2", "mode": "replace", "confirmed": "yes", "expected": expected}
    )

    assert refused.status_code == 409
    assert "What changed" in page_text(refused)
    assert values(vip) == ["7", "42", "43", "1"]


def test_searched_downloaded_and_sent_by_who_may_change_the_segment(browse: Any, vip: Segment) -> None:
    assert "2 values" in page_text(browse("reader").get(f"{address(vip)}?q=4"))
    assert csv_rows(browse("reader").get(f"{address(vip)}?q=4&format=csv")) == [["userId"], ["42"], ["43"]]

    assert 'type="file"' not in browse("reader").get(address(vip)).text
    assert browse("reader").post(address(vip), {"text": "1", "confirmed": "yes"}).status_code == 403

    problem = browse("editor").post(address(vip), {"text": f"1\n{'x' * 101}", "do": "compare"})
    assert problem.status_code == 400
    assert "line 2 must have at most 100 characters, not 101" in page_text(problem)


def test_a_new_segment_with_a_list(browse: Any, shop: Any) -> None:
    browser = browse("editor")
    answer = browser.post("/segments/new", {"name": "beta", "do": "save-list"})
    segment = Segment.objects.get(name="beta")
    assert answer["Location"] == address(segment)

    browser.post(answer["Location"], {"text": "a@x", "field": "mail", "mode": "replace", "confirmed": "yes"})
    segment.refresh_from_db()
    assert segment.constraints == [{"contextName": "mail", "operator": "IN", "values": ["a@x"]} | PLAIN]


def test_a_long_list_stays_while_its_segment_is_edited(browse: Any, vip: Segment) -> None:
    browser, many = browse("editor"), [f"user-{number}" for number in range(2_000)]
    browser.post(address(vip), {"text": "\n".join(many), "mode": "replace", "confirmed": "yes"})
    page = browser.get(f"/segments/{vip.pk}/")
    assert "Edit values" not in page.text
    (row,) = page.context["rows"]

    form = {"name": "vips", "c": "0", "c-0-field": "userId", "c-0-operator": "IN", "c-0-kept": row.kept}
    assert browser.post(f"/segments/{vip.pk}/", form | {"do": "save"})["Location"] == "/segments/"

    vip.refresh_from_db()
    assert (vip.name, values(vip)) == ("vips", many)


@pytest.mark.django_db(transaction=True)
def test_a_long_list_is_reviewed_where_production_needs_requests(
    browse: Any, callers: Any, vip: Segment
) -> None:
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=0)
    many = [f"user-{number}" for number in range(1_500)]
    form = {"text": "\n".join(many), "mode": "replace", "confirmed": "yes"}
    browser = browse("admin")

    assert "Nothing was saved." in page_text(browser.post(address(vip), form))
    sent = browser.post(address(vip), form | {"send_for_review": "yes"})
    request = ChangeRequest.objects.get()
    assert sent["Location"] == f"/projects/shop/change-requests/{request.pk}/"
    assert "vip" in page_text(browser.get(sent["Location"]))
    assert values(vip) == ["7", "42", "43"]
    sizes = {event.type: len(json.dumps(event.after)) for event in AuditEvent.objects.all()}
    assert {kind for kind, size in sizes.items() if size > 10_000} == set()

    with transaction.atomic():
        make_changes_as(callers("admin"), request)
    assert values(vip) == many
