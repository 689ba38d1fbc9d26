"""What happened: time is picked by dragging, and the form below shows it in the reader's zone."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.usefixtures("scenery")


def test_a_stretch_of_time_is_picked_by_dragging(visit, check_accessible):
    page = visit("admin", "/what-happened/?environment=development&all=yes")
    bars = page.locator(".time svg a rect")
    number = bars.count()
    box = page.locator(".lane:not(.axis) > .plot").first.bounding_box()
    assert box is not None
    height = box["y"] + box["height"] / 2

    page.mouse.move(box["x"] + box["width"] * 0.5, height)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.99, height)
    expect(page.locator(".window").first).to_have_attribute("width", re.compile(r"^(48\.[5-9]|49)"))
    page.mouse.up()

    page.wait_for_url(re.compile("since=.*until="))
    expect(page.get_by_role("heading", name="Picked")).to_be_visible()
    assert bars.count() == number
    expect(page.get_by_label("From", exact=False).last).to_have_value(re.compile(r"^20\d\d-"))
    check_accessible(page)
    page.get_by_role("link", name="Clear").click()
    expect(page.get_by_role("heading", name="Picked")).to_be_hidden()
