"""After each recorded import, API responses about flags have the reference's members and values.

Ignored are ids, times, avatars, and orders that the reference leaves undefined.
"""

import json
import re
from copy import deepcopy
from typing import Any

import pytest

from tests.importer.intended_differences import BETTER
from tests.importer.recorded_calls import RECORDED_CASES, Recording

OURS = (
    re.compile(r"/api/admin/projects/[^/]+/features(\?.*)?$"),
    re.compile(r"/api/admin/projects/[^/]+/features/[^/]+$"),
    re.compile(r"/api/admin/features/[^/]+/tags$"),
    re.compile(r"/api/admin/search/features"),
)
CHANCE = {"id", "createdAt", "archivedAt", "imageUrl", "lastSeenAt"}
# No API reports change requests here, and the caller of the recordings is nobody in particular. There a stage is
# entered a moment after the flag is made, and only some answers have the colors of tags.
OTHERWISE = {"changeRequestIds", "createdBy", "collaborators", "lifecycle", "color"}


def looks(case: Any) -> list[Any]:
    """What was looked at afterwards that is an answer about flags."""
    return [look for look in case["after"].values() if any(ours.match(look.get("path", "")) for ours in OURS)]


CASES = {name: case for name, case in RECORDED_CASES.items() if name[:3] not in BETTER and looks(case)}
pytestmark = [pytest.mark.django_db, pytest.mark.exhaustive]


def comparable(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: comparable(inner) for key, inner in value.items() if key not in OTHERWISE}
        return {key: ("…" if inner else inner) if key in CHANCE else inner for key, inner in kept.items()}
    if isinstance(value, list):
        return sorted(
            (comparable(inner) for inner in value), key=lambda inner: json.dumps(inner, sort_keys=True)
        )
    return value


def without_places(document: Any) -> Any:
    """Sort orders and segment ids, which the reference leaves to chance or to its own numbers.

    Neither are links compared by their flag, which only some of its answers name.
    """
    for link in document.get("links", []) if isinstance(document, dict) else []:
        link.pop("feature", None)
    for environment in document.get("environments", []) if isinstance(document, dict) else []:
        for strategy in environment.get("strategies", []):
            strategy["segments"] = len(strategy["segments"])
            strategy.pop("sortOrder")
            # The reference keeps null where it was sent; here "disabled" is a yes or a no.
            strategy["disabled"] = bool(strategy["disabled"])
    return document


@pytest.mark.parametrize("name", CASES)
def test_as_recorded(name: str, people: Any, api: Any) -> None:
    case = CASES[name]
    recording = Recording(case, people, api)
    recording.prepare()
    recording.send()
    for look in looks(case):
        response = api["admin"].get(look["path"])
        assert response.status_code == look["status"], look["path"]
        if look["status"] == 200:
            ours, recorded = without_places(response.json()), without_places(deepcopy(look["body"]))
            assert comparable(ours) == comparable(recorded), look["path"]
