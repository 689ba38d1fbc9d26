"""Imports from a file to their undoing."""

import json

from django.utils import timezone

from projects.models import Flag
from tests.support.walks import read_text


def export(*names):
    states = [{"name": n, "featureName": n, "environment": "development", "enabled": True} for n in names]
    return json.dumps(
        {
            "features": [{"name": name} for name in names],
            "featureStrategies": [],
            "featureEnvironments": states,
            "tagTypes": [],
        }
    ).encode()


def bring(page, content, name="export.json"):
    page.open("/import/")
    page.attach("File", name, content)
    page.choose("Into project", "default")
    page.choose("Into environment", "production")
    page.press("Check changes")


def test_an_import_without_two_flags_is_made_and_undone(walk):
    page = walk("admin", "/")
    page.press("Import")
    page.attach("File", "export.json", export("one", "two", "three"))
    page.choose("Into project", "default")
    page.choose("Into environment", "production")
    page.press("Check changes")
    page.tick("Exclude one")
    page.tick("Exclude three")
    page.press("Exclude selected")
    page.press("Import 1 flag")
    assert "1 flag written." in page.text
    assert "Excluded: one, three" in page.text
    assert set(Flag.objects.values_list("name", flat=True)) == {"two"}
    page.press("Undo import…")
    assert "Deletes two." in page.text
    page.press("Undo import into default / production")
    assert "Deleted two" in page.text
    assert not Flag.objects.exists()


def test_an_import_from_faults_to_undo(walk, scenery):
    page = walk("admin", "/import/")
    bring(page, b'{"features": [')
    assert "not valid JSON" in page.text
    bring(page, export("fresh", "bad name"))
    assert "data.features[1].name" in page.text
    page.tick("Exclude bad name")
    page.press("Exclude selected")
    assert not page.control("Import 1 flag").has_attr("disabled")

    bring(page, export("fresh", "other"))
    assert "2 new. Nothing has been written." in page.text
    assert "This file was exported from development; you are importing into production." in page.text
    page.press("Import 2 flags")
    assert "2 flags written." in page.text
    imported = Flag.objects.active().filter(name__in=["fresh", "other"])
    assert imported.count() == 2
    page.press("Undo import…")
    page.press("Undo import into")
    assert "Undone by " in page.text
    assert not imported.exists()


def test_another_products_file(walk, scenery):
    split = {"if": [{"==": [{"var": "country"}, "NO"]}, "on", {"fractional": [["on", 20], ["off", 80]]}]}
    flags = {
        name: {
            "state": "ENABLED",
            "variants": {"on": True, "off": False},
            "defaultVariant": "off",
            "targeting": rule,
        }
        for name, rule in {"rollout": split, "odd": {"if": [{"cat": []}, "on"]}}.items()
    }
    page = walk("admin", "/import/")
    bring(page, json.dumps({"flags": flags}).encode(), "flagd.json")
    assert "Converted from flagd" in page.text
    assert "of 10,000 generated users change" in page.text
    page.choose("Percentages of rollout", "Keep today's users")
    page.attach(
        "Your users", "users.csv", b"userId\n" + b"".join(b"user-%d\n" % number for number in range(100))
    )
    page.press("Convert again")
    assert "0 of 100 users of users.csv change" in page.text
    page.press("Import 2 flags")
    assert "2 flags written." in page.text


def test_a_viewer_has_no_target_of_an_import(walk, scenery):
    assert len(walk("viewer", "/import/").field("Into project").select("option")) == 1


def test_what_changed_since_the_preview_is_shown_in_place(walk, scenery):
    page = walk("admin", "/import/")
    bring(page, export("fresh", "other"))
    Flag.objects.create(project_id="default", name="fresh", created_at=timezone.now())
    page.press("Import 2 flags")
    alert = " ".join(read_text(each) for each in page.page.select("[role=alert]"))
    assert "Nothing was imported." in alert
    assert "fresh: create → change." in alert
    page.press("Import 2 flags")
    assert "2 flags written." in page.text
