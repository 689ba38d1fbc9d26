"""Long lists of values stay in the store while a form is open: unseen, unchanged, and opened on demand."""

import pytest

from projects.models import Segment
from tests.scenery import constraint

LONG = [f"{index:03}{'v' * 97}" for index in range(250)]


@pytest.fixture
def segment(shop):
    constraints = [constraint("userId", "IN", *LONG) for _ in range(5)]
    return Segment.objects.create(name="long", constraints=constraints)


def form_of(page):
    form = page.content.decode()
    fields = {"name": "long", "seen": str(page.context["seen"]), "c": [str(n) for n in range(5)]}
    for row in page.context["rows"]:
        fields |= {f"c-{row.number}-field": row.field, f"c-{row.number}-operator": row.operator}
        fields |= {f"c-{row.number}-kept": row.kept} if row.kept else {f"c-{row.number}-values": row.values}
    return form, fields


def test_values_that_are_not_shown_stay_as_they_are(browse, segment):
    browser, address = browse("admin"), f"/segments/{segment.pk}/"
    before = segment.constraints
    page, fields = form_of(browser.get(address))
    assert "Edit values" in page
    assert len(page) < 300_000
    assert browser.post(address, fields | {"description": "new"}).status_code == 302
    segment.refresh_from_db()
    assert segment.description == "new"
    assert [row["values"] for row in segment.constraints] == [row["values"] for row in before]


def test_a_button_shows_them(browse, segment):
    browser, address = browse("admin"), f"/segments/{segment.pk}/"
    _, fields = form_of(browser.get(address))
    page = browser.post(address, fields | {"do": "open-constraint-4"})
    assert page.context["rows"][4].kind == "list"
    assert page.context["rows"][4].values.split("\n") == LONG


def test_values_that_are_gone_meanwhile_are_refused(browse, segment):
    browser, address = browse("admin"), f"/segments/{segment.pk}/"
    _, fields = form_of(browser.get(address))
    Segment.objects.update(constraints=[])
    assert browser.post(address, fields).status_code == 409
