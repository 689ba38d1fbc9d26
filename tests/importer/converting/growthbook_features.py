"""Features of GrowthBook that are converted exactly."""

from typing import Any

FIELDS = {
    "country": ["NO", "SE", "DE", None],
    "plan": ["free", "Pro", "enterprise", None],
    "email": ["ada@example.org", "bob@example.com", "eve@example.org", None],
    "age": [0, 5, 17, 18, 19, 65, None],
    "version": ["1.2.3", "1.2.4-rc.1", "2.0.0-alpha", "2.0.0", "2.1.7", None],
    "beta": [True, False, None],
}


def feature(*rules: Any, default: Any = False) -> Any:
    return {"defaultValue": default, "rules": [*rules]}


def when(condition: Any, force: Any = True, **more: Any) -> Any:
    return {"id": "r", "condition": condition, "force": force, **more}


def gate(key: str, value: Any) -> Any:
    return {"parentConditions": [{"id": key, "condition": {"value": value}, "gate": True}]}


FEATURES = {
    "on": {"defaultValue": True},
    "off": {"defaultValue": False},
    "nothing": {"defaultValue": None},
    "equal": feature(when({"country": "NO"})),
    "not-equal": feature(when({"country": {"$ne": "NO"}})),
    "members": feature(when({"country": {"$in": ["NO", "SE"]}, "plan": {"$nin": ["free"]}})),
    "any-case": feature(when({"plan": {"$ini": ["PRO", "x.y"]}})),
    "either": feature(when({"$or": [{"country": "NO"}, {"plan": "Pro"}]})),
    "neither": feature(when({"$nor": [{"country": "NO"}, {"plan": "Pro"}]})),
    "not-both": feature(when({"$not": {"country": "NO", "plan": "Pro"}})),
    "both": feature(when({"$and": [{"country": "NO"}, {"age": {"$gt": 5, "$lte": 18}}]})),
    "not-value": feature(when({"age": {"$not": {"$gte": 18}}})),
    "number": feature(when({"age": 18})),
    "boolean": feature(when({"beta": True}), when({"beta": {"$eq": False}, "country": "NO"})),
    "exists": feature(when({"email": {"$exists": True}})),
    "pattern": feature(when({"email": {"$regex": "^(ada|bob)@"}})),
    "any-case-pattern": feature(when({"email": {"$regexi": "^ADA"}})),
    "versions": feature(when({"version": {"$vgte": "1.2.4", "$vlt": "2.1.0"}})),
    "not-version": feature(when({"version": {"$vne": "2.0.0"}})),
    "turned-off-first": feature(when({"country": "DE"}, False), when({"plan": "Pro"}, False), default=True),
    "group": feature(when({"id": {"$inGroup": "early"}})),
    "not-group": feature(when({"id": {"$notInGroup": "early"}, "country": "NO"})),
    "typed-group": feature(when({"$savedGroup": {"id": "nordic"}})),
    "texts": feature(when({"country": "NO"}, "red"), when({"country": "DE"}, "blue"), default="green"),
    "null-default": feature(when({"country": "NO"}, "red"), default=None),
    "objects": feature(when({"country": "NO"}, {"a": 1}), default={"a": 2.5}),
    "numbers": feature(when({"country": "NO"}, 1), default=0),
    "gated": feature(gate("equal", True), default=True),
    "gated-by-off": feature(gate("equal", False), when({"plan": "Pro"})),
    "gated-by-text": feature(gate("texts", "blue"), default="x"),
    "all-of-it": feature({"force": True, "coverage": 1, "hashAttribute": "id"}),
}  # fmt: skip
GROUPS = {
    "early": ["user-1", "user-2"],
    "nordic": {"type": "condition", "condition": {"country": {"$in": ["NO", "SE"]}}},
}
DOCUMENT = {"features": FEATURES, "savedGroups": GROUPS}
