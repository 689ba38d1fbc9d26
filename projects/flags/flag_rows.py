"""Rows for lists of flags in the console, with a toggle for each environment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from groups.access import Caller
from groups.permissions import Permission
from projects.console import flag_url
from projects.flags.queries import flag_summaries
from projects.models import Flag

PRODUCTION = "production"  # an environment type; the environment may have any name


@dataclass(frozen=True, slots=True)
class Toggle:
    """The toggle of a flag in an environment.

    ``locked``: the caller may not use it. ``asks``: a confirmation page comes first.
    """

    environment: str
    enabled: bool
    locked: bool
    asks: bool


@dataclass(frozen=True, slots=True)
class FlagRow:
    """A row in a list of flags."""

    flag: Flag
    url: str
    favourite: bool
    tags: Sequence[str]
    switches: Sequence[Toggle]


def flag_rows(flags: Sequence[Flag], *, caller: Caller) -> list[FlagRow]:
    """One row per flag, in six queries for any number of flags."""
    return [
        FlagRow(
            flag=flag,
            url=flag_url(flag.project_id, flag.name),
            favourite=summary["favorite"],
            tags=[f"{tag['type']}:{tag['value']}" for tag in summary.get("tags", [])],
            switches=[toggle_of(flag, place, caller=caller) for place in summary["environments"]],
        )
        for flag, summary in zip(flags, flag_summaries(flags, caller=caller), strict=True)
    ]


def toggle_of(flag: Flag, place: dict[str, Any], *, caller: Caller) -> Toggle:
    permission = Permission.UPDATE_FEATURE_ENVIRONMENT
    may = caller.can(permission, project=flag.project_id, environment=place["name"])
    return Toggle(place["name"], place["enabled"], flag.is_archived or not may, place["type"] == PRODUCTION)
