"""Computes a flag as it would be without one change, keeping all later ones."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from flagadmin.core.document import Document
from projects.history.flag_parts import DETAIL_MEMBERS, NOTHING, in_environments
from projects.history.versions import FlagBack, read_events_since, read_present_version
from projects.models import Flag

_WORDS = {
    "enabled": "whether it is on",
    "impressionData": "impression data",
    "stale": "whether it is stale",
    "archived": "whether it is archived",
}
_ABSENT: Any = object()


class Versions(NamedTuple):
    """The flag now, after a change, and before it. None where there was no such flag."""

    now: Document
    after: Document | None
    before: Document | None


def find_versions_around(flag: Flag, first: int, last: int) -> Versions:
    """``first`` and ``last`` are the ids of the change's events about the flag. Five queries."""
    now = read_present_version(flag)
    events = read_events_since([flag.name], event=first - 1)
    back, after = FlagBack(now, events), now
    for event in events:
        back.undo(event.event)
        if event.id > last:
            after = back.version() or _ABSENT
    return Versions(now, None if after is _ABSENT else after, back.version())


class TakenBack:
    """``version`` is the flag as it would be; ``conflicts`` is what has changed again since, as words.

    Members that the change did not touch stay as they are now. A flag that loses its last enabled strategy is off:
    without one it would be on for everyone.
    """

    def __init__(self, now: Document, after: Document, before: Document) -> None:
        self.conflicts: list[str] = []
        places = [in_environments(version) for version in (now, after, before)]
        self.version = {
            **now,
            **{
                key: self._choose_value(_WORDS.get(key, key), now[key], after[key], before[key])
                for key in (*DETAIL_MEMBERS, "archived")
            },
            "dependencies": self._choose_dependencies(
                *(version["dependencies"] for version in (now, after, before))
            ),
            "environments": [
                {
                    "name": name,
                    **self._merge_environment(name, *(place.get(name, NOTHING) for place in places)),
                }
                for name in sorted(set().union(*places))
            ],
        }

    def _choose_value(self, words: str, now: Any, after: Any, before: Any) -> Any:
        if after == before or now == before:
            return now
        if now != after:
            self.conflicts.append(words)
            return now
        return before

    def _choose_dependencies(self, now: Any, after: Any, before: Any) -> list[Document]:
        if now == after:
            return list(before)
        parents = [{parent["feature"]: parent for parent in version} for version in (now, after, before)]
        merged = (
            self._choose_value(
                f"the dependency on {name}", *(version.get(name, _ABSENT) for version in parents)
            )
            for name in _list_names(parents)
        )
        return [parent for parent in merged if parent is not _ABSENT]

    def _merge_environment(self, name: str, now: Document, after: Document, before: Document) -> Document:
        enabled, variants = (
            self._choose_value(f"{_WORDS.get(key, key)} in {name}", now[key], after[key], before[key])
            for key in ("enabled", "variants")
        )
        by_id = [{each["id"]: each for each in version["strategies"]} for version in (now, after, before)]
        merged = (
            self._merge_strategy(name, *(version.get(key) for version in by_id)) for key in _list_names(by_id)
        )
        strategies = sorted(filter(None, merged), key=lambda each: (each["sortOrder"], each["id"]))
        is_off = not _choose_enabled(strategies)
        was_on_without = before["enabled"] and not _choose_enabled(before["strategies"])
        loses_last = is_off and _choose_enabled(now["strategies"]) and not was_on_without
        if is_off and enabled and not now["enabled"] and _choose_enabled(before["strategies"]):
            self.conflicts.append(f"the strategies in {name}")
        return {"enabled": enabled and not loses_last, "variants": variants, "strategies": strategies}

    def _merge_strategy(
        self, environment: str, now: Document | None, after: Document | None, before: Document | None
    ) -> Document | None:
        words = f"a strategy in {environment}"
        if now is None or after is None or before is None:
            same = _drop_place(now) == _drop_place(after)
            if after == before or now == before or (now is None and before is None):
                return now
            if not same:
                self.conflicts.append(words)
            return before if same else now
        return {key: self._choose_value(words, now[key], after.get(key), before.get(key)) for key in now}


def _list_names(versions: Iterable[Iterable[str]]) -> Iterator[str]:
    return iter(dict.fromkeys(name for version in versions for name in version))


def _choose_enabled(strategies: Iterable[Document]) -> bool:
    return any(not strategy["disabled"] for strategy in strategies)


def _drop_place(strategy: Document | None) -> Document | None:
    return strategy and strategy | {"sortOrder": 0}
