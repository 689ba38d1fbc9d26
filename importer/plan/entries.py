"""What the body says of each flag, its newer and its older places brought together. No database.

Where a newer list (``featureStrategies``, ``featureEnvironments``, ``featureTags``, ``dependencies``, ``links``)
speaks of a flag, it counts; else the older place inside ``features[]`` or ``featureEnvironments[]`` does. Nothing is
dropped without a word: what does not count is a note, what belongs to no flag a finding.
"""

from collections import defaultdict
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

from importer.body.schemas import Body
from importer.plan.issues import Finding, Kind

At = tuple[str, Any]
"""A part of the body with its JSON path."""


@dataclass(slots=True)
class Entry:
    """All that the body says of one flag. ``feature`` is None for a flag that ``features`` does not list.

    None means "not said": ``variants`` may be said to be empty, and ``links`` and ``parents`` too.
    """

    name: str
    path: str
    feature: Any = None
    strategies: list[At] = field(default_factory=list)
    enabled: tuple[str, bool] | None = None
    variants: At | None = None
    tags: list[tuple[str, str, str, bool]] = field(
        default_factory=list
    )  # path, type, value, said in the new way
    links: At | None = None
    parents: list[At] | None = None


@dataclass(slots=True)
class Entries:
    flags: dict[str, Entry] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)
    """The environments that the file's entries were exported from."""

    def segment_users(self) -> dict[float, set[str]]:
        """By a segment's id in the file, the flags whose strategies use it, whatever place those stand in."""
        users: dict[float, set[str]] = defaultdict(set)
        for entry in self.flags.values():
            for _, strategy in entry.strategies:
                for identifier in strategy.get("segments", ()):
                    users[identifier].add(entry.name)
        return users


def gather(body: Body) -> Entries:
    """The body by flag, in the order of the file."""
    entries = Entries()
    data = body.data
    _features(entries, data["features"])
    switches = _switches(entries, data.get("featureEnvironments", []), body.environment)
    _strategies(entries, data["featureStrategies"])
    _tags(entries, data.get("featureTags", []))
    _parents(entries, data.get("dependencies", []))
    _links(entries, data.get("links", []))
    for entry in entries.flags.values():
        _older_switch(entries, entry, switches.get(entry.name))
        if entry.feature is not None:
            _older_places(entries, entry, body.environment)
    _tell_other_environments(entries, body.environment)
    return entries


def _features(entries: Entries, features: list[Any]) -> None:
    for index, feature in enumerate(features):
        path, name = f"data.features[{index}]", feature["name"]
        if name in entries.flags:
            entries.findings.append(
                Finding(Kind.DUPLICATE, f"{path}.name", f"{name} is listed more than once", name, name)
            )
        else:
            entries.flags[name] = Entry(name, path, feature)


def _entry(entries: Entries, name: str, path: str) -> Entry:
    entry = entries.flags.get(name)
    if entry is None:
        entry = entries.flags[name] = Entry(name, path)
    return entry


def _switches(entries: Entries, listed: list[Any], environment: str) -> dict[str, At]:
    """On/off and variants, which go to the requested environment; answers each flag's own entry."""
    seen: dict[str, At] = {}
    for index, given in enumerate(listed):
        path = f"data.featureEnvironments[{index}]"
        name = switched_flag(given, entries.flags)
        if not name:
            entries.findings.append(
                Finding(
                    Kind.VALUE,
                    f"{path}.featureName",
                    f"this is required: {given['name'] or 'the name'} is no flag of this file",
                )
            )
            continue
        # The specification has the environment's name in `name`; the reference's exports have the flag's.
        if source := given.get("environment") or (given["name"] if given["name"] != name else ""):
            entries.sources.add(source)
        if name not in seen:
            seen[name] = path, given
            _take_switch(_entry(entries, name, path), path, given)
        elif _said(seen[name][1]) != _said(given):
            entries.findings.append(
                Finding(
                    Kind.VALUE, path, f"{name} has another entry, {seen[name][0]}, that says otherwise", name
                )
            )
    return seen


def switched_flag(given: Any, flags: Container[str]) -> str:
    """The flag that an entry of ``featureEnvironments`` is about, "" for none of the file's.

    Without ``featureName``, ``name`` may be the flag's or its environment's.
    """
    return given.get("featureName") or (given["name"] if given["name"] in flags else "")


def _said(given: Any) -> tuple[Any, ...]:
    return given["enabled"], given.get("variants"), given.get("strategies")


def _take_switch(entry: Entry, path: str, given: Any) -> None:
    entry.enabled = f"{path}.enabled", given["enabled"]
    if "variants" in given:
        entry.variants = f"{path}.variants", given["variants"]


def _strategies(entries: Entries, listed: list[Any]) -> None:
    for index, given in enumerate(listed):
        path = f"data.featureStrategies[{index}]"
        if name := given.get("featureName"):
            _entry(entries, name, path).strategies.append((path, given))
        else:
            entries.findings.append(
                Finding(
                    Kind.VALUE, f"{path}.featureName", f"this is required: whose strategy is {given['name']}?"
                )
            )


