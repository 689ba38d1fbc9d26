"""A flag that goes to some percentage of users, in the file of each product. Writers take a folder and return the file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.importer.converting.launchdarkly_flags import clause, flag, listed

NAME = "new-checkout"
GERMANS = {"contextName": "country", "operator": "IN", "values": ["DE"]}


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def make_strategy(percent: int, *constraints: Any, **more: Any) -> Any:
    parameters = {"rollout": str(percent), "stickiness": "default", "groupId": NAME}
    return {"name": "flexibleRollout", "parameters": parameters, "constraints": [*constraints], **more}


def as_code(folder: Path, percent: int, *constraints: Any, **more: Any) -> Path:
    write(folder / "flagadmin.yaml", "projects: [checkout]\n")
    production = {"enabled": True, "strategies": [make_strategy(percent, *constraints)]}
    document = {"name": NAME, "environments": {"production": production}, **more}
    write(folder / "flags" / "checkout" / f"{NAME}.json", document)
    return folder


def export(folder: Path, percent: int, *constraints: Any) -> Path:
    document = {
        "features": [{"name": NAME, "type": "release"}],
        "featureStrategies": [make_strategy(percent, *constraints, featureName=NAME, segments=[7])],
        "featureEnvironments": [
            {"name": NAME, "featureName": NAME, "environment": "production", "enabled": True}
        ],
        "segments": [{"id": 7, "name": "nordics"}],
        "tagTypes": [],
    }
    return write(folder / "export.json", document)


def flagd(folder: Path, percent: int) -> Path:
    targeting = {"fractional": [["on", percent], ["off", 100 - percent]]}
    document = {
        "state": "ENABLED",
        "variants": {"on": True, "off": False},
        "defaultVariant": "off",
        "targeting": {"if": [{"in": [{"var": "country"}, ["DE"]]}, targeting, "off"]},
    }
    return write(folder / "flagd.json", {"flags": {NAME: document}})


def split(percent: int) -> Any:
    weights = [
        {"variation": 0, "weight": percent * 1000},
        {"variation": 1, "weight": 100_000 - percent * 1000},
    ]
    return {"variations": weights}


def launchdarkly(folder: Path, percent: int) -> Path:
    rule = {"id": "r", "clauses": [clause("country", "in", "DE")], "rollout": split(percent)}
    return write(folder / "flags.json", listed({NAME: flag(rule)}))


def launchdarkly_sdk(folder: Path, percent: int) -> Path:
    return write(folder / "sdk.json", {"flags": {NAME: flag(fallthrough=split(percent)) | {"key": NAME}}})


def flagsmith(folder: Path, percent: int) -> Path:
    split = {
        "type": "ALL",
        "rules": [{"type": "ALL", "conditions": [{"operator": "PERCENTAGE_SPLIT", "value": str(percent)}]}],
    }
    state = {"feature": {"id": 1, "name": NAME}, "feature_state_value": None, "featurestate_uuid": "s1"}
    document = {
        "api_key": "key",
        "feature_states": [state | {"enabled": False}],
        "project": {
            "segments": [
                {"id": 3, "name": "some", "rules": [split], "feature_states": [state | {"enabled": True}]}
            ]
        },
    }
    return write(folder / "flagsmith.json", document)


def growthbook(folder: Path, percent: int) -> Path:
    rule = {"force": True, "coverage": percent / 100, "hashAttribute": "id", "condition": {"country": "DE"}}
    document = {"features": {NAME: {"defaultValue": False, "rules": [rule]}}}
    return write(folder / "growthbook.json", document)


def gofeatureflag(folder: Path, percent: int) -> Path:
    text = f"""
{NAME}:
  variations: {{"on": true, "off": false}}
  targeting:
    - query: country eq "DE"
      percentage: {{"on": {percent}, "off": {100 - percent}}}
  defaultRule: {{variation: "off"}}
"""
    return write(folder / "flags.goff.yaml", text)


def feature_v2(percent: int) -> Any:
    constraint = {
        "context_name": "country",
        "operator": "IN",
        "values": ["DE"],
        "inverted": None,
        "value": None,
    }
    strategy = make_strategy(percent) | {"constraint": [constraint], "segments": None, "variant": None}
    strategy.pop("constraints")
    production = {"name": "production", "enabled": True, "strategy": [strategy]}
    return [("unleash_feature_v2", {"name": NAME, "project_id": "default", "environment": [production]})]


def assigned(percent: int) -> Any:
    place = {"feature_name": NAME, "project_id": "default", "environment": "production"}
    strategy = make_strategy(percent)
    return [
        ("unleash_feature", {"name": NAME, "project_id": "default"}),
        (
            "unleash_strategy_assignment",
            {**place, "strategy_name": strategy["name"], "parameters": strategy["parameters"]},
        ),
        ("unleash_feature_enabling", {**place, "enabled": True}),
    ]


def targeted(percent: int) -> Any:
    germans = {"attribute": "country", "op": "in", "values": ["DE"], "value_type": "string", "negate": False}
    weights = [percent * 1000, 100_000 - percent * 1000]
    rule = {
        "clauses": [germans],
        "variation": 0,
        "rollout_weights": weights,
        "bucket_by": "",
        "description": "",
    }
    targeting = {
        "flag_id": f"shop/{NAME}",
        "env_key": "production",
        "on": True,
        "off_variation": 1,
        "fallthrough": [{"variation": 1, "rollout_weights": None}],
        "rules": [rule],
        "targets": None,
    }
    variations = [{"value": "true", "name": ""}, {"value": "false", "name": ""}]
    known = {"project_key": "shop", "key": NAME, "variation_type": "boolean", "variations": variations}
    return [("launchdarkly_feature_flag", known), ("launchdarkly_feature_flag_environment", targeting)]


Side = Callable[[Path, int], Path]
SIDES: list[Side] = [
    as_code,
    export,
    flagd,
    launchdarkly,
    launchdarkly_sdk,
    flagsmith,
    growthbook,
    gofeatureflag,
]
PLANS: list[Callable[[int], Any]] = [feature_v2, assigned, targeted]


def write_plan(path: Path, before: Any, after: Any) -> Path:
    changes = [
        {
            "address": f"{type_}.it",
            "type": type_,
            "change": {"actions": ["update"], "before": old, "after": new},
        }
        for (type_, old), (_, new) in zip(before, after, strict=True)
    ]
    return write(path, {"format_version": "1.2", "resource_changes": changes})
