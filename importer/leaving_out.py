"""A body with some of its flags left out."""

from collections.abc import Iterable, Mapping
from typing import Any

from importer.wire import Body

_OWNERS = {
    "features": ("name",),
    "featureStrategies": ("featureName",),
    "featureEnvironments": ("featureName", "name"),
    "featureTags": ("featureName",),
    "dependencies": ("feature",),
    "links": ("feature",),
}
"""By which members the entries of each list name their flag."""


def _used_segments(data: Mapping[str, Any]) -> set[Any]:
    return {segment for strategy in data["featureStrategies"] for segment in strategy.get("segments", ())}


def without(body: Body, names: Iterable[str]) -> Body:
    """With them goes what they alone needed: a segment that is missing here stands against no other flag."""
    left_out = frozenset(names)
    data: dict[str, Any] = dict(body.data)
    for part, keys in _OWNERS.items():
        if part in data:
            data[part] = [
                given
                for given in data[part]
                if not left_out & {given.get(key) for key in keys if given.get(key)}
            ]
    if "segments" in data:
        kept, before = _used_segments(data), _used_segments(body.data)
        data["segments"] = [s for s in data["segments"] if s["id"] in kept or s["id"] not in before]
    return Body(body.project, body.environment, data)  # type: ignore[arg-type]
