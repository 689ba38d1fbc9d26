"""A body with some of its flags left out."""

from collections.abc import Iterable
from typing import Any

from importer.body.schemas import Body
from importer.plan.entries import gather, switched_flag

_OWNERS = {
    "features": "name",
    "featureStrategies": "featureName",
    "featureTags": "featureName",
    "dependencies": "feature",
    "links": "feature",
}
"""By which member the entries of each list name their flag."""


def without(body: Body, names: Iterable[str]) -> Body:
    """With them goes what they alone needed: a segment that is missing here stands against no other flag."""
    left_out = frozenset(names)
    data: dict[str, Any] = dict(body.data)
    for part, key in _OWNERS.items():
        if part in data:
            data[part] = [given for given in data[part] if given.get(key) not in left_out]
    if "featureEnvironments" in data:
        flags = {feature["name"] for feature in body.data["features"]}
        data["featureEnvironments"] = [
            given for given in data["featureEnvironments"] if switched_flag(given, flags) not in left_out
        ]
    if "segments" in data:
        users = gather(body).segment_users()
        data["segments"] = [
            given for given in data["segments"] if not users[given["id"]] or users[given["id"]] - left_out
        ]
    return Body(body.project, body.environment, data)  # type: ignore[arg-type]
