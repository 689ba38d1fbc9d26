"""Builds request bodies for the import API."""

from typing import Any


def body(*names: str, project: str = "shop", environment: str = "development", **data: Any) -> dict[str, Any]:
    """An import body with only these flags and the given data."""
    return {
        "project": project,
        "environment": environment,
        "data": {
            "features": [{"name": name} for name in names],
            "featureStrategies": [],
            "tagTypes": [],
            **data,
        },
    }


def strategy(flag: str, **fields: Any) -> dict[str, Any]:
    return {"name": "flexibleRollout", "featureName": flag, **fields}


def switch(flag: str, enabled: bool = True, **fields: Any) -> dict[str, Any]:
    return {"name": flag, "featureName": flag, "enabled": enabled, **fields}
