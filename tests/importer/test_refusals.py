"""Every import error names its JSON path, the item and the valid values, and nothing is written."""

import json
from typing import Any

import pytest

from projects import models as m
from tests.importer.contents import contents
from tests.support.import_bodies import body, strategy, switch

pytestmark = pytest.mark.django_db
IMPORT = "/api/admin/features-batch/import"
VALIDATE = "/api/admin/features-batch/validate"


def constraint(operator: str, **fields: Any) -> dict[str, Any]:
    return strategy("one", constraints=[{"contextName": "plan", "operator": operator, **fields}])


def variant(name: str = "a", **fields: Any) -> dict[str, Any]:
    return {"name": name, "weight": 1000, "weightType": "variable", "stickiness": "default"} | fields


def with_strategy(given: dict[str, Any], **data: Any) -> dict[str, Any]:
    return body("one", featureStrategies=[given], **data)


FIRST = "data.featureStrategies[0]"
SCHEMA = {
    "a wrong type": (
        body("one", featureTags=[{"featureName": ["one"]}]),
        "data.featureTags[0].featureName",
        'must be a string, not ["one"]',
    ),
    "a missing member": (with_strategy({"featureName": "one"}), f"{FIRST}.name", "one: is required"),
    "an unknown key": (
        with_strategy(strategy("one", constrains=[])),
        f"{FIRST}.constrains",
        "one: is not a valid key. Did you mean constraints?",
    ),
    "an unknown operator": (
        with_strategy(constraint("EQUALS", values=["x"])),
        f"{FIRST}.constraints[0].operator",
        "NOT_IN",
    ),
    "a weight beyond 1000": (
        with_strategy(strategy("one", variants=[variant(weight=1001)])),
        f"{FIRST}.variants[0].weight",
        "must be an integer from 0 to 1000, not 1001",
    ),
    "an unknown payload type": (
        with_strategy(strategy("one", variants=[variant(payload={"type": "xml", "value": "x"})])),
        f"{FIRST}.variants[0].payload.type",
        "json, csv, string, number",
    ),
    "no list": (body("one") | {"data": {"features": {}}}, "data.features", "must be a list, not {}"),
    "a parameter that is an object": (
        with_strategy(strategy("one", parameters={"rollout": {"a": 1}})),
        f"{FIRST}.parameters.rollout",
        "must be a string",
    ),
    "a colour that is none": (
        body("one", tagTypes=[{"name": "team", "color": "red"}]),
        "data.tagTypes[0].color",
        "a colour like #00AAFF",
    ),
}
VALUES = {
    "an unknown project": (body("one", project="nowhere"), "project", "Available: default, named, shop."),
    "an unknown environment": (
        body("one", environment="staging"),
        "environment",
        "Available: development, production.",
    ),
    "a name with a space": (
        body("one", "apple pay"),
        "data.features[1].name",
        '"apple pay": spaces are not allowed. Allowed: letters, digits, - . _ ~',
    ),
    "a name outside the pattern": (
        body("web-one", project="named"),
        "data.features[0].name",
        "web-one does not match the project's naming pattern app-.+. Example: app-search.",
    ),
    "a flag of another project": (
        body("elsewhere"),
        "data.features[0].name",
        "elsewhere already exists in project default",
    ),
    "a flag twice": (body("one", "two", "one"), "data.features[2].name", "one is listed more than once"),
    "an unknown strategy type": (
        with_strategy(strategy("one") | {"name": "hostGroup"}),
        f"{FIRST}.name",
        "one: strategy type hostGroup not found",
    ),
    "a number that is none": (
        with_strategy(constraint("NUM_GT", value="abc")),
        f"{FIRST}.constraints[0].value",
        "one: abc is not a number",
    ),
    "a date that is none": (
        with_strategy(constraint("DATE_AFTER", value="yesterday")),
        f"{FIRST}.constraints[0].value",
        "yesterday is not a date",
    ),
    "a version that is none": (
        with_strategy(constraint("SEMVER_EQ", value="v1.2.3")),
        f"{FIRST}.constraints[0].value",
        "v1.2.3 is not a version",
    ),
    "a regular expression that is none": (
        with_strategy(constraint("REGEX", value="([")),
        f"{FIRST}.constraints[0].value",
        "is not a valid regular expression",
    ),
    "a network that is none": (
        with_strategy(constraint("IN_CIDR", values=["10.0.0.0/99"])),
        f"{FIRST}.constraints[0].values[0]",
        "is not an address or network",
    ),
    "an operator without its value": (
        with_strategy(constraint("NUM_GT")),
        f"{FIRST}.constraints[0].value",
        "NUM_GT needs a value",
    ),
    "no values": (
        with_strategy(constraint("IN", values=[])),
        f"{FIRST}.constraints[0].values",
        "IN needs at least one value",
    ),
    "an illegal value": (
        with_strategy(
            constraint("IN", values=["gold", "tin"]),
            contextFields=[{"name": "plan", "legalValues": [{"value": "gold"}]}],
        ),
        f"{FIRST}.constraints[0].values[1]",
        "tin is not a legal value of plan. Available: gold",
    ),
    "too many constraints": (
        with_strategy(
            strategy("one", constraints=[{"contextName": "a", "operator": "IN", "values": ["1"]}] * 31)
        ),
        f"{FIRST}.constraints",
        "must have at most 30 constraints, not 31",
    ),
    "too many strategies": (
        body("one", featureStrategies=[strategy("one")] * 31),
        FIRST,
        "must have at most 30 strategies in an environment, not 31",
    ),
    "only fixed variants": (
        with_strategy(strategy("one", variants=[variant(weightType="fix")])),
        f"{FIRST}.variants",
        'needs weightType "variable"',
    ),
    "a variant twice": (
        with_strategy(strategy("one", variants=[variant("a"), variant("a")])),
        f"{FIRST}.variants[1].name",
        "variant a is listed more than once",
    ),
    "a payload that is not JSON": (
        body(
            "one",
            featureEnvironments=[switch("one", variants=[variant(payload={"type": "json", "value": "{"})])],
        ),
        "data.featureEnvironments[0].variants[0].payload.value",
        "must be valid JSON",
    ),
    "an unlisted segment": (
        with_strategy(strategy("one", segments=[7])),
        f"{FIRST}.segments[0]",
        "segment 7 not found in data.segments",
    ),
    "an unknown segment": (
        with_strategy(strategy("one", segments=[7]), segments=[{"id": 7, "name": "vip-users"}]),
        "data.segments[0].name",
        "segment vip-users does not exist. Used by: one. Create it, or exclude these flags.",
    ),
    "a segment twice": (
        with_strategy(
            strategy("one", segments=[7, 7]), segments=[{"id": 7, "name": "vip", "constraints": []}]
        ),
        f"{FIRST}.segments[1]",
        "segment vip is listed more than once",
    ),
    "an unknown tag type": (
        body("one", featureTags=[{"featureName": "one", "tagType": "team", "tagValue": "web"}]),
        "data.featureTags[0].tagType",
        "tag type team not found. Available: simple",
    ),
    "a short tag": (
        body("one", featureTags=[{"featureName": "one", "tagType": "simple", "tagValue": "w"}]),
        "data.featureTags[0].tagValue",
        "2 to 50 characters",
    ),
    "a tag of nobody's": (
        body(featureTags=[{"featureName": "ghost", "tagType": "simple", "tagValue": "web"}]),
        "data.featureTags[0]",
        "flag ghost is neither in project shop nor in data.features",
    ),
    "a missing parent": (
        body("one", dependencies=[{"feature": "one", "dependencies": [{"feature": "ghost"}]}]),
        "data.dependencies[0].dependencies[0].feature",
        "flag ghost not found",
    ),
    "a parent that is the child": (
        body("one", dependencies=[{"feature": "one", "dependencies": [{"feature": "one"}]}]),
        "data.dependencies[0].dependencies[0].feature",
        "one cannot depend on itself",
    ),
    "a chain": (
        body(
            "one",
            "two",
            "three",
            dependencies=[
                {"feature": "one", "dependencies": [{"feature": "two"}]},
                {"feature": "two", "dependencies": [{"feature": "three"}]},
            ],
        ),
        "data.dependencies[0].dependencies[0].feature",
        "two itself depends on three",
    ),
    "an archived parent": (
        body("one", dependencies=[{"feature": "one", "dependencies": [{"feature": "old"}]}]),
        "data.dependencies[0].dependencies[0].feature",
        "old is archived; a parent must be active",
    ),
    "a parent in another project": (
        body("one", dependencies=[{"feature": "one", "dependencies": [{"feature": "elsewhere"}]}]),
        "data.dependencies[0].dependencies[0].feature",
        "elsewhere is in project default",
    ),
    "switched on and archived": (
        body("one", featureEnvironments=[switch("one")])
        | {
            "data": body(featureEnvironments=[switch("one")])["data"]
            | {"features": [{"name": "one", "archived": True}]}
        },
        "data.featureEnvironments[0].enabled",
        "one cannot be enabled because the file archives it",
    ),
    "one flag switched both ways": (
        body("one", featureEnvironments=[switch("one"), switch("one", enabled=False)]),
        "data.featureEnvironments[1]",
        "one has another entry with other content, data.featureEnvironments[0]",
    ),
    "a context field twice": (
        body("one", contextFields=[{"name": "tier"}, {"name": "tier"}]),
        "data.contextFields[1].name",
        "listed more than once",
    ),
    "legal values that are not here": (
        body("one", contextFields=[{"name": "userId", "legalValues": [{"value": "7"}]}]),
        "data.contextFields[0].legalValues",
        "7 is not a legal value of context field userId",
    ),
    "an address that is none": (
        body("one", links=[{"feature": "one", "links": [{"url": "javascript:alert(1)"}]}]),
        "data.links[0].links[0].url",
        "one:",
    ),
    "no room for the default strategy": (
        body(
            "one",
            featureStrategies=[strategy("one", disabled=True)] * 30,
            featureEnvironments=[{"name": "one", "enabled": True}],
        ),
        "data.featureEnvironments[0].enabled",
        "has 30 strategies already, the limit",
    ),
    "more flags than the project may have": (
        body("app-one", "app-two", project="named"),
        "data.features",
        "exceeding the maximum limit of 1",
    ),
}


@pytest.fixture(autouse=True)
def world(shop: m.Project, api: Any) -> None:
    from tests.support.cast import make_project

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
