"""LaunchDarkly's flags: what its REST API lists, with the segments, or the file of an SDK's data source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NotRequired, Required

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from flagadmin.core import errors
from flagadmin.core.wording import choices, clip, list_some
from importer.converting.files import validate
from importer.converting.flags import Flag, Source
from importer.converting.launchdarkly_clauses import Clauses, Segment
from importer.converting.launchdarkly_flags import FlagsReader, Targeting, Variation
from projects.tag_types.tag_rules import MAX_LENGTH, MIN_LENGTH

NAME, TITLE = "launchdarkly", "LaunchDarkly"
MAX_NAMED = 20


class ListedFlag(TypedDict):
    key: str
    name: NotRequired[str | None]
    description: NotRequired[str | None]
    archived: NotRequired[bool]
    tags: NotRequired[list[str]]
    variations: list[Variation]
    environments: dict[str, Targeting]


class ListedSegment(Segment):
    key: Required[str]


class SdkFlag(Targeting):
    key: NotRequired[str]
    variations: list[Any]


class SdkFile(TypedDict):
    flags: NotRequired[dict[str, SdkFlag]]
    flagValues: NotRequired[dict[str, Any]]
    segments: NotRequired[dict[str, Segment]]


_LISTED = TypeAdapter(list[ListedFlag])
_SEGMENTS = TypeAdapter(list[ListedSegment])
_FILE = TypeAdapter(SdkFile)


def recognize(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    if _find_flag_list(document) is not None:
        return True
    flags = document.get("flags")
    first = next(iter(flags.values()), None) if isinstance(flags, dict) else None
    is_flag = isinstance(first, dict) and "variations" in first and "fallthrough" in first
    return is_flag or isinstance(document.get("flagValues"), dict)


def read(document: Any, environment: str) -> Source:
    """Raises ValidationError, also for an environment that the flags do not have."""
    listed = _find_flag_list(document) if isinstance(document, dict) else None
    return _read_file(document) if listed is None else _read_list(document, listed, environment)


def _find_flag_list(document: Mapping[str, Any]) -> tuple[str, list[Any]] | None:
    """The flags as the REST API lists them, with their path."""
    for path, flags in (("items", document), ("flags.items", document.get("flags"))):
        items = flags.get("items") if isinstance(flags, Mapping) else None
        if isinstance(items, list) and (
            not items or (isinstance(items[0], dict) and "environments" in items[0])
        ):
            return path, items
    return None


def _read_list(document: Mapping[str, Any], listed: tuple[str, list[Any]], environment: str) -> Source:
    path, items = listed
    flags = validate(_LISTED, items, path)
    environment = _choose_environment(flags, environment)
    segments = document.get("segments")
    if isinstance(segments, Mapping):
        segments = segments.get("items")
    clauses = Clauses({each["key"]: each for each in validate(_SEGMENTS, segments or [], "segments")})
    # Of flags that are there twice, the first counts.
    reader = FlagsReader(clauses, {flag["key"]: flag["variations"] for flag in reversed(flags)})
    read_flags = []
    for index, listed_flag in enumerate(flags):
        targeting = listed_flag["environments"].get(environment)
        flag = Flag(listed_flag["key"], f"{path}[{index}]", tags=_read_tags(listed_flag))
        flag.description = listed_flag.get("description") or listed_flag.get("name") or ""
        flag.archived = listed_flag.get("archived", False)
        if targeting is None:
            flag.add_missing("environment", f"It is not in the environment {environment}.")
        reader.add(flag, targeting or {"on": False})
        read_flags.append(flag)
    notes = (*_note_missing(document, flags), *_note_tags(flags), *clauses.notes)
    return Source(TITLE, reader.finish(read_flags), clauses.renamed, notes)


def _note_missing(document: Mapping[str, Any], flags: Sequence[ListedFlag]) -> Iterator[str]:
    """A list has pages, and says how many flags there are in all."""
    owner = document if "items" in document else document["flags"]
    total, count = owner.get("totalCount"), len(flags)
    if isinstance(total, int) and total > count:
        yield f"The file has {count:,} of {total:,} flags. The others are on other pages of the list."


def _read_tags(flag: ListedFlag) -> list[str]:
    return [tag for tag in dict.fromkeys(flag.get("tags", ())) if _can_be_tag(tag)]


def _can_be_tag(tag: str) -> bool:
    return MIN_LENGTH <= len(tag) <= MAX_LENGTH


def _note_tags(flags: Sequence[ListedFlag]) -> Iterator[str]:
    left_out = sorted({tag for flag in flags for tag in flag.get("tags", ()) if not _can_be_tag(tag)})
    if left_out:
        named = list_some([clip(tag) for tag in left_out], MAX_NAMED)
        yield f"Tags have {MIN_LENGTH} to {MAX_LENGTH} characters here. Left out: {named}."


def _choose_environment(flags: Sequence[ListedFlag], environment: str) -> str:
    known = dict.fromkeys(name for flag in flags for name in flag["environments"])
    if environment in known or not known:
        return environment
    if environment:
        message = f"{environment} is not an environment of the file. Available: {choices(known)}"
        raise errors.ValidationError.at("environment", message)
    if len(known) > 1:
        raise errors.ValidationError.at("environment", f"choose one of {choices(known)}")
    return next(iter(known))


def _read_file(document: Any) -> Source:
    parts = validate(_FILE, document)
    if not parts.keys() & {"flags", "flagValues"}:
        raise errors.ValidationError.at("flags", "is required, unless there are items or flagValues")
    flags, values = parts.get("flags", {}), parts.get("flagValues", {})
    clauses = Clauses(parts.get("segments", {}))
    variations: dict[str, list[Variation]] = {
        key: [{"value": value} for value in flag["variations"]] for key, flag in flags.items()
    }
    served: dict[str, list[Variation]] = {key: [{"value": value}] for key, value in values.items()}
    reader = FlagsReader(clauses, served | variations)
    read_flags = []
    for key, flag in flags.items():
        read_flags.append(Flag(key, f"flags.{key}"))
        reader.add(read_flags[-1], flag)
    for key in values:
        read_flags.append(Flag(key, f"flagValues.{key}"))
        reader.add(read_flags[-1], {"on": True, "fallthrough": {"variation": 0}})
    return Source(TITLE, reader.finish(read_flags), clauses.renamed, clauses.notes)
