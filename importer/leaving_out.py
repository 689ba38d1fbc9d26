"""A body with some of its flags left out."""

from collections.abc import Iterable
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


def without(body: Body, names: Iterable[str]) -> Body:
    left_out = frozenset(names)
    data: dict[str, Any] = dict(body.data)
    for part, keys in _OWNERS.items():
        if part in data:
            data[part] = [
                given
                for given in data[part]
                if not left_out & {given.get(key) for key in keys if given.get(key)}
            ]
    return Body(body.project, body.environment, data)  # type: ignore[arg-type]
