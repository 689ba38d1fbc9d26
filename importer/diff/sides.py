"""Reads flags from files: flags as code, exports of Unleash and flagadmin, and files of other products."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from flagadmin.client.files import SETTINGS, SUFFIXES, open_folder, read_files
from flagadmin.core import errors
from flagadmin.core.document import Document
from flagadmin.core.errors import Problem
from flagadmin.core.wording import choices
from importer.as_code.schemas import SCHEMAS
from importer.body.schemas import read_body
from importer.converting.convert import (
    Conversion,
    Exactness,
    Missing,
    Options,
    convert,
    export_document,
    is_export,
    read_source,
)
from importer.converting.files import ENDINGS, read_document, validate
from importer.converting.strategies import Choice
from playground.engine.definitions import ConstraintDefinition, FlagDefinition, SegmentDefinition
from projects.definitions import Definitions

MAX_FILES = 10_000
OPTIONS = Options(Choice.NEW, missing=Missing.LEAVE_OUT)
UNNAMED = ""
"""The environment of a file that does not name one."""


@dataclass
class Side:
    """Flags by name, in the form of flags as code, and the constraints of segments by name.

    ``incomparable`` are sentences about flags that have no equivalent here, by name. They are in neither side.
    """

    flags: dict[str, Any] = field(default_factory=dict)
    segments: dict[str, list[Any]] = field(default_factory=dict)
    incomparable: dict[str, str] = field(default_factory=dict)

    @property
    def environments(self) -> set[str]:
        return {name for flag in self.flags.values() for name in flag["environments"]}

    def add(self, other: Side, place: str) -> None:
        """Adds the flags of another file. Raises ValidationError for a flag that both have in one environment."""
        for name, flag in other.flags.items():
            known = self.flags.setdefault(name, {**flag, "environments": {}})
            if twice := known["environments"].keys() & flag["environments"].keys():
                raise errors.ValidationError.at(place, f"{name} is in another file too{_in(min(twice))}")
            known["environments"].update(flag["environments"])
        self.segments.update(other.segments)
        self.incomparable.update(other.incomparable)

    def rename(self, old: str, new: str) -> None:
        """Gives an environment another name."""
        for flag in self.flags.values():
            if old in flag["environments"]:
                flag["environments"][new] = flag["environments"].pop(old)


def read_side(path: Path, environment: str = "") -> Side:
    """The flags of a file or directory. ``environment`` is one of a product's that has several in one file.

    Raises ValidationError with the place of each problem, BadFiles for flags as code, and OSError.
    """
    if not path.is_dir():
        return _read_file(path, environment)
    if any((path / f"{SETTINGS}{suffix}").is_file() for suffix in SUFFIXES):
        return _read_as_code(path)
    side, files = Side(), sorted(each for each in path.rglob("*") if each.suffix.lower() in ENDINGS)
    if not files or len(files) > MAX_FILES:
        count = f"{len(files):,} files" if files else "no file"
        raise errors.ValidationError.at(
            str(path), f"has {count} ending in {choices(ENDINGS)}; at most {MAX_FILES:,}"
        )
    for each in files:
        side.add(_read_file(each, environment), str(each))
    return side


def _read_file(path: Path, environment: str) -> Side:
    content = path.read_bytes()
    try:
        document = read_document(content, path.name)
        if is_export(document):
            return read_export(document.get("data", document))
        source = read_source(content, file_name=path.name, environment=environment)
    except errors.AppError as error:
        problems = [Problem(f"{path}: {each.path}", each.message) for each in error.details]
        raise errors.ValidationError.of(problems or [Problem(str(path), error.message)]) from None
    return read_conversion(convert(source, OPTIONS, {}), environment)


def read_conversion(conversion: Conversion, environment: str) -> Side:
    """The flags of another product. Those that cannot be converted are `incomparable`."""
    side = read_export(export_document(conversion), environment)
    for flag in conversion.flags:
        if flag.exactness is Exactness.LEFT_OUT and not flag.source.archived:
            reasons = " ".join(note.sentence for note in flag.notes)
            side.incomparable[flag.name] = f"{flag.name} cannot be compared: {reasons}"
    return side


def read_export(data: Any, environment: str = UNNAMED) -> Side:
    """An export. ``environment`` is that of entries which name none. Raises ValidationError."""
    data = read_body(data, project="-", environment=environment or "-").data
    segments = {entry["id"]: entry["name"] for entry in data.get("segments", ())}
    side = Side(segments={entry["name"]: _get_constraints(entry) for entry in data.get("segments", ())})
    parents = {entry["feature"]: entry["dependencies"] for entry in data.get("dependencies", ())}
    for feature in data["features"]:
        if not feature.get("archived"):
            name = feature["name"]
            side.flags[name] = {"name": name, "dependencies": parents.get(name, ()), "environments": {}}
    for entry in data.get("featureEnvironments", ()):
        if flag := side.flags.get(entry.get("featureName") or entry["name"]):
            state = {"enabled": entry["enabled"], "strategies": [], "variants": entry.get("variants", [])}
            flag["environments"][entry.get("environment") or environment] = state
    for strategy in data["featureStrategies"]:
        flag = side.flags.get(strategy.get("featureName", ""))
        for state in flag["environments"].values() if flag else ():
            names = [segments.get(key, str(key)) for key in strategy.get("segments", ())]
            state["strategies"].append({**strategy, "segments": names})
    for flag in side.flags.values():
        for state in flag["environments"].values():
            state["strategies"].sort(key=lambda strategy: strategy.get("sortOrder") or 0)
    return side


def _get_constraints(segment: Mapping[str, Any]) -> list[Any]:
    """The constraints; for a segment without them, as Unleash exports it, a field with its name decides."""
    stand_in = {"contextName": f"segment {segment['name']}", "operator": "IN", "values": ["true"]}
    return segment.get("constraints", [stand_in])


def _read_as_code(path: Path) -> Side:
    folder = open_folder(path)
    read_files(folder)
    side = Side()
    problems: list[Problem] = []
    for (kind, name), file in folder.files.items():
        try:
            document: Document = validate(SCHEMAS[kind], file.document)
        except errors.ValidationError as error:
            problems += [Problem(f"{file.path}: {each.path}", each.message) for each in error.details]
            continue
        if kind == "flag":
            places = document.get("environments", {})
            side.flags[name] = {"dependencies": (), **document, "environments": places}
        elif kind == "segment":
            side.segments[name] = document["constraints"]
    if problems:
        raise errors.ValidationError.of(problems)
    return side


def make_definitions(
    side: Side, environment: str, ids: Mapping[str, int], names: Iterable[str]
) -> Definitions:
    """These flags for the engine. ``ids`` are those of segments by name, the same for both sides."""
    flags = [
        _make_flag(flag, state, ids)
        for name in sorted(names)
        if (flag := side.flags.get(name)) and (state := flag["environments"].get(environment))
    ]
    segments: dict[int, SegmentDefinition] = {
        ids[name]: {"id": ids[name], "name": name, "constraints": constraints}
        for name, constraints in side.segments.items()
    }
    return Definitions.of(flags, segments)


def _make_flag(flag: Mapping[str, Any], state: Mapping[str, Any], ids: Mapping[str, int]) -> FlagDefinition:
    return {
        "name": flag["name"],
        "project": "",
        "enabled": state["enabled"],
        "impression_data": False,
        "stale": False,
        "strategies": [
            {
                "id": f"{flag['name']} {number}",
                "name": strategy["name"],
                "title": strategy.get("title"),
                "disabled": bool(strategy.get("disabled")),
                "sortOrder": number,
                "parameters": strategy.get("parameters", {}),
                "constraints": [
                    cast("ConstraintDefinition", {"values": [], **each})
                    for each in strategy.get("constraints", ())
                ],
                "segments": [ids[name] for name in strategy.get("segments", ())],
                "variants": strategy.get("variants", []),
            }
            for number, strategy in enumerate(state.get("strategies", ()))
        ],
        "variants": state.get("variants", []),
        "dependencies": [
            {
                "feature": parent["feature"],
                "enabled": parent.get("enabled", True),
                "variants": parent.get("variants", []),
            }
            for parent in flag["dependencies"]
        ],
    }


def _in(environment: str) -> str:
    return f", in {environment}" if environment else ""
