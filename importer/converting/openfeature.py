"""OpenFeature's flag manifest: static flags with their type and default value."""

from __future__ import annotations

from typing import Any, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from importer.converting.files import validate
from importer.converting.flags import Flag, Result, Rule, Source, add_value

NAME, TITLE = "openfeature", "OpenFeature"


class StaticFlag(TypedDict):
    flagType: str
    defaultValue: Any
    description: NotRequired[str | None]


class Manifest(TypedDict):
    flags: dict[str, StaticFlag]


_MANIFEST = TypeAdapter(Manifest)


def recognize(document: Any) -> bool:
    flags = document.get("flags") if isinstance(document, dict) else None
    first = next(iter(flags.values()), None) if isinstance(flags, dict) else None
    return isinstance(first, dict) and "flagType" in first


def read(document: Any, environment: str) -> Source:
    """Raises ValidationError."""
    flags = validate(_MANIFEST, document)["flags"]
    return Source(TITLE, [_read_flag(key, flag) for key, flag in flags.items()], {"targetingKey": "userId"})


def _read_flag(key: str, static: StaticFlag) -> Flag:
    flag, value = (
        Flag(key, f"flags.{key}", description=static.get("description") or ""),
        static["defaultValue"],
    )
    if isinstance(value, bool):
        flag.rules = [Rule(Result.ON if value else Result.OFF, title="Default")]
    elif value is None:
        flag.add_missing("value", "It has no default value.")
    else:
        flag.rules = [Rule(add_value(flag.values, value), title="Default")]
    return flag
