"""Uploading another product's file: it is recognized, its preview says what is not the same, and offers choices."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from importer.models import ImportRun
from projects.models import Flag, Segment, Strategy
from tests.importer.console import bring, confirm, preview
from tests.importer.converting.flagd_flags import flag
from tests.importer.converting.launchdarkly_flags import FLAGS, listed
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db

DOCUMENT = {
    "flags": {
        "rollout": flag({"fractional": [["on", 20], ["off", 80]]}),
        "other": flag({"fractional": [["on", 50], ["off", 50]]}),
        "on": flag(default="on"),
        "odd": flag({"if": [{"cat": []}, "on"]}),
    }
}
YAML = b"flags:\n  on: {state: ENABLED, variants: {on: true, off: false}, defaultVariant: on}\n"
COUNTS = "1 exact2 approximate1 imported off"
CSV = ("userId\n" + "".join(f"user-{number}\n" for number in range(100))).encode()


def choose(browser, address, **choices):
    data = {"do": "convert", "percentages": "new", "missing": "off"} | choices
    return browser.post(address, data)


def users():
    return SimpleUploadedFile("users.csv", CSV, "text/csv")


def test_from_file_to_result(browse):
    browser = browse("member")
    address, page = preview(browser, DOCUMENT)
    text = page_text(page)
    assert "Converted from flagd" in text
    assert COUNTS in text
    assert "Its percentages are other users here, because the hash is another." in text
    assert "of 10,000 generated users change; on for 2" in text
    assert "4 new. Nothing has been written." in text
    assert not Flag.objects.exists()
    confirm(browser, address)
    assert "4 flags written" in page_text(browser.get(address))
    assert ImportRun.objects.get().converted_from == "flagd"
    assert Strategy.objects.get(flag__name="rollout", environment="production").parameters["rollout"] == "20"


def test_yaml_is_recognized(browse):
    file = SimpleUploadedFile("flags.yaml", YAML)
    response = bring(browse("member"), "", file=file)
    assert response.status_code == 302
    assert ImportRun.objects.get().counts["create"] == 1


def test_todays_users_are_kept_in_segments(browse):
    browser = browse("admin")  # who may create segments
    address, _ = preview(browser, DOCUMENT)
    choose(browser, address, percentages="both", choice=["other=finish", "rollout="], users=users())
    text = page_text(browser.get(address))
    assert "0 of 100 users of users.csv" not in text
    assert "Left out until its rollout is finished" in text
    assert "3 new. Nothing has been written." in text
    confirm(browser, address)
    assert Segment.objects.get().name == "rollout (today)"
    assert not Flag.objects.filter(name="other").exists()


def test_users_stay_while_other_choices_are_made(browse):
    browser = browse("member")
    address, _ = preview(browser, DOCUMENT)
    choose(browser, address, percentages="keep", users=users())
    choose(browser, address, percentages="keep", missing="leave-out")
    text = page_text(browser.get(address))
    assert "0 of 100 users of users.csv change" in text
    assert "1 left out" in text


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"percentages": "keep"}, "to keep today's users, choose a CSV file of them"),
        ({"choice": ["rollout=both"]}, "to keep today's users, choose a CSV file of them"),
        ({"percentages": "maybe"}, "percentages: must be one of both, finish, keep, new"),
        ({"choice": ["rollout=maybe"]}, "choice: must be one of both, finish, keep, new"),
        ({"missing": ""}, "missing: must be one of leave-out, off"),
        (
            {"users": SimpleUploadedFile("users.csv", b"userId\n1,2")},
            "row 2: must have 1 cells as the header, not 2",
        ),
    ],
)
def test_refused_choices_change_nothing(browse, choices, message):
    browser = browse("member")
    address, _ = preview(browser, DOCUMENT)
    choose(browser, address, **choices)
    text = page_text(browser.get(address)).replace("’", "'")
    assert message in text
    assert COUNTS in text


def test_choices_of_an_export_are_refused(browse):
    browser = browse("member")
    address, _ = preview(browser, {"features": [], "featureStrategies": [], "tagTypes": []})
    choose(browser, address)
    assert "not of another product's file" in page_text(browser.get(address)).replace("’", "'")


def test_another_person_cannot_choose(browse):
    address, _ = preview(browse("member"), DOCUMENT)
    assert choose(browse("admin"), address).status_code == 404


def test_an_environment_of_several_is_chosen(browse):
    browser = browse("member")
    document = listed({"on": FLAGS["on"]}, environments=("test", "live"))
    assert "choose one of live, test" in page_text(bring(browser, document))
    _, page = preview(browser, document, source_environment="live")
    assert "Converted from LaunchDarkly" in page_text(page)


def test_schema_errors_name_their_place(browse):
    page = bring(browse("member"), {"flags": {"a": {"state": "MAYBE", "variants": {"on": True}}}})
    assert "flags.a.state" in page.text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("flags.yaml", b"a: [", "The file is not valid YAML"),
        ("flags.json", b"{", "not valid JSON"),
        ("flags.txt", b"hello", "not valid JSON"),
    ],
)
def test_malformed_files_are_refused(browse, name, content, message):
    page = bring(browse("member"), "", file=SimpleUploadedFile(name, content))
    assert message in page_text(page)
