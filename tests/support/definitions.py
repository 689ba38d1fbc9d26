"""Builds flag, strategy and constraint definitions in the engine's input format."""

from typing import Any

SEGMENTS = {
    1: {
        "id": 1,
        "name": "beta-testers",
        "constraints": [{"contextName": "userId", "operator": "IN", "values": ["42"]}],
    }
}


def flag(*strategies: dict[str, Any], name: str = "f", **fields: Any) -> Any:
    return {"name": name, "project": "shop", "enabled": True, "strategies": list(strategies), **fields}


def strategy(name: str = "default", /, *constraints: dict[str, Any], **fields: Any) -> dict[str, Any]:
    parameters = {key: fields.pop(key) for key in list(fields) if key in PARAMETERS}
    return {"name": name, "parameters": parameters, "constraints": list(constraints), **fields}


PARAMETERS = ("rollout", "stickiness", "groupId", "percentage", "userIds", "IPs")


def rollout(
    percentage: str, *constraints: dict[str, Any], stickiness: str = "userId", group: str = "g"
) -> dict[str, Any]:
    return strategy("flexibleRollout", *constraints, rollout=percentage, stickiness=stickiness, groupId=group)


def needs(field: str, operator: str, *values: str, **fields: Any) -> dict[str, Any]:
    if operator in ("IN", "NOT_IN", "IN_CIDR") or operator.startswith("STR_"):
        return {"contextName": field, "operator": operator, "values": list(values), **fields}
    return {"contextName": field, "operator": operator, "value": values[0], **fields}


NORWAY = needs("country", "IN", "NO")
