"""Both sides of a plan of Terraform (``terraform show -json FILE``), with the providers of Unleash and LaunchDarkly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from flagadmin.core import errors
from flagadmin.core.document import Document
from importer.converting import launchdarkly
from importer.converting.convert import convert
from importer.converting.files import validate
from importer.diff.compare import OPTIONS, Side, read_conversion, read_export

UNLEASH = ("unleash_feature_v2", "unleash_feature", "unleash_feature_enabling", "unleash_strategy_assignment")
LAUNCHDARKLY = ("launchdarkly_feature_flag", "launchdarkly_feature_flag_environment", "launchdarkly_segment")
Resources = list[tuple[str, Document]]
"""Resources by type, with their attributes."""


class Change(TypedDict):
    before: NotRequired[dict[str, Any] | None]
    after: NotRequired[dict[str, Any] | None]


class ResourceChange(TypedDict):
    address: NotRequired[str]
    type: str
    change: Change


_CHANGES = TypeAdapter(list[ResourceChange])


def is_plan(document: Any) -> bool:
    return isinstance(document, dict) and "resource_changes" in document


def read_plan(document: Mapping[str, Any]) -> tuple[Side, Side]:
    """The flags before and after. Raises ValidationError, also for a plan without flags."""
    listed = validate(_CHANGES, document["resource_changes"], "resource_changes")
    if not any(each["type"] in UNLEASH + LAUNCHDARKLY for each in listed):
        message = (
            f"has no flag of the providers of Unleash and LaunchDarkly ({', '.join(UNLEASH + LAUNCHDARKLY)})"
        )
        raise errors.ValidationError.at("resource_changes", message)
    before = [(each["type"], state) for each in listed if (state := each["change"].get("before")) is not None]
    after = [(each["type"], state) for each in listed if (state := each["change"].get("after")) is not None]
    return _read_state(before), _read_state(after)


def _read_state(resources: Resources) -> Side:
    try:
        side = _read_unleash(resources)
        side.add(_read_launchdarkly(resources), "resource_changes")
    except (KeyError, TypeError, AttributeError) as error:
        message = f"a flag lacks an attribute, or has another type than the providers': {error}"
        raise errors.ValidationError.at("resource_changes", message) from None
    return side


def _all(resources: Resources, *types: str) -> Iterator[Document]:
    return (state for type_, state in resources if type_ in types)


def _blocks(value: Any) -> list[Any]:
    """The blocks of an attribute, which are null if there are none."""
    return list(value or ())


# Unleash -----------------------------------------------------------------------------------------------------


def _read_unleash(resources: Resources) -> Side:
    """The flags as an export."""
    data: dict[str, list[Document]] = {
        name: [] for name in ("features", "featureEnvironments", "featureStrategies", "tagTypes")
    }
    places: dict[tuple[str, str], list[Document]] = {}
    enabled: dict[tuple[str, str], bool] = {}
    for flag in _all(resources, "unleash_feature_v2", "unleash_feature"):
        data["features"].append({"name": flag["name"]})
        for environment in _blocks(flag.get("environment")):
            place = flag["name"], environment["name"]
            enabled[place] = environment.get("enabled", True) is not False
            places[place] = _blocks(environment.get("strategy"))
    for assigned in _all(resources, "unleash_strategy_assignment"):
        place = assigned["feature_name"], assigned["environment"]
        places.setdefault(place, []).append({**assigned, "name": assigned["strategy_name"]})
    for switch in _all(resources, "unleash_feature_enabling"):
        enabled[switch["feature_name"], switch["environment"]] = switch.get("enabled") is not False
    known = {feature["name"] for feature in data["features"]}
    for name, _ in places.keys() | enabled.keys():
        if name not in known:  # its other resources are in another workspace
            known.add(name)
            data["features"].append({"name": name})
    side = read_export(data)
    for (name, environment), is_enabled in enabled.items():
        strategies = [_read_strategy(each) for each in places.get((name, environment), ())]
        side.flags[name]["environments"][environment] = {"enabled": is_enabled, "strategies": strategies}
    return side


def _read_strategy(block: Document) -> Document:
    return {
        "name": block["name"],
        "disabled": bool(block.get("disabled")),
        "parameters": {name: str(value) for name, value in (block.get("parameters") or {}).items()},
        "constraints": [
            {
                "contextName": each["context_name"],
                "operator": each["operator"],
                "values": _blocks(each.get("values")),
                **({"value": each["value"]} if each.get("value") is not None else {}),
                "inverted": bool(each.get("inverted")),
                "caseInsensitive": bool(each.get("case_insensitive")),
            }
            for each in _blocks(block.get("constraint"))
        ],
        "segments": [str(segment) for segment in _blocks(block.get("segments"))],
        "variants": [_read_variant(each) for each in _blocks(block.get("variant"))],
    }


def _read_variant(block: Document) -> Document:
    [payload] = _blocks(block.get("payload"))[:1] or [None]
    return {
        "name": block["name"],
        "weight": int(block.get("weight") or 0),
        "weightType": block.get("weight_type") or "variable",
        "stickiness": block.get("stickiness") or "default",
        **({"payload": {"type": payload["type"], "value": payload["value"]}} if payload else {}),
    }


# LaunchDarkly ------------------------------------------------------------------------------------------------


def _read_launchdarkly(resources: Resources) -> Side:
    """The flags as the list of LaunchDarkly's API, converted for each environment."""
    flags = {
        f"{each['project_key']}/{each['key']}": each for each in _all(resources, "launchdarkly_feature_flag")
    }
    by_environment: dict[str, list[Document]] = {}
    for each in _all(resources, "launchdarkly_feature_flag_environment"):
        by_environment.setdefault(each["env_key"], []).append(each)
    side = Side()
    for environment, targetings in by_environment.items():
        items = [_list_flag(flags.get(each.get("flag_id") or ""), each, environment) for each in targetings]
        segments = [
            _list_segment(each)
            for each in _all(resources, "launchdarkly_segment")
            if each["env_key"] == environment
        ]
        for each in targetings:
            if (key := each.get("flag_id") or "a flag that is new") not in flags:
                sentence = f"{key} cannot be compared: the plan does not have its resource launchdarkly_feature_flag."
                side.incomparable[key] = sentence
        document = {"items": [item for item in items if item], "segments": segments}
        conversion = convert(launchdarkly.read(document, environment), OPTIONS, {})
        side.add(read_conversion(conversion, environment), "resource_changes")
    return side


