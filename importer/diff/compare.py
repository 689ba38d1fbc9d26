"""What differs between two sides, and the number of users whose result changes.

Reads flags from files: flags as code, exports of Unleash and flagadmin, and files of other products.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import orjson

from flagadmin.client.files import SETTINGS, SUFFIXES, open_folder, read_files
from flagadmin.core import errors
from flagadmin.core.document import Document
from flagadmin.core.errors import Problem, choices
from importer.as_code.measure import compare_definitions, describe_users, narrow
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
from playground.comparison.unmeasured import find_most_affected, find_unmeasured
from playground.comparison.who_changes import Contexts, WhoChanges
from playground.engine.context import Context
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


MAX_PARTS = 20
"""The differences of a flag that are listed."""


class Above(NamedTuple):
    """A flag that changes for more than the limit. ``share`` is None if generated users cannot tell it."""

    flag: str
    environment: str
    share: float | None

    @property
    def sentence(self) -> str:
        where = f" in {self.environment}" if self.environment else ""
        if self.share is None:
            return f"{self.flag}{where} cannot be measured, so it counts as above the limit."
        return f"{self.flag}{where} changes for {self.share:.1%} of those who meet its conditions."


def compare_sides(
    before: Side,
    after: Side,
    *,
    now: datetime,
    environment: str = "",
    users: Sequence[Context] | None = None,
    users_name: str = "",
    at_most: float | None = None,
) -> tuple[Document, list[Above]]:
    """The answer of a plan of flags as code, with no request, and the flags above ``at_most`` percent.

    ``users``: the counted ones; default: generated users. Raises ValidationError for an unknown ``environment``.
    """
    shared = _match_environments(before, after, environment)
    incomparable = before.incomparable | after.incomparable
    names = sorted((before.flags.keys() | after.flags.keys()) - incomparable.keys())
    listed = sorted({name for side in (before, after) for name in _list_segments(side)})
    ids = {name: number for number, name in enumerate(listed, 1)}
    lines = list(_list_changes(before, after, incomparable))
    measured: list[Document] = []
    above: list[Above] = []
    for place in shared:
        chosen = [name for name in names if _is_in(before, name, place) and _is_in(after, name, place)]
        pair = narrow(*(make_definitions(side, place, ids, chosen) for side in (before, after)))
        contexts = Contexts(users, users_name) if users is not None else None
        who = compare_definitions(place, *pair, now=now, users=contexts)
        if not who.names:
            continue
        place_names = {"project": "", "environment": place, "people": who.contexts.people}
        measured.append(
            describe_users(who, *pair) | place_names | {"savedContexts": [], "brokenExpectations": 0}
        )
        if at_most is not None:
            above += _find_above(who, place, *pair, at_most / 100)
    unlisted = sorted(name for side in (before, after) for name in _list_unknown_segments(side))
    notes = [
        *dict.fromkeys(incomparable.values()),
        *(
            f"Segment {name} has no conditions in the files: half of the users meet it."
            for name in dict.fromkeys(unlisted)
        ),
    ]
    answer = {"changes": lines, "changeRequests": [], "whoChanges": measured, "notes": notes}
    return answer, above


def _match_environments(before: Side, after: Side, environment: str) -> list[str]:
    """The compared environments. A file that names none is in the other side's only one, or in ``environment``."""
    for side, other in ((before, after), (after, before)):
        if UNNAMED in side.environments:
            named = {environment} if environment else other.environments - {UNNAMED}
            if len(named) == 1:
                side.rename(UNNAMED, min(named))
            elif named:
                raise errors.ValidationError.at("environment", f"choose one of {choices(named)}")
    known = before.environments | after.environments
    if environment and known and environment not in known:
        message = f"{environment} is not an environment of the files. Available: {choices(known)}"
        raise errors.ValidationError.at("environment", message)
    return sorted({environment} if environment else known)


def _is_in(side: Side, name: str, environment: str) -> bool:
    """Whether the comparison may use the flag: a file that leaves out one of its environments says nothing there."""
    flag = side.flags.get(name)
    return flag is None or environment in flag["environments"]


def _list_segments(side: Side) -> Iterator[str]:
    yield from side.segments
    for flag in side.flags.values():
        for state in flag["environments"].values():
            for strategy in state.get("strategies", ()):
                yield from strategy.get("segments", ())


def _list_unknown_segments(side: Side) -> set[str]:
    bare = {
        name
        for name, listed in side.segments.items()
        if any(each["contextName"] == f"segment {name}" for each in listed)
    }
    return bare | (set(_list_segments(side)) - side.segments.keys())


def _find_above(
    who: WhoChanges, environment: str, before: Definitions, after: Definitions, limit: float
) -> Iterator[Above]:
    unmeasured = {each.flag for each in find_unmeasured(who, before, after) if each.may_be_on}
    for flag in who.flags:
        users, affected = find_most_affected(who, before, after, flag=flag.name)
        share = affected / max(1, users)
        if share > limit:
            yield Above(flag.name, environment, share)
        elif flag.name in unmeasured:
            yield Above(flag.name, environment, None)


# Differences -------------------------------------------------------------------------------------------------


def _list_changes(before: Side, after: Side, incomparable: Mapping[str, str]) -> Iterator[Document]:
    for kind, old, new in (("segment", before.segments, after.segments), ("flag", before.flags, after.flags)):
        for name in sorted((old.keys() | new.keys()) - incomparable.keys()):
            line = {"kind": kind, "name": name}
            if name not in old:
                yield line | {"action": "create"}
            elif name not in new:
                yield line | {"action": "archive"}
            elif parts := list(_list_differences("", _tidy(old[name]), _tidy(new[name]))):
                yield line | {"action": "change", "changes": parts[:MAX_PARTS]}


def _tidy(value: Any) -> Any:
    """Without empty members, and members that decide nothing."""
    if isinstance(value, Mapping):
        tidied = {
            key: _tidy(item) for key, item in value.items() if key not in ("id", "sortOrder", "featureName")
        }
        return {
            key: item
            for key, item in tidied.items()
            if item not in (None, "", False, [], {}) or key == "enabled"
        }
    return [_tidy(item) for item in value] if isinstance(value, list | tuple) else value


def _list_differences(path: str, old: Any, new: Any) -> Iterator[Document]:
    """The places that differ, as deep as both have the same members or as many items."""
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            inner = ".".join(filter(None, (path, key)))
            yield from _list_differences(inner, old.get(key), new.get(key))
    elif (
        isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and isinstance(old[0], dict)
    ):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from _list_differences(f"{path}[{index}]", *pair)
    else:
        yield {"part": path, "before": _format(old), "after": _format(new)}


def _format(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()
