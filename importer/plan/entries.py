"""Groups the import body by flag. Later steps use these entries and do not read the body itself.

The lists ``featureStrategies``, ``featureEnvironments``, ``featureTags``, ``dependencies`` and ``links`` take
precedence over older members of ``features[]`` and ``featureEnvironments[]``. Nothing is dropped silently: an
older value that is ignored becomes a note, an entry that belongs to no flag becomes an issue.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from importer.body.schemas import Body
from importer.plan.target import Issue, IssueKind
from projects.flags.dependencies.actions import make_dependency

WithPath = tuple[str, Any]
"""A part of the body after its JSON path."""


@dataclass(slots=True)
class Entry:
    """Everything in the body about one flag. ``feature`` is None for a flag that is not in ``features``.

    None means "not given". For ``variants``, ``links`` and ``parents``, it differs from an empty list. ``parts`` are
    the body's.
    """

    name: str
    path: str
    feature: Any = None
    strategies: list[WithPath] = field(default_factory=list)
    enabled: tuple[str, bool] | None = None
    variants: WithPath | None = None
    # path, type, value, whether it comes from featureTags
    tags: list[tuple[str, str, str, bool]] = field(default_factory=list)
    links: WithPath | None = None
    parents: list[WithPath] | None = None
    payload_schema: WithPath | None = None
    parts: frozenset[str] | None = None


@dataclass(slots=True)
class Entries:
    """The entries of all flags. ``sources`` are the environments from which the file was exported."""

    flags: dict[str, Entry] = field(default_factory=dict)
    context_fields: Sequence[Any] = ()
    segments: Sequence[Any] = ()
    tag_types: Sequence[Any] = ()
    issues: list[Issue] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)

    def segment_users(self) -> dict[float, set[str]]:
        """The flags that use each segment, by the segment's id in the file."""
        users: dict[float, set[str]] = defaultdict(set)
        for entry in self.flags.values():
            for _, strategy in entry.strategies:
                for identifier in strategy.get("segments", ()):
                    users[identifier].add(entry.name)
        return users

    def strategy_types(self) -> set[str]:
        return {strategy["name"] for entry in self.flags.values() for _, strategy in entry.strategies}


def gather(body: Body) -> Entries:
    """Collects the entries of a body, in the order of the file."""
    data = body.data
    entries = Entries(
        context_fields=data.get("contextFields", []),
        segments=data.get("segments", []),
        tag_types=data["tagTypes"],
        notes=list(body.notes),
    )
    _read_features(entries, data["features"], body.parts)
    environments = _read_environments(entries, data.get("featureEnvironments", []), body.environment)
    _read_strategies(entries, data["featureStrategies"])
    _read_tags(entries, data.get("featureTags", []))
    _read_parents(entries, data.get("dependencies", []))
    _read_links(entries, data.get("links", []))
    for index, item in enumerate(data.get("payloadSchemas", ())):
        path = f"data.payloadSchemas[{index}]"
        _ensure_entry(entries, item["feature"], path).payload_schema = path, item["schema"]
    for entry in entries.flags.values():
        _read_older_environment_strategies(entries, entry, environments.get(entry.name))
        if entry.feature is not None:
            _read_older_places(entries, entry, body.environment)
    _note_other_environments(entries, body.environment)
    return entries


def _read_features(entries: Entries, features: list[Any], parts: frozenset[str] | None) -> None:
    for index, feature in enumerate(features):
        path, name = f"data.features[{index}]", feature["name"]
        if name in entries.flags:
            entries.issues.append(
                Issue(IssueKind.DUPLICATE, f"{path}.name", f"{name} is listed more than once", name, name)
            )
        else:
            entries.flags[name] = Entry(name, path, feature, parts=parts)


def _ensure_entry(entries: Entries, name: str, path: str) -> Entry:
    entry = entries.flags.get(name)
    if entry is None:
        entry = entries.flags[name] = Entry(name, path)
    return entry


