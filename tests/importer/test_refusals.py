"""Every import error names its JSON path, the item and the valid values, and nothing is written."""

import json
from typing import Any

import pytest
from django.utils import timezone

from projects import models as m
from tests.importer.contents import contents
from tests.importer.refused import SCHEMA, VALUES
from tests.support.cast import make_project
from tests.support.import_bodies import body, strategy
from tests.support.records import refused

pytestmark = pytest.mark.django_db
IMPORT = "/api/admin/features-batch/import"
VALIDATE = "/api/admin/features-batch/validate"
COMPARE = "/api/admin/features-batch/compare"


@pytest.fixture(autouse=True)
def world(shop: m.Project, api: Any) -> None:
    make_project("named", naming_pattern="app-.+", naming_example="app-search", flag_limit=1)
    assert api["admin"].post(IMPORT, body("elsewhere", project="default")).status_code == 200
    assert api["admin"].post(IMPORT, body("old")).status_code == 200
    m.Flag.objects.filter(name="old").update(archived_at="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("sent", "path", "message"), [*SCHEMA.values(), *VALUES.values()], ids=[*SCHEMA, *VALUES]
)
def test_is_refused_with_its_place(sent: Any, path: str, message: str, api: Any) -> None:
    before = contents()
    response = api["admin"].post(IMPORT, sent)
    record = json.loads(response.content)
    assert (response.status_code, record["name"]) == (400, "ValidationError"), record
    assert any(message in problem["message"] for problem in record["details"] if problem["path"] == path), (
        record
    )
    assert contents() == before


@pytest.mark.parametrize("sent", [case[0] for case in SCHEMA.values()], ids=SCHEMA)
def test_validate_refuses_a_wrong_schema_the_same_way(sent: Any, api: Any) -> None:
    imported = json.loads(api["admin"].post(IMPORT, sent).content)
    response = api["admin"].post(VALIDATE, sent)
    assert response.status_code == 400
    assert json.loads(response.content)["details"] == imported["details"]


@pytest.mark.parametrize("sent", [case[0] for case in VALUES.values()], ids=VALUES)
def test_validate_tells_of_wrong_values(sent: Any, api: Any) -> None:
    response = api["admin"].post(VALIDATE, sent)
    assert response.status_code == 200
    assert json.loads(response.content)["errors"]


def test_all_problems_come_at_once(api: Any) -> None:
    sent = body(
        "apple pay",
        "elsewhere",
        featureStrategies=[strategy("apple pay") | {"name": "hostGroup"}, strategy("ghost", segments=[3])],
    )
    details = json.loads(api["admin"].post(IMPORT, sent).content)["details"]
    assert {problem["path"] for problem in details} == {
        "data.features[0].name",
        "data.features[1].name",
        "data.featureStrategies[0].name",
        "data.featureStrategies[1]",
    }


def test_several_faults_of_the_schema_come_at_once(api: Any) -> None:
    sent = {"project": 5, "data": {"features": [{}, 3], "featureStrategies": "x"}}
    details = json.loads(api["admin"].post(IMPORT, sent).content)["details"]
    assert {problem["path"] for problem in details} == {
        "environment",
        "data.features[0].name",
        "data.features[1]",
        "data.featureStrategies",
        "data.tagTypes",
    }


@pytest.mark.parametrize("name", ["{}", 'a "{}"'], ids=["the schema's", "a value's"])
def test_of_very_many_problems_the_first_are_listed(name: str, api: Any) -> None:
    sent = body()
    stale = "odd" if name == "{}" else False
    sent["data"]["features"] = [{"name": name.format(n), "stale": stale} for n in range(3000)]
    record = json.loads(api["admin"].post(IMPORT, sent).content)
    assert record["message"] == "The request has 3,000 problems. The first 100 are listed in details."
    assert record["details"][-1]["message"] == "and 2,900 more"


def test_a_flag_of_an_unreadable_project_is_not_located(api: Any, people: Any) -> None:
    m.Flag.objects.filter(name="elsewhere").update(project_id="named")
    record = json.loads(api["owner"].post(IMPORT, body("elsewhere")).content)
    assert "elsewhere already exists in another project" in record["message"]
    assert "named" not in json.dumps(record)


