"""An import as a person makes it: a file with faults, a corrected one, the preview, the result, undo."""

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
    page.get_by_label("Export file").set_input_files(path)
    page.get_by_label("Into project").select_option("default")
    page.get_by_label("Into environment").select_option("production")
    page.get_by_role("button", name="Check changes").click()


@pytest.fixture
def files(tmp_path):
    (tmp_path / "faulty.json").write_text(json.dumps(export("fresh", "bad name")))
    (tmp_path / "good.json").write_text(json.dumps(export("fresh", "other")))
    (tmp_path / "broken.json").write_text('{"features": [')
    return tmp_path


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_from_faults_to_undo(visit, files, script, check_accessible):
    page = visit("admin", "/import/", script=script)
    bring(page, files / "broken.json")
    expect(page.get_by_text("not valid JSON")).to_be_visible()

    bring(page, files / "faulty.json")
    expect(page.get_by_text("data.features[1].name").first).to_be_visible()
    expect(page.get_by_role("button", name="Import 1 flag")).to_be_disabled()

    page.get_by_label("Leave out bad name").check()
    page.get_by_role("button", name="Leave out the ticked flags").click()
    expect(page.get_by_role("button", name="Import 1 flag")).to_be_enabled()

    bring(page, files / "good.json")
    expect(page.get_by_text("2 new. Nothing has been written.")).to_be_visible()
    expect(page.locator("main")).to_contain_text(
        "This file was exported from development; you are importing into production."
    )
    if script:
        check_accessible(page)
    page.get_by_role("button", name="Import 2 flags").click()
    expect(page.get_by_text("2 flags written.")).to_be_visible()
    if script:
        check_accessible(page)
    assert Flag.objects.filter(name__in=["fresh", "other"], archived_at=None).count() == 2

    page.get_by_role("button", name="Undo this import of 2 flags").click()
    expect(page.get_by_text("This import was undone")).to_be_visible()
    assert not Flag.objects.filter(name__in=["fresh", "other"], archived_at=None).exists()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_evaluate_as_if_imported(visit, files, theme, check_accessible):
    page = visit("admin", "/import/", theme=theme)
    bring(page, files / "good.json")
    expect(page.get_by_text("2 new. Nothing has been written.")).to_be_visible()
    check_accessible(page)
    page.get_by_role("link", name="Evaluate as if imported").click()
    expect(page.get_by_role("row", name="fresh")).to_contain_text("not there")
    page.get_by_label("userId").fill("42")
    page.get_by_role("button", name="Evaluate").click()
    expect(page).to_have_url(re.compile("context.userId=42"))
    expect(page.get_by_role("row", name="fresh")).to_contain_text("inside 100 %")
    check_accessible(page)
    assert not Flag.objects.filter(name="fresh").exists()


def test_a_viewer_has_no_target(visit):
    page = visit("viewer", "/import/")
    expect(page.get_by_label("Into project").locator("option")).to_have_count(1)