def _read_environments(entries: Entries, items: list[Any], environment: str) -> dict[str, WithPath]:
    """Reads ``enabled`` and variants, which apply to the target environment. Returns each flag's entry."""
    seen: dict[str, WithPath] = {}
    for index, item in enumerate(items):
        path = f"data.featureEnvironments[{index}]"
        name = find_flag_of_entry(item, entries.flags)
        if not name:
            entries.issues.append(
                Issue(
                    IssueKind.VALUE,
                    f"{path}.featureName",
                    f"is required, because {item['name'] or 'the name'} is not a flag of this file",
                )
            )
            continue
        # The specification has the environment's name in `name`; the reference's exports have the flag's.
        if source := item.get("environment") or (item["name"] if item["name"] != name else ""):
            entries.sources.add(source)
        if name not in seen:
            seen[name] = path, item
            _take_environment(_ensure_entry(entries, name, path), path, item)
        elif _get_content(seen[name][1]) != _get_content(item):
            entries.issues.append(
                Issue(
                    IssueKind.VALUE,
                    path,
                    f"{name} has another entry with other content, {seen[name][0]}",
                    name,
                )
            )
    return seen


def find_flag_of_entry(item: Any, flags: Container[str]) -> str:
    """The flag that an entry of ``featureEnvironments`` belongs to, or "" if the file does not have it.

    Without ``featureName``, ``name`` may be the name of the flag or of the environment.
    """
    return item.get("featureName") or (item["name"] if item["name"] in flags else "")


def _get_content(item: Any) -> tuple[Any, ...]:
    return item["enabled"], item.get("variants"), item.get("strategies")


def _take_environment(entry: Entry, path: str, item: Any) -> None:
    if "enabled" in item:
        entry.enabled = f"{path}.enabled", item["enabled"]
    if "variants" in item:
        entry.variants = f"{path}.variants", item["variants"]


def _read_strategies(entries: Entries, strategies: list[Any]) -> None:
    for index, strategy in enumerate(strategies):
        path = f"data.featureStrategies[{index}]"
        if name := strategy.get("featureName"):
            _ensure_entry(entries, name, path).strategies.append((path, strategy))
        else:
            entries.issues.append(
                Issue(
                    IssueKind.VALUE,
                    f"{path}.featureName",
                    f"is required: which flag has the strategy {strategy['name']}?",
                )
            )


def _read_tags(entries: Entries, tags: list[Any]) -> None:
    for index, tag in enumerate(tags):
        path, name = f"data.featureTags[{index}]", tag["featureName"]
        values = []
        for key, older in (("tagType", "type"), ("tagValue", "value")):
            value = tag.get(key) or tag.get(older)
            if tag.get(older) and tag[older] != value:
                entries.notes.append(
                    f"{name}: {path}.{older} is ignored because it differs from {path}.{key}"
                )
            if not value:
                entries.issues.append(Issue(IssueKind.VALUE, f"{path}.{key}", "is required", name))
            values.append(value)
        if all(values):
            _ensure_entry(entries, name, path).tags.append((path, values[0], values[1], True))


def _read_parents(entries: Entries, dependencies: list[Any]) -> None:
    for index, dependency in enumerate(dependencies):
        path = f"data.dependencies[{index}]"
        entry = _ensure_entry(entries, dependency["feature"], path)
        parents = [
            (f"{path}.dependencies[{n}]", parent) for n, parent in enumerate(dependency["dependencies"])
        ]
        entry.parents = [*(entry.parents or []), *parents]


def _read_links(entries: Entries, items: list[Any]) -> None:
    for index, item in enumerate(items):
        path = f"data.links[{index}]"
        entry = _ensure_entry(entries, item["feature"], path)
        if entry.links is not None and entry.links[1] != item["links"]:
            message = f"{entry.name} has another entry with other content, {entry.links[0]}"
            entries.issues.append(Issue(IssueKind.VALUE, path, message, entry.name))
        entry.links = entry.links or (f"{path}.links", item["links"])


# Older places ---------------------------------------------------------------------------------------------


def _read_older_environment_strategies(entries: Entries, entry: Entry, environment: WithPath | None) -> None:
    """Reads strategies from ``featureEnvironments[].strategies``, unless newer ones are given."""
    if environment and environment[1].get("strategies"):
        _take_older_strategies(entries, entry, f"{environment[0]}.strategies", environment[1]["strategies"])


