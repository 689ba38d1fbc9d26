"""Parses and sorts SDK strings such as ``unleash-node-sdk:6.12.1``."""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)(.*)", re.DOTALL)
_DIGITS = re.compile(r"(\d+)")


def split_sdk(sdk: str) -> tuple[str, str]:
    """(name, version) of an SDK string; the version may be ""."""
    name, _, rest = sdk.partition(":")
    return name, rest.partition(":")[0]


def format_sdk(sdk: str) -> str:
    """``unleash-node-sdk 6.12.1``"""
    return " ".join(filter(None, split_sdk(sdk)))


def group_sdks(sdks: Iterable[str]) -> list[dict[str, Any]]:
    """``[{"name", "versions"}]``: names in code-point order, versions in version order."""
    versions: dict[str, set[str]] = defaultdict(set)
    for name, version in map(split_sdk, sdks):
        versions[name].update([version] if version else [])
    return [{"name": name, "versions": sorted(versions[name], key=version_key)} for name in sorted(versions)]


def is_version(text: str) -> bool:
    return _NUMBERS.fullmatch(text) is not None


def is_release(text: str) -> bool:
    """Whether it is a version, and no pre-release such as 6.0.0-beta.1."""
    return is_version(text) and version_key(text)[2]


def version_key(version: str) -> tuple[Any, ...]:
    """A sort key: 5.9.0 < 5.10.0 and 6.0.0-beta.2 < 6.0.0-beta.10 < 6.0.0. Invalid versions come last."""
    match = _NUMBERS.fullmatch(version)
    if match is None:
        return (1, (), False, _make_natural_key(version), version)
    numbers = [int(number) for number in match[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    is_release = not match[2] or match[2].startswith("+")
    return (0, tuple(numbers), is_release, _make_natural_key(match[2]), version)


def _make_natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key that compares runs of digits by value and everything else by code point."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(text))