def _list_flag(flag: Document | None, targeting: Document, environment: str) -> Document | None:
    """A flag in the form of the API. None if the plan does not know it: LaunchDarkly numbers variations only there."""
    if flag is None:
        return None
    kind = flag.get("variation_type", "boolean")
    variations = [
        {"value": _read_value(each.get("value"), kind), "name": each.get("name") or None}
        for each in _blocks(flag.get("variations"))
    ]
    [fallthrough] = _blocks(targeting.get("fallthrough"))[:1] or [{}]
    state = {
        "on": bool(targeting.get("on")),
        "offVariation": targeting.get("off_variation"),
        "fallthrough": _read_served(fallthrough),
        "targets": [
            {"values": each["values"], "variation": each["variation"]}
            for each in _blocks(targeting.get("targets"))
        ],
        "contextTargets": [
            {"values": each["values"], "variation": each["variation"], "contextKind": each["context_kind"]}
            for each in _blocks(targeting.get("context_targets"))
        ],
        "rules": [
            {"clauses": _read_clauses(each), "description": each.get("description"), **_read_served(each)}
            for each in _blocks(targeting.get("rules"))
        ],
        "prerequisites": [
            {"key": each["flag_key"], "variation": each["variation"]}
            for each in _blocks(targeting.get("prerequisites"))
        ],
    }
    return {"key": flag["key"], "variations": variations, "environments": {environment: state}}


def _read_served(block: Document) -> Document:
    """Weights take precedence: the provider shows variation 0 beside them."""
    weights = _blocks(block.get("rollout_weights"))
    if not weights:
        return {"variation": block.get("variation") or 0}
    variations = [{"variation": index, "weight": weight} for index, weight in enumerate(weights)]
    by = {"bucketBy": block.get("bucket_by") or None, "contextKind": block.get("context_kind") or None}
    return {"rollout": {"variations": variations, **by}}


def _read_clauses(block: Document) -> list[Document]:
    return [
        {
            "attribute": each["attribute"],
            "op": each["op"],
            "values": [_read_value(value, each.get("value_type") or "string") for value in each["values"]],
            "negate": bool(each.get("negate")),
            "contextKind": each.get("context_kind") or None,
        }
        for each in _blocks(block.get("clauses"))
    ]


def _list_segment(segment: Document) -> Document:
    lists: Iterable[str] = ("included", "excluded")
    return {
        "key": segment["key"],
        **{name: _blocks(segment.get(name)) for name in lists},
        **{
            f"{name}Contexts": [
                {"contextKind": each["context_kind"], "values": each["values"]}
                for each in _blocks(segment.get(f"{name}_contexts"))
            ]
            for name in lists
        },
        "rules": [
            {"clauses": _read_clauses(rule), "weight": rule.get("weight") or None}
            for rule in _blocks(segment.get("rules"))
        ],
    }


def _read_value(value: Any, kind: str) -> Any:
    """The provider has all values as text."""
    if kind == "boolean":
        return value in (True, "true")
    if kind == "number":
        number = float(value)
        return int(number) if number.is_integer() else number
    return value
