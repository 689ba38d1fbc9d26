"""Compares two versions of a flag part by part: its details, its dependencies, and each environment."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from flagadmin.core.document import Document
from projects.history.diff import Change, diff
from projects.states import DETAIL_MEMBERS, NOTHING, FlagState, by_environment

DETAILS, DEPENDENCIES, ENVIRONMENT = "details", "dependencies", "environment"
_EMPTY: Document = {
    **dict.fromkeys(DETAIL_MEMBERS),
    "archived": None,
    "enabled": None,
    **{key: [] for key in ("variants", "strategies", "tags", "parents", "links")},
}


class FlagPart(NamedTuple):
    """A differing part. ``environment`` is "" for parts shared by all environments.

    ``before`` and ``after`` have the part's members: those of ``details``; ``dependencies``; or ``enabled variants
    strategies``.
    """

    kind: str
    environment: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def key(self) -> str:
        """``details``, ``dependencies`` or ``environment:NAME``."""
        return f"{self.kind}:{self.environment}" if self.environment else self.kind

    def changes(self, segments: Mapping[int, str]) -> list[Change]:
        """Lists the differences as text. ``segments`` are names by id."""
        return diff(_EMPTY | _as_for_diff(self.before), _EMPTY | _as_for_diff(self.after), segments)

    def used_segments(self) -> set[int]:
        strategies = chain.from_iterable(side.get("strategies", ()) for side in (self.before, self.after))
        return {segment for strategy in strategies for segment in strategy["segments"]}


def find_differing_parts(before: FlagState, after: FlagState) -> Iterator[FlagPart]:
    """Environments by name, then dependencies and details. Ignores ids of strategies."""
    old, new = by_environment(before), by_environment(after)
    for name in sorted({*old, *new}):
        yield from _make_part(ENVIRONMENT, name, old.get(name, NOTHING), new.get(name, NOTHING))
    yield from _make_part(
        DEPENDENCIES, "", *({"dependencies": side["dependencies"]} for side in (before, after))
    )
    yield from _make_part(
        DETAILS, "", *({key: side.get(key) for key in DETAIL_MEMBERS} for side in (before, after))
    )


def _make_part(
    kind: str, environment: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[FlagPart]:
    if _as_for_diff(before) != _as_for_diff(after):
        yield FlagPart(kind, environment, before, after)


def _as_for_diff(part: Mapping[str, Any]) -> Document:
    """The form for ``diff``."""
    document = dict(part)
    if "dependencies" in document:
        document["parents"] = document.pop("dependencies")
    if "strategies" in document:
        document["strategies"] = [
            {key: value for key, value in strategy.items() if key != "id"}
            for strategy in document["strategies"]
        ]
    return document
