"""Removes flags that the user excluded from an import body."""

from collections.abc import Iterable
from typing import Any

from importer.body.schemas import Body
from importer.plan.entries import flag_of_environment_entry, gather

_FLAG_KEYS = {
    "features": "name",
    "featureStrategies": "featureName",
    "featureTags": "featureName",
    "dependencies": "feature",
    "links": "feature",
}
"""The key that names the flag in the entries of each list."""


def exclude_flags(body: Body, names: Iterable[str]) -> Body:
    """Removes these flags and the segments only they use, so that a missing one does not block the rest."""
    excluded = frozenset(names)
    data: dict[str, Any] = dict(body.data)
    for part, key in _FLAG_KEYS.items():
        if part in data:
            data[part] = [given for given in data[part] if given.get(key) not in excluded]
    if "featureEnvironments" in data:
        flags = {feature["name"] for feature in body.data["features"]}
        data["featureEnvironments"] = [
            given
            for given in data["featureEnvironments"]
            if flag_of_environment_entry(given, flags) not in excluded
        ]
    if "segments" in data:
        users = gather(body).segment_users()
        data["segments"] = [
            given for given in data["segments"] if not users[given["id"]] or users[given["id"]] - excluded
        ]
    if "savedContexts" in data:
        data["savedContexts"] = [
            given
            | {"expectations": [one for one in given.get("expectations", ()) if one["flag"] not in excluded]}
            for given in data["savedContexts"]
        ]
    return Body(body.project, body.environment, data)  # type: ignore[arg-type]