@pytest.mark.parametrize("sent", [b"", b"{", b"[]", b"null", b'"x"', b'{"project":"\\u0000"}', b"\xff"])
def test_bodies_that_are_none(sent: bytes, api: Any) -> None:
    for path in (IMPORT, VALIDATE):
        response = api["admin"].post(path, data=sent, content_type="application/json")
        assert response.status_code == 400
        assert json.loads(response.content)["name"] == "ValidationError"


def test_another_content_type(api: Any) -> None:
    response = api["admin"].post(
        IMPORT, data="project=shop", content_type="application/x-www-form-urlencoded"
    )
    assert response.status_code == 415


def nested(depth: int, inner: str = "") -> bytes:
    value = "[" * depth + inner + "]" * depth
    return f'{{"project":{value},"environment":"development","data":{{}}}}'.encode()


ODD = {
    "nested deeply": nested(500),
    "nested too deeply": nested(3000),
    "a NUL character deep down": nested(900, '"\\u0000"'),
    "a lone surrogate": b'{"project":"\\ud800"}',
    "a number that is none": b'{"project":NaN}',
    "an endless number": b'{"project":1e999}',
    "a very long key": b'{"' + b"k" * 300_000 + b'":1}',
    "a very long project": b'{"project":"' + b"p" * 300_000 + b'","environment":"x","data":{}}',
    "many wrong entries": b'{"project":"shop","environment":"development","data":{"features":['
    + b",".join([b"1"] * 50_000)
    + b'],"featureStrategies":[],"tagTypes":[]}}',
    "many wrong names": b'{"project":"shop","environment":"development","data":{"features":['
    + b",".join(b'{"name":"not a name %d"}' % n for n in range(5_000))
    + b'],"featureStrategies":[],"tagTypes":[]}}',
}


@pytest.mark.parametrize("sent", ODD.values(), ids=ODD)
def test_odd_bodies_get_a_short_refusal(sent: bytes, api: Any) -> None:
    response = api["admin"].post(IMPORT, data=sent, content_type="application/json")
    assert response.status_code == 400, response.content[:500]
    assert json.loads(response.content)["name"] == "ValidationError"
    assert len(response.content) < 700_000


def test_too_large(api: Any, monkeypatch: Any) -> None:
    from importer.api import BatchViewSet

    monkeypatch.setattr(BatchViewSet, "body_limit", 100)
    response = api["admin"].post(IMPORT, body("one"))
    assert (response.status_code, json.loads(response.content)["name"]) == (413, "PayloadTooLargeError")


def test_faults_far_down_a_long_list_keep_their_places(api: Any) -> None:
    sent = body()
    sent["data"] |= {"features": [{"name": f"n{n}"} for n in range(2500)], "odd": 1}
    sent["data"]["features"][2400] = {"stale": False}
    record = json.loads(api["admin"].post(IMPORT, sent).content)
    assert {problem["path"] for problem in record["details"]} == {"data.odd", "data.features[2400].name"}
    assert record["message"].startswith("The request has 2 problems.")


@pytest.mark.parametrize("path", [IMPORT, COMPARE])
@pytest.mark.parametrize(
    ("project", "message"),
    [
        ("nope", "Project nope not found. Available: default, named, shop."),
        ("retired", "Project retired is archived. Revive it first."),
    ],
)
def test_without_an_active_project_nothing_is_found(path: str, project: str, message: str, api: Any) -> None:
    if project == "retired":
        make_project("retired", archived_at=timezone.now())
    before = contents()
    sent = body("one", project=project, environment="nowhere")
    response = api["admin"].post(path, sent)
    record = json.loads(response.content)
    assert (response.status_code, record["name"], record["message"]) == (404, "NotFoundError", message)
    assert [problem["path"] for problem in record["details"]] == ["project", "environment"]
    assert contents() == before
    errors = json.loads(api["admin"].post(VALIDATE, sent).content)["errors"]
    assert errors[0] == {"message": message, "affectedItems": []}


def test_the_last_flag_that_there_is_room_for(api: Any, settings: Any) -> None:
    assert api["admin"].post(VALIDATE, body("app-one", project="named")).json()["errors"] == []

    settings.FLAGS_LIMIT = m.Flag.objects.active().count() + 1
    assert api["admin"].post(IMPORT, body("one")).status_code == 200
    record = refused(api["admin"].post(IMPORT, body("two")), 400, "ValidationError")
    limit = settings.FLAGS_LIMIT
    assert f"1 new flags would make {limit + 1} in all; at most {limit} are allowed" in record["message"]
