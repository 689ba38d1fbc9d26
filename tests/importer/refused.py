"""Bodies that are refused, each with the path and a part of the message: for their schema, and for their values."""

from typing import Any

from tests.support.import_bodies import body, strategy, switch


def constraint(operator: str, **fields: Any) -> dict[str, Any]:
    return strategy("one", constraints=[{"contextName": "plan", "operator": operator, **fields}])


def variant(name: str = "a", **fields: Any) -> dict[str, Any]:
    return {"name": name, "weight": 1000, "weightType": "variable", "stickiness": "default"} | fields


def with_strategy(document: dict[str, Any], **data: Any) -> dict[str, Any]:
    return body("one", featureStrategies=[document], **data)


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
    "a color that is none": (
        body("one", tagTypes=[{"name": "team", "color": "red"}]),
        "data.tagTypes[0].color",
        "a color like #00AAFF",
    ),
}
VALUES = {
    "an unknown environment": (
        body("one", environment="staging"),
        "environment",
        "Available: development, production.",
    ),
    "a name with a space": (
        body("one", "apple pay"),
        "data.features[1].name",
        '"apple pay": Spaces are not allowed. Use apple-pay?',
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
        "invalid JSON",
    ),
    "a new segment twice, with other constraints": (
        with_strategy(
            strategy("one", segments=[7]),
            segments=[
                {"id": 7, "name": "vip", "constraints": []},
                {
                    "id": 8,
                    "name": "vip",
                    "constraints": [{"contextName": "userId", "operator": "IN", "values": ["1"]}],
                },
            ],
        ),
        "data.segments[1].name",
        "segment vip is listed more than once, with other constraints",
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
# The operator, what it compares with, the place below the constraint, and the message.
CONSTRAINTS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a number that is none": ("NUM_GT", {"value": "abc"}, "value", "one: abc is not a number"),
    "a date that is none": ("DATE_AFTER", {"value": "yesterday"}, "value", "yesterday is not a date"),
    "a version that is none": ("SEMVER_EQ", {"value": "v1.2.3"}, "value", "v1.2.3 is not a version"),
    "a regular expression that is none": (
        "REGEX",
        {"value": "(["},
        "value",
        "is not a valid regular expression",
    ),
    "a network that is none": (
        "IN_CIDR",
        {"values": ["10.0.0.0/99"]},
        "values[0]",
        "is not an address or network",
    ),
    "an operator without its value": ("NUM_GT", {}, "value", "NUM_GT needs a value"),
    "no values": ("IN", {"values": []}, "values", "IN needs at least one value"),
}
VALUES |= {
    label: (with_strategy(constraint(operator, **fields)), f"{FIRST}.constraints[0].{place}", message)
    for label, (operator, fields, place, message) in CONSTRAINTS.items()
}
PARENTS = {
    "a missing parent": ("ghost", "flag ghost not found"),
    "a parent that is the child": ("one", "one cannot depend on itself"),
    "an archived parent": ("old", "old is archived; a parent must be active"),
    "a parent in another project": ("elsewhere", "elsewhere is in project default"),
}
VALUES |= {
    label: (
        body("one", dependencies=[{"feature": "one", "dependencies": [{"feature": parent}]}]),
        "data.dependencies[0].dependencies[0].feature",
        message,
    )
    for label, (parent, message) in PARENTS.items()
}
VALUES |= {
    f"an unlisted segment {key}": (
        with_strategy(strategy("one", segments=[key])),
        f"{FIRST}.segments[0]",
        f"segment {key} not found in data.segments",
    )
    for key in (7, 1234567)
}