def _tags(entries: Entries, listed: list[Any]) -> None:
    for index, given in enumerate(listed):
        path, name = f"data.featureTags[{index}]", given["featureName"]
        values = []
        for key, older in (("tagType", "type"), ("tagValue", "value")):
            value = given.get(key) or given.get(older)
            if not value:
                entries.findings.append(Finding(Kind.VALUE, f"{path}.{key}", "this is required", name))
            values.append(value)
        if all(values):
            _entry(entries, name, path).tags.append((path, values[0], values[1], True))


def _parents(entries: Entries, listed: list[Any]) -> None:
    for index, given in enumerate(listed):
        path = f"data.dependencies[{index}]"
        entry = _entry(entries, given["feature"], path)
        parents = [(f"{path}.dependencies[{n}]", parent) for n, parent in enumerate(given["dependencies"])]
        entry.parents = [*(entry.parents or []), *parents]


def _links(entries: Entries, listed: list[Any]) -> None:
    for index, given in enumerate(listed):
        path = f"data.links[{index}]"
        entry = _entry(entries, given["feature"], path)
        if entry.links is not None and entry.links[1] != given["links"]:
            message = f"{entry.name} has another entry, {entry.links[0]}, that says otherwise"
            entries.findings.append(Finding(Kind.VALUE, path, message, entry.name))
        entry.links = entry.links or (f"{path}.links", given["links"])


# Older places ---------------------------------------------------------------------------------------------


def _older_switch(entries: Entries, entry: Entry, switch: At | None) -> None:
    """``featureEnvironments[].strategies``."""
    if switch and switch[1].get("strategies"):
        _older_strategies(entries, entry, f"{switch[0]}.strategies", switch[1]["strategies"])


def _older_places(entries: Entries, entry: Entry, environment: str) -> None:
    feature = entry.feature
    for index, given in enumerate(feature.get("environments", ())):
        path = f"{entry.path}.environments[{index}]"
        if environment in (given["name"], given.get("environment")):
            _older_environment(entries, entry, path, given)
        else:
            entries.notes.append(
                f"{entry.name}: {path} is about {given['name']}, not {environment}, and is not imported"
            )
    if "enabled" in feature:
        _older(entries, entry, "enabled", f"{entry.path}.enabled", feature["enabled"])
    if feature.get("variants"):
        _older(entries, entry, "variants", f"{entry.path}.variants", feature["variants"])
    if feature.get("strategies"):
        _older_strategies(entries, entry, f"{entry.path}.strategies", feature["strategies"])
    if feature.get("links"):
        _older(entries, entry, "links", f"{entry.path}.links", feature["links"])
    _older_tags(entries, entry)
    _older_parents(entries, entry)


def _older_environment(entries: Entries, entry: Entry, path: str, given: Any) -> None:
    _older(entries, entry, "enabled", f"{path}.enabled", given["enabled"])
    if given.get("variants"):
        _older(entries, entry, "variants", f"{path}.variants", given["variants"])
    if given.get("strategies"):
        _older_strategies(entries, entry, f"{path}.strategies", given["strategies"])


def _older(entries: Entries, entry: Entry, part: str, path: str, value: Any) -> None:
    newer = getattr(entry, part)
    if newer is None:
        setattr(entry, part, (path, value))
    elif newer[1] != value:
        entries.notes.append(f"{entry.name}: {newer[0]} counts; {path} says otherwise and is not imported")


def _older_strategies(entries: Entries, entry: Entry, path: str, given: list[Any]) -> None:
    if entry.strategies:
        entries.notes.append(f"{entry.name}: {entry.strategies[0][0]} counts; {path} is not imported")
    else:
        entry.strategies = [(f"{path}[{index}]", strategy) for index, strategy in enumerate(given)]


def _older_tags(entries: Entries, entry: Entry) -> None:
    tags = [
        (f"{entry.path}.tags[{index}]", tag["type"], tag["value"], False)
        for index, tag in enumerate(entry.feature.get("tags") or ())
    ]
    if not entry.tags:
        entry.tags = tags
    elif {tag[1:3] for tag in tags} - {tag[1:3] for tag in entry.tags}:
        entries.notes.append(
            f"{entry.name}: data.featureTags counts; {entry.path}.tags says otherwise and is not imported"
        )


def _older_parents(entries: Entries, entry: Entry) -> None:
    older = [
        (f"{entry.path}.dependencies[{index}]", parent)
        for index, parent in enumerate(entry.feature.get("dependencies", ()))
    ]
    if older and entry.parents is None:
        entry.parents = older
    elif {p["feature"] for _, p in older} - {p["feature"] for _, p in entry.parents or ()}:
        entries.notes.append(
            f"{entry.name}: data.dependencies counts; {entry.path}.dependencies says otherwise and is not imported"
        )


def wrong_children(entries: Entries) -> Iterator[str]:
    """Notes on ``features[].children``, which follow from the dependencies and are not stored."""
    parents = {name: {p["feature"] for _, p in e.parents or ()} for name, e in entries.flags.items()}
    for entry in entries.flags.values():
        for child in (entry.feature or {}).get("children", ()):
            if entry.name not in parents.get(child, ()):
                yield f"{entry.name}: {entry.path}.children names {child}, but no dependency of {child} does"


def _tell_other_environments(entries: Entries, environment: str) -> None:
    for source in sorted(entries.sources - {environment}):
        entries.notes.append(f"This file was exported from {source}; you are importing into {environment}.")
