"""Segments, tag types and context fields in an import obey the rules of the API."""

import json
from typing import Any

import pytest

from projects.models import ContextField, Segment, TagType
from tests.support.import_bodies import body, strategy

pytestmark = pytest.mark.django_db
IMPORT = "/api/admin/features-batch/import"
LONG = "x" * 101
OF_KIND: dict[str, tuple[str, Any]] = {
    "tagTypes": ("/api/admin/tag-types", TagType),
    "contextFields": ("/api/admin/context", ContextField),
    "segments": ("/api/admin/segments", Segment),
}
BAD = [
    ("tagTypes", {"name": "a/b c"}, "name"),
    ("tagTypes", {"name": "x"}, "name"),
    ("tagTypes", {"name": "y" * 51}, "name"),
    ("tagTypes", {"name": "..", "icon": "i" * 256}, "icon"),
    ("contextFields", {"name": "a/b c"}, "name"),
    ("contextFields", {"name": LONG}, "name"),
    ("contextFields", {"name": "tier", "legalValues": [{"value": LONG}]}, "legalValues[0].value"),
    (
        "contextFields",
        {"name": "tier", "legalValues": [{"value": "a"}, {"value": "a"}]},
        "legalValues[1].value",
    ),
    ("segments", {"name": " ", "constraints": []}, "name"),
    ("segments", {"name": "s" * 256, "constraints": []}, "name"),
]


def sent(kind, document):
    """A file whose flag uses it."""
    if kind == "segments":
        document, uses = {"id": 7, **document}, {"featureStrategies": [strategy("one", segments=[7])]}
    elif kind == "tagTypes":
        uses = {"featureTags": [{"featureName": "one", "tagType": document["name"], "tagValue": "web"}]}
    else:
        uses = {}
    return body("one", **{kind: [document]}, **uses)


@pytest.mark.parametrize(("kind", "document", "path"), BAD, ids=lambda value: str(value)[:40])
def test_refuses_what_the_api_refuses(kind, document, path, api):
    address, model = OF_KIND[kind]
    before = model.objects.count()
    alone = json.loads(api["admin"].post(address, document).content)
    by_api = {problem["path"]: problem["message"] for problem in alone["details"]}

    response = api["admin"].post(IMPORT, sent(kind, document))
    assert response.status_code == 400
    details = json.loads(response.content)["details"]
    by_import = {problem["path"]: problem["message"] for problem in details}
    message = by_import[f"data.{kind}[0].{path}"]
    assert path in by_api
    assert kind == "segments" or by_api[path] in message  # a segment's name is refused by its field first
    assert model.objects.count() == before


def test_takes_what_the_api_takes(api):
    parts = {
        "tagTypes": [{"name": "ab~c.d", "color": "#00ff00"}],
        "featureTags": [{"featureName": "one", "tagType": "ab~c.d", "tagValue": "web"}],
        "contextFields": [{"name": "tier-2", "legalValues": [{"value": "x" * 100}]}],
    }
    assert api["admin"].post(IMPORT, body("one", **parts)).status_code == 200
    assert api["admin"].get("/api/admin/tag-types/ab~c.d").status_code == 200
    assert api["admin"].get("/api/admin/context/tier-2").status_code == 200
