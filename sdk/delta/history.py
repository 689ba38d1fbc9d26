"""Keeps the changes between versions of a scope, as events for delta and streaming SDKs.

Used by workers and relays: knows no framework.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

import orjson

from flagadmin.core.http.request_headers import read_etags
from sdk.features.chunks import Chunk, cut_into_chunks

MAX_DIGITS = 16


def read_version(text: str) -> int | None:
    """The version; None for invalid text, such as an empty one."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None


def read_known_version(if_none_match: str, suffix: str = "") -> int | None:
    """The largest version in If-None-Match, among ETags with this suffix; None if there is none."""
    etags = (etag.strip('"') for etag in read_etags(if_none_match))
    versions = (read_version(etag.removesuffix(suffix)) for etag in etags if etag.endswith(suffix))
    return max((version for version in versions if version is not None), default=None)


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
        """The names of the changed flags, each with its project, or the last one of a deleted flag."""

    def find_compressed_chunks(self) -> Sequence[Chunk]:
        """Chunks of the flags, which may already be compressed."""


C = TypeVar("C", bound=Texts)


class History(Generic[C]):
    """The latest content of a scope, and the version of the last change of everything that changed.

    Covers the changes since each version that this worker has had, back to the first, or to the time when there were
    too many. It does not cover versions between those, because a flag may have changed and changed back. Not
    thread-safe.
    """

    def __init__(self, version: int, content: C) -> None:
        self.content = content
        self.version = version
        self._segments = content.segments
        self._versions: dict[int, None] = {}  # in the order of their numbers
        # By name: the version of the last change, and the flag's project, or its last one.
        self._flags: dict[str, tuple[int, str]] = {}
        self._segment_versions: dict[int, int] = {}
        self._chunks: list[Chunk] = []  # of the latest hydration with all flags
        self._forget()

    def advance(self, version: int, content: C) -> None:
        """Adopts the content of a later version."""
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
        """Whether ``events`` can list the changes since this version."""
        return version in self._versions

    def events(self, since: int | None, matches: Matches | None = None) -> list[Chunk] | None:
        """The changes since a version as ``{"events": […]}``; everything if that version is unknown.

        None if nothing changed. Only flags whose name ``matches``, if given.
        """
        if since is None or not self.knows(since):
            return self._make_hydration(matches)
        events = list(self._make_change_events(since, matches))
        return [Chunk((b'{"events":[%b]}' % b",".join(events),))] if events else None

    def _make_hydration(self, matches: Matches | None) -> list[Chunk]:
        """Makes the event, with compressed chunks if an earlier hydration or an SDK answer has the same flags."""
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
        """Adds segments before the flags that use them, and removes them after the flags that used them."""
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
