"""Reads stored flags, segments and context fields in the format of files, and turns files into the bodies of imports.

There is one body for each environment of each project."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.db.models import Q

from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.document import Document
from flagadmin.core.errors import Problem, ValidationError, choices
from groups.access import Caller
from importer.as_code.schemas import MAX_PROJECTS, FlagFile
from importer.body.schemas import Body
from importer.bulk_work import bulk_work
from projects.access import check_project
from projects.export import export_flags
from projects.models import ContextField, FlagType, ProjectEnvironment, Segment
from projects.strategies.rules import percentage_problems

IN_FLAG = ("type", "description", "stale", "impressionData")
PARAMETERS = ("rollout", "stickiness", "groupId")
CONSTRAINT = ("contextName", "operator", "inverted", "caseInsensitive", "value", "values")
VARIANT = ("name", "weight", "weightType", "stickiness", "payload", "overrides")


@bulk_work
def read_directory(projects: Iterable[str], *, caller: Caller) -> Document:
    """``{flags: [{project, flag}], segments, contextFields, used}`` of these projects, without empty members.

    Includes the segments and context fields that the projects can use; ``used`` names those that their flags do use.
    Reads everything in one database snapshot. Raises ValidationError for too many projects, and for one that the
    caller cannot read.
    """
    names = sorted(set(projects))
    if len(names) > MAX_PROJECTS:
        raise ValidationError.at("project", f"must be at most {MAX_PROJECTS}, not {len(names):,}")
    with consistent_reads():
        ids = [check_project(caller, project).pk for project in names]
        flags: list[Document] = []
        used: dict[str, set[str]] = {"segments": set(), "contextFields": set()}
        for project in ids:
            flags += ({"project": project, "flag": flag} for flag in _read_project(project, used))
        usable = Q(project__in=ids) | Q(project=None)
        segments = Segment.objects.filter(usable).order_by("name")
        fields = ContextField.objects.filter(usable).order_by("name")
        return {
            "flags": flags,
            "segments": [make_segment_entry(row) for row in segments],
            "contextFields": [make_field_entry(row) for row in fields],
            "used": {kind: sorted(names) for kind, names in used.items()},
        }


def _read_project(project: str, used: dict[str, set[str]]) -> list[Document]:
    """The project's flags. Adds the names of the segments and context fields that they use."""
    links = ProjectEnvironment.objects.filter(project=project).order_by("environment_id")
    flags: dict[str, Document] = {}
    for environment in links.values_list("environment_id", flat=True):
        exported = export_flags(environment, project=project, full_segments=True)
        if not flags:
            flags = {document["name"]: document for document in _list_flags(exported)}
        for name, state in read_states(exported).items():
            flags[name]["environments"][environment] = state
        for kind, names in used.items():
            names.update(entry["name"] for entry in exported[kind])
    return list(flags.values())


def _list_flags(exported: Document) -> Iterator[Document]:
    """Yields the parts of flags that all environments share."""
    tags: dict[str, list[str]] = {}
    for tag in exported["featureTags"]:
        tags.setdefault(tag["featureName"], []).append(f"{tag['tagType']}:{tag['tagValue']}")
    links = {
        entry["feature"]: [_drop_empty(link, "title", drop=("id",)) for link in entry["links"]]
        for entry in exported["links"]
    }
    parents = {
        entry["feature"]: [_make_parent(parent) for parent in entry["dependencies"]]
        for entry in exported["dependencies"]
    }
    schemas = {entry["feature"]: entry["schema"] for entry in exported.get("payloadSchemas", ())}
    for feature in exported["features"]:
        name = feature["name"]
        described = {key: feature[key] for key in IN_FLAG if feature[key] not in (None, "", False)}
        lists = {
            "tags": sorted(tags.get(name, ())),
            "links": links.get(name),
            "dependencies": parents.get(name),
        }
        schema = {"payloadSchema": schemas[name]} if name in schemas else {}
        yield {"name": name, **described, **{key: value for key, value in lists.items() if value}} | {
            **schema,
            "environments": {},
        }


def read_states(exported: Document) -> dict[str, Document]:
    """Reads the settings of flags in the environment of an export, by name."""
    names = {segment["id"]: segment["name"] for segment in exported["segments"]}
    states = {state["featureName"]: _make_state(state) for state in exported["featureEnvironments"]}
    strategies: dict[str, list[Document]] = {}
    for strategy in exported["featureStrategies"]:
        strategies.setdefault(strategy["featureName"], []).append(_make_strategy(strategy, names))
    for feature in exported["features"]:
        name = feature["name"]
        state = states.setdefault(name, {"enabled": False})
        if name in strategies:
            states[name] = {"enabled": state["enabled"], "strategies": strategies[name], **state}
    return states


