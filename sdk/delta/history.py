"""Keeps the changes between versions of a scope, as the events that delta and streaming SDKs take.

Of workers and of relays: knows no framework.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

import orjson

from sdk.features.chunks import Chunk, cut_into_chunks

CHANGES_KEPT = 10_000
VERSIONS_KEPT = 10_000

Matches = Callable[[str], bool]


class Texts(Protocol):
    """The flags and segments of a scope at one moment, each as JSON."""

    @property
    def flags(self) -> Sequence[tuple[str, bytes]]:
        """All flags with their names."""

    @property
    def segments(self) -> Mapping[int, bytes]:
        """All segments by id, in order."""

    def get_flag(self, name: str, project: str) -> bytes | None: ...

    def find_changed_flags(self, before: Self) -> dict[str, str]:
        """The names of the flags that differ, each with the project in which it is, or was before it went."""

    def find_compressed_chunks(self) -> Sequence[Chunk]:
        """Chunks of the flags that may have been compressed already."""


C = TypeVar("C", bound=Texts)


class History(Generic[C]):
    """The latest content of a scope, and for what changed, the version of its last change.

    Knows the changes since each version that this worker has had, back to the first or to when there were too
    many. It says nothing about versions between those: a flag may have changed and changed back. Not thread-safe.
    """

    def __init__(self, version: int, content: C) -> None:
        self.content = content
        self.version = version
        self._segments = content.segments
        self._versions: dict[int, None] = {}  # in the order of their numbers
        # By name: the version of the last change, and the project in which the flag is, or was last.
        self._flags: dict[str, tuple[int, str]] = {}
        self._segment_versions: dict[int, int] = {}
        self._chunks: list[Chunk] = []  # of the latest hydration with all flags
        self._forget()

    def advance(self, version: int, content: C) -> None:
        """Takes over the content of a later version."""
        segments = content.segments
        for name, project in content.find_changed_flags(self.content).items():
            self._flags[name] = (version, project)
        for segment in segments.keys() | self._segments.keys():
            if segments.get(segment) != self._segments.get(segment):
                self._segment_versions[segment] = version
        self.content, self.version, self._segments = content, version, segments
        self._versions[version] = None
        if len(self._flags) + len(self._segment_versions) > CHANGES_KEPT:
            self._forget()
        elif len(self._versions) > VERSIONS_KEPT:
            del self._versions[next(iter(self._versions))]

    def _forget(self) -> None:
        self._versions = {self.version: None}
        self._flags.clear()
        self._segment_versions.clear()

    def knows(self, version: int | None) -> bool:
        """Whether ``events`` can say what changed since this version."""
        return version in self._versions

    def events(self, since: int | None, matches: Matches | None = None) -> list[Chunk] | None:
        """The changes since a version as ``{"events": […]}``; everything if that version is not known.

        None if nothing changed. Only flags whose name ``matches``, if given.
        """
        if since is None or not self.knows(since):
            return self._make_hydration(matches)
        events = list(self._make_change_events(since, matches))
        return [Chunk((b'{"events":[%b]}' % b",".join(events),))] if events else None

    def _make_hydration(self, matches: Matches | None) -> list[Chunk]:
        """Makes the event, of compressed chunks if an earlier hydration or an SDK answer has the same flags."""
        flags = dict(self.content.flags)
        if matches is None:
            known = self._chunks or self.content.find_compressed_chunks()
            chunks = self._chunks = cut_into_chunks(flags, known)
        else:
            chunks = cut_into_chunks({name: text for name, text in flags.items() if matches(name)})
        return [
            Chunk((b'{"events":[{"type":"hydration","eventId":%d,"features":[' % self.version,)),
            *chunks,
            Chunk((b'],"segments":[%b]}]}' % b",".join(self._segments.values()),)),
        ]

    def _make_change_events(self, since: int, matches: Matches | None) -> Iterator[bytes]:
        """Segments come before the flags that refer to them, and go after the flags that did."""
        segments = sorted(key for key, version in self._segment_versions.items() if version > since)
        flags = sorted(
            (name, project)
            for name, (version, project) in self._flags.items()
            if version > since and (matches is None or matches(name))
        )
        now = {name: self.content.get_flag(name, project) for name, project in flags}
        for segment in segments:
            if segment in self._segments:
                yield self._make_event("segment-updated", b'"segment":%b' % self._segments[segment])
        for text in now.values():
            if text is not None:
                yield self._make_event("feature-updated", b'"feature":%b' % text)
        for name, project in flags:
            if now[name] is None:
                yield self._make_event("feature-removed", _members(featureName=name, project=project))
        for segment in segments:
            if segment not in self._segments:
                yield self._make_event("segment-removed", _members(segmentId=segment))

    def _make_event(self, kind: str, members: bytes) -> bytes:
        return b'{"type":"%b","eventId":%d,%b}' % (kind.encode(), self.version, members)


def _members(**members: Any) -> bytes:
    """The members of a JSON object, without its braces."""
    return orjson.dumps(members)[1:-1]