def _read_older_places(entries: Entries, entry: Entry, environment: str) -> None:
    feature = entry.feature
    for index, item in enumerate(feature.get("environments", ())):
        path = f"{entry.path}.environments[{index}]"
        if environment in (item["name"], item.get("environment")):
            _read_older_environment(entries, entry, path, item)
        else:
            entries.notes.append(
                f"{entry.name}: {path} is not imported because it is for {item['name']}, not {environment}"
            )
    if "enabled" in feature:
        _take_older(entries, entry, "enabled", f"{entry.path}.enabled", feature["enabled"])
    if feature.get("variants"):
        _take_older(entries, entry, "variants", f"{entry.path}.variants", feature["variants"])
    if feature.get("strategies"):
        _take_older_strategies(entries, entry, f"{entry.path}.strategies", feature["strategies"])
    if feature.get("links"):
        _take_older(entries, entry, "links", f"{entry.path}.links", feature["links"])
    _take_older_tags(entries, entry)
    _take_older_parents(entries, entry)


def _read_older_environment(entries: Entries, entry: Entry, path: str, item: Any) -> None:
    _take_older(entries, entry, "enabled", f"{path}.enabled", item["enabled"])
    if item.get("variants"):
        _take_older(entries, entry, "variants", f"{path}.variants", item["variants"])
    if item.get("strategies"):
        _take_older_strategies(entries, entry, f"{path}.strategies", item["strategies"])


def _take_older(entries: Entries, entry: Entry, part: str, path: str, value: Any) -> None:
    newer = getattr(entry, part)
    if newer is None:
        setattr(entry, part, (path, value))
    elif newer[1] != value:
        entries.notes.append(f"{entry.name}: {path} is ignored because it differs from {newer[0]}")


def _take_older_strategies(entries: Entries, entry: Entry, path: str, strategies: list[Any]) -> None:
    if entry.strategies:
        entries.notes.append(f"{entry.name}: {path} is ignored in favor of {entry.strategies[0][0]}")
    else:
        entry.strategies = [(f"{path}[{index}]", strategy) for index, strategy in enumerate(strategies)]


def _take_older_tags(entries: Entries, entry: Entry) -> None:
    tags = [
        (f"{entry.path}.tags[{index}]", tag["type"], tag["value"], False)
        for index, tag in enumerate(entry.feature.get("tags") or ())
    ]
    if not entry.tags:
        entry.tags = tags
    elif {tag[1:3] for tag in tags} - {tag[1:3] for tag in entry.tags}:
        entries.notes.append(
            f"{entry.name}: {entry.path}.tags is ignored because it differs from data.featureTags"
        )


def _take_older_parents(entries: Entries, entry: Entry) -> None:
    older = [
        (f"{entry.path}.dependencies[{index}]", parent)
        for index, parent in enumerate(entry.feature.get("dependencies", ()))
    ]
    newer = [make_dependency(parent) for _, parent in entry.parents or ()]
    if older and entry.parents is None:
        entry.parents = older
    elif any(make_dependency(parent) not in newer for _, parent in older):
        entries.notes.append(
            f"{entry.name}: {entry.path}.dependencies is ignored because it differs from data.dependencies"
        )


def list_notes_on_children(entries: Entries) -> Iterator[str]:
    """Notes about ``features[].children`` that no dependency supports. Children are derived, not stored."""
    parents = {name: {p["feature"] for _, p in e.parents or ()} for name, e in entries.flags.items()}
    for entry in entries.flags.values():
        for child in (entry.feature or {}).get("children", ()):
            if entry.name not in parents.get(child, ()):
                yield f"{entry.name}: {entry.path}.children lists {child}, but {child} has no such dependency"


def _note_other_environments(entries: Entries, environment: str) -> None:
    for source in sorted(entries.sources - {environment}):
        entries.notes.append(note_on_source(source, environment))


def note_on_source(source: str, environment: str) -> str:
    """The note about the file's environment, which the preview's page shows separately."""
    return f"This file was exported from {source}; you are importing into {environment}."


FLAG_KEYS = {
    "features": "name",
    "featureStrategies": "featureName",
    "featureTags": "featureName",
    "dependencies": "feature",
    "links": "feature",
    "payloadSchemas": "feature",
}
"""The key for the flag in the entries of each list, except environments, which have two."""


def name_flag(part: str, entry: Mapping[str, Any]) -> str:
    """The flag of an unvalidated entry; "" if there is none."""
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