def _make_state(state: Document) -> Document:
    variants = [_sort_members(variant, VARIANT) for variant in state["variants"]]
    return {"enabled": state["enabled"]} | ({"variants": variants} if variants else {})


def _make_strategy(strategy: Document, segments: Mapping[int, str]) -> Document:
    entry = {
        "name": strategy["name"],
        "title": strategy["title"],
        "disabled": strategy["disabled"],
        "parameters": _sort_members(strategy["parameters"], PARAMETERS),
        "constraints": [_make_constraint(constraint) for constraint in strategy["constraints"]],
        "segments": [segments[key] for key in strategy["segments"]],
        "variants": [_sort_members(variant, VARIANT) for variant in strategy["variants"]],
    }
    return _drop_empty(entry, *(key for key in entry if key != "name"))


def keep_spelling(constraints: Iterable[Any], stored: Iterable[Any]) -> list[Any]:
    """Keeps the spelling of equivalent stored constraints, with or without empty members."""
    spellings = {orjson.dumps(_make_constraint(constraint)): constraint for constraint in stored}
    return [
        spellings.get(orjson.dumps(_make_constraint(constraint)), constraint) for constraint in constraints
    ]


def _make_constraint(constraint: Document) -> Document:
    return _drop_empty(
        _sort_members(constraint, CONSTRAINT), "values", "value", "inverted", "caseInsensitive"
    )


def _sort_members(entry: Document, order: tuple[str, ...]) -> Document:
    """Sorts members, because PostgreSQL stores those of JSON in an order of its own."""
    return {key: entry[key] for key in (*order, *sorted(entry)) if key in entry}


def _make_parent(parent: Document) -> Document:
    entry = _drop_empty(parent, "variants")
    return entry if not entry["enabled"] else {key: entry[key] for key in entry if key != "enabled"}


def make_segment_entry(segment: Segment) -> Document:
    entry = {
        "name": segment.name,
        "description": segment.description,
        "project": segment.project_id,
        "constraints": [_make_constraint(constraint) for constraint in segment.constraints],
    }
    return _drop_empty(entry, "description", "project")


def make_field_entry(field: ContextField) -> Document:
    entry = {
        "name": field.name,
        "description": field.description,
        "project": field.project_id,
        "stickiness": field.stickiness,
        "sortOrder": field.sort_order,
        "legalValues": [_drop_empty(value, "description") for value in field.legal_values],
    }
    return _drop_empty(entry, "description", "project", "stickiness", "sortOrder", "legalValues")


def _drop_empty(entry: Mapping[str, Any], *keys: str, drop: tuple[str, ...] = ()) -> Document:
    """Drops empty members, and the members in ``drop``."""
    return {
        key: value
        for key, value in entry.items()
        if key not in drop and not (key in keys and value in (None, "", [], {}, False, 0))
    }


Placed = tuple[int, FlagFile]
"""A flag with its place in the list of flags."""
_PLACE = re.compile(r"(data\.\w+\[\d+\])(.*)", re.DOTALL)
_PARENT = re.compile(r"\.dependencies(?=\[)")


@dataclass
class Part:
    """The import of the flags' settings in one environment. ``paths``: the origins of its entries."""

    body: Body
    paths: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    """Problems about which an import only warns; in a handwritten file they are errors."""

    def translate_problem(self, problem: Problem) -> Problem:
        """Replaces the problem's path in the import by the one in the directory."""
        match = _PLACE.fullmatch(problem.path)
        if match is None or match[1] not in self.paths:
            return Problem(self.paths.get(problem.path, problem.path), problem.message)
        rest = match[2]
        if match[1].startswith("data.dependencies"):
            rest = _PARENT.sub("", rest)
        elif match[1].startswith("data.segments"):
            rest = ""
        return Problem(self.paths[match[1]] + rest, problem.message)


def split_flags(
    flags: Iterable[Placed], environments: list[str], held: Container[str]
) -> dict[str, list[tuple[Placed, bool]]]:
    """Splits the flags by environment of import, each with whether its settings there are included.

    A flag without settings in an environment that is not ``held`` is still imported once, for its description.
    """
    parts: dict[str, list[tuple[Placed, bool]]] = {name: [] for name in environments}
    for placed in flags:
        named = [name for name in placed[1].get("environments", {}) if name not in held]
        for name in named:
            parts.setdefault(name, []).append((placed, True))
        if not named and environments:
            parts[environments[0]].append((placed, False))
    return {name: listed for name, listed in parts.items() if listed}


