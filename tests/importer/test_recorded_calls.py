"""The reference's recorded import calls get the same status, kind of error and resulting state.

``BETTER`` lists intended differences with their reasons. These must have the status given there, and a
refused import must change nothing.
"""

import json
from typing import Any

import pytest

from tests.importer.contents import contents
from tests.importer.intended_differences import BETTER
from tests.importer.recorded_calls import (
    RECORDED_CASES,
    Recording,
    comparable_export,
    comparable_flag,
    present_flag,
)

pytestmark = [pytest.mark.django_db, pytest.mark.exhaustive]

# The reference's names of errors and what they are here.
KINDS = {
    "PermissionError": "NoAccessError",
    "UnauthorizedError": "AuthenticationRequired",
    "ContentTypeError": "ContentTypeError",
}
# The members of an export in their order, in all recordings.
EXPORTED = (
    "features", "featureStrategies", "featureEnvironments", "contextFields", "featureTags", "segments",
    "tagTypes", "dependencies", "links",
)  # fmt: skip
# Said besides what the reference says.
OUR_WARNINGS = (
    "Please note:",
    "The following features are on and have no strategy that is on. They get the default strategy:",
)


@pytest.mark.parametrize("name", RECORDED_CASES)
def test_as_recorded(name: str, people: Any, api: Any) -> None:
    case = RECORDED_CASES[name]
    better = BETTER.get(name[:3])
    recording = Recording(case, people, api)
    recording.prepare()
    before = contents()
    response = recording.send()
    expected = case["response"]
    wanted = better.status if better else expected["status"]
    assert response.status_code == wanted, response.content[:2000]
    if response.status_code >= 400:
        assert contents() == before
        check_record(response, expected, exact=better is None)
    if better is None or better.same_state:
        check_answer(case, response)
        check_state(case, api)


def check_record(response: Any, expected: Any, *, exact: bool) -> None:
    record = json.loads(response.content)
    assert record["id"]
    assert record["message"]
    if exact and "error" in expected:
        default = "ValidationError" if expected["status"] == 400 else None
        assert record["name"] == KINDS.get(expected["error"], default), record


def check_answer(case: Any, response: Any) -> None:
    if response.status_code != 200:
        return
    path, recorded = case["request"]["path"], case["response"]["body"]
    if path.endswith("/import"):
        assert response.content == b""
    elif path.endswith("/export"):
        assert tuple(json.loads(response.content)) == EXPORTED
        assert comparable_export(json.loads(response.content)) == comparable_export(recorded)
    else:
        report = json.loads(response.content)
        report["warnings"] = [entry for entry in report["warnings"] if entry["message"] not in OUR_WARNINGS]
        assert report == recorded


def comparable_word(body: Any) -> Any:
    """A context field, a tag type or a list of tags, without its time and its place."""
    if "tags" in body:
        return sorted((tag["type"], tag["value"]) for tag in body["tags"])
    word = body.get("tagType", body)
    return {key: value for key, value in word.items() if key not in ("createdAt", "sortOrder")}


def check_state(case: Any, api: Any) -> None:
    for name, recorded in case["after"].items():
        if recorded.get("status") != 200:
            continue
        if name.startswith(("context:", "tag-type:", "tags:")):
            response = api["admin"].get(recorded["path"])
            assert comparable_word(json.loads(response.content)) == comparable_word(recorded["body"])
        elif name.startswith("feature:"):
            assert present_flag(recorded["body"]["name"]) == comparable_flag(recorded["body"])
        elif name.startswith("export"):
            document = api["admin"].post(recorded["path"], recorded["request_body"])
            if document.status_code == 400 and not recorded["body"]["features"]:
                continue  # the project or environment is unknown, which is an error here
            assert comparable_export(json.loads(document.content)) == comparable_export(recorded["body"])
