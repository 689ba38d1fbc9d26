"""Requests to OFREP, and flags of the shapes that its answers tell apart."""

from typing import Any

FLAGS = "/ofrep/v1/evaluate/flags"


def rollout(percentage: int, stickiness: str = "default", **more: Any) -> dict[str, Any]:
    """A strategy. With the group g, user 2 is in bucket 4 and user 1 in bucket 85."""
    parameters = {"rollout": str(percentage), "stickiness": stickiness, "groupId": "g"}
    return {"name": "flexibleRollout", "parameters": parameters, **more}


def constraint(field: str, *values: str) -> dict[str, Any]:
    return {"contextName": field, "operator": "IN", "values": list(values)}


def variant(name: str, kind: str = "", value: str = "", weight: int = 1000) -> dict[str, Any]:
    payload = {"payload": {"type": kind, "value": value}} if kind else {}
    return {"name": name, "weight": weight, "weightType": "variable", "stickiness": "default"} | payload
