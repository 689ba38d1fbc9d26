"""Removes flags that the user excluded from an import body."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from importer.body.schemas import Body
from importer.plan.entries import find_flag_of_entry, gather

FLAG_KEYS = {
    "features": "name",
    "featureStrategies": "featureName",
    "featureTags": "featureName",
    "dependencies": "feature",
    "links": "feature",
}
"""The key that names the flag in the entries of each list, without those of environments, which have two."""


def name_flag(part: str, entry: Mapping[str, Any]) -> str:
    """The flag of an entry that nobody has checked, "" if there is none."""
    keys = ("featureName", "name") if part == "featureEnvironments" else (FLAG_KEYS.get(part, ""),)
    return next((name for key in keys if isinstance(name := entry.get(key), str)), "")


def exclude_flags(body: Body, names: Iterable[str]) -> Body:
    """Removes these flags and the segments only they use, so that a missing one does not block the rest."""
    excluded = frozenset(names)
    data: dict[str, Any] = dict(body.data)
    for part, key in FLAG_KEYS.items():
        if part in data:
            data[part] = [entry for entry in data[part] if entry.get(key) not in excluded]
    if "featureEnvironments" in data:
        flags = {feature["name"] for feature in body.data["features"]}
        data["featureEnvironments"] = [
            entry for entry in data["featureEnvironments"] if find_flag_of_entry(entry, flags) not in excluded
        ]
    if "segments" in data:
        users = gather(body).segment_users()
        data["segments"] = [
            entry for entry in data["segments"] if not users[entry["id"]] or users[entry["id"]] - excluded
        ]
    if "savedContexts" in data:
        data["savedContexts"] = [
            entry
            | {
                "expectations": [
                    expectation
                    for expectation in entry.get("expectations", ())
                    if expectation["flag"] not in excluded
                ]
            }
            for entry in data["savedContexts"]
        ]
    return replace(body, data=data)  # type: ignore[arg-type]


def exclude_links(body: Body, names: Container[str]) -> Body:
    links = [entry for entry in body.data.get("links") or () if entry["feature"] not in names]
    return replace(body, data=body.data | {"links": links})