class PartBuilder:
    """Builds the import of flags into one environment of a project.

    Flags without given settings there keep theirs. Without ``parents``, existing flags keep their parents too.
    """

    def __init__(self, project: str, environment: str, flags: list[tuple[Placed, bool]], *, parents: bool):
        self.parents = parents
        names = [flag["name"] for (_, flag), _ in flags]
        stored = export_flags(environment, names=names) if names else {}
        self.types = {feature["name"]: feature["type"] for feature in stored.get("features", ())}
        self.known = self.types.keys()
        self.known_types = list(FlagType.objects.values_list("id", flat=True))
        self.stored = read_states(stored) if stored else {}
        self.strategies: dict[str, list[Any]] = {}
        for strategy in stored.get("featureStrategies", ()):
            self.strategies.setdefault(strategy["featureName"], []).append(strategy)
        self.data: dict[str, list[Any]] = {
            key: []
            for key in (
                "features",
                "featureStrategies",
                "featureEnvironments",
                "featureTags",
                "dependencies",
                "links",
                "payloadSchemas",
                "segments",
                "tagTypes",
            )
        }
        self.segment_ids: dict[str, int] = {}
        self.paths: dict[str, str] = {}
        self.problems: list[Problem] = []
        for (index, flag), with_state in flags:
            self._add(flag, f"flags[{index}].flag", environment, with_state)
        self.part = Part(Body(project, environment, self.data), self.paths, self.problems)  # type: ignore[arg-type]

    def _put(self, key: str, entry: Any, path: str) -> None:
        self.paths[f"data.{key}[{len(self.data[key])}]"] = path
        self.data[key].append(entry)

    def _add(self, flag: FlagFile, path: str, environment: str, with_state: bool) -> None:
        name = flag["name"]
        metadata = {
            key: flag[key] for key in ("type", "description", "stale", "impressionData") if key in flag
        }
        self._check_type(name, flag.get("type", ""), path)
        self._put("features", {"name": name, **metadata}, path)
        for number, tag in enumerate(flag.get("tags", ())):
            kind, _, value = tag.partition(":")
            entry = {"featureName": name, "tagType": kind, "tagValue": value}
            self._put("featureTags", entry, f"{path}.tags[{number}]")
        self._put("links", {"feature": name, "links": flag.get("links", [])}, path)
        schema = {"feature": name, "schema": flag.get("payloadSchema")}
        self._put("payloadSchemas", schema, f"{path}.payloadSchema")
        if self.parents or name not in self.known:
            parents = {"feature": name, "dependencies": flag.get("dependencies", [])}
            self._put("dependencies", parents, f"{path}.dependencies")
        if with_state:
            state: Mapping[str, Any] = flag["environments"][environment]
            path = f"{path}.environments.{environment}"
            self.paths.setdefault("environment", path)
            switch = {"enabled": state["enabled"], "variants": state.get("variants", [])}
            self._put("featureEnvironments", {"name": name, "featureName": name, **switch}, path)
        else:
            state = self.stored.get(name, {})
        for entry, entry_path in self._pair_strategies(name, state.get("strategies", ()), path):
            self._put("featureStrategies", entry, entry_path)

    def _check_type(self, name: str, kind: str, path: str) -> None:
        """A flag may keep its present type, whatever that is."""
        if kind and kind != self.types.get(name) and kind not in self.known_types:
            problem = f"flag type {kind} not found. Available: {choices(self.known_types)}"
            self.problems.append(Problem(f"{path}.type", problem))

    def _pair_strategies(
        self, name: str, strategies: list[Mapping[str, Any]], path: str
    ) -> Iterator[tuple[dict[str, Any], str]]:
        """Pairs strategies with the stored sort orders if their number is equal: files contain only the order."""
        stored = self.strategies.get(name, [])
        orders = [strategy["sortOrder"] for strategy in stored]
        if len(orders) != len(strategies):
            orders = list(range(len(strategies)))
        known = [constraint for strategy in stored for constraint in strategy["constraints"]]
        for number, (strategy, order) in enumerate(zip(strategies, orders, strict=True)):
            strategy_path = f"{path}.strategies[{number}]"
            self.problems += percentage_problems(strategy, strategy_path, stored)
            segments = [
                self._find_segment(segment, strategy_path) for segment in strategy.get("segments", ())
            ]
            constraints = keep_spelling(strategy.get("constraints", ()), known)
            entry = {
                "featureName": name,
                "sortOrder": order,
                "segments": segments,
                "constraints": constraints,
            }
            yield {**strategy, **entry}, strategy_path

    def _find_segment(self, name: str, path: str) -> int:
        if name not in self.segment_ids:
            self.segment_ids[name] = len(self.segment_ids) + 1
            self._put("segments", {"id": self.segment_ids[name], "name": name}, f"{path}.segments")
        return self.segment_ids[name]
