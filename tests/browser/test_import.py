"""Browser tests of an import: its preview, its button, and that its pages are accessible."""

import json
import re

import pytest
from playwright.sync_api import expect

from projects.models import Flag

pytestmark = pytest.mark.usefixtures("scenery")


def export(*names):
    return {
        "features": [{"name": name} for name in names],
        "featureStrategies": [],
        "featureEnvironments": [
            {"name": name, "featureName": name, "environment": "development", "enabled": True}
            for name in names
        ],
        "tagTypes": [],
    }


def bring(page, path):
    page.goto("/import/")
    page.get_by_label("File", exact=True).set_input_files(path)
    page.get_by_label("Into project").select_option("default")
    page.get_by_label("Into environment").select_option("production")
    page.get_by_role("button", name="Check changes").click()


@pytest.fixture
def files(tmp_path):
    (tmp_path / "good.json").write_text(json.dumps(export("fresh", "other")))
    return tmp_path


def test_evaluate_as_if_imported(visit, files, check_in_both_themes):
    page = visit("admin", "/import/")
    bring(page, files / "good.json")
    expect(page.get_by_text("2 new. Nothing has been written.")).to_be_visible()
    check_in_both_themes(page)
    page.get_by_role("link", name="Evaluate as if imported").click()
    expect(page.get_by_role("row", name="fresh")).to_contain_text("Not found")
    page.get_by_label("userId").fill("42")
    page.get_by_role("button", name="Evaluate").click()
    expect(page).to_have_url(re.compile("context.userId=42"))
    expect(page.get_by_role("row", name="fresh")).to_contain_text("100 % rollout")
    check_in_both_themes(page)
    assert not Flag.objects.filter(name="fresh").exists()


SPLIT = {"if": [{"==": [{"var": "country"}, "NO"]}, "on", {"fractional": [["on", 20], ["off", 80]]}]}
FLAGD = {
    "flags": {
        name: {
            "state": "ENABLED",
            "variants": {"on": True, "off": False},
            "defaultVariant": "off",
            "targeting": rule,
        }
        for name, rule in {"rollout": SPLIT, "odd": {"if": [{"cat": []}, "on"]}}.items()
    }
}


def test_another_products_file(visit, tmp_path, check_in_both_themes):
    (tmp_path / "flagd.json").write_text(json.dumps(FLAGD))
    page = visit("admin", "/import/")
    bring(page, tmp_path / "flagd.json")
    card = page.locator("#conversion")
    expect(card.get_by_role("heading", name="Converted from flagd")).to_be_visible()
    expect(card).to_contain_text("of 10,000 generated users change")
    check_in_both_themes(page)


def test_the_button_says_what_it_does_wherever_the_list_is_scrolled(visit, tmp_path, check_accessible):
    names = [f"flag-{number:03}" for number in range(150)]
    (tmp_path / "many.json").write_text(json.dumps(export(*names)))
    page = visit("admin", "/import/")
    bring(page, tmp_path / "many.json")
    button = page.get_by_role("button", name="Import 150 flags", exact=True)
    expect(button).to_be_in_viewport()
    page.get_by_label("Exclude flag-001").check()
    page.get_by_role("link", name="Next").click()
    page.get_by_label("Exclude flag-120").check()
    page.get_by_role("button", name="Import 148 flags, exclude 2").click()
    expect(page.get_by_text("148 flags written.")).to_be_visible()
    check_accessible(page)
    assert not Flag.objects.filter(name__in=["flag-001", "flag-120"]).exists()
    page.get_by_role("link", name="Undo import…").click()
    expect(page.get_by_role("button", name="Undo import into")).to_be_visible()
    check_accessible(page)
