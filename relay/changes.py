"""Keeps the changes in the flags of a scope, as the events that delta and streaming SDKs take."""

from collections.abc import Iterator
from typing import Any

import orjson

from relay.flags import Flags

MAX_CHANGES = 10_000
MAX_KEPT = 20  # answers


class Changes:
    """The latest flags, and the version of each flag's and segment's last change."""

    def __init__(self, flags: Flags) -> None:
        self.version = flags.version
        self._features, self._segments = (
            _write_texts(flags.features, "name"),
            _write_texts(flags.segments, "id"),
        )
        self._projects = {flag["name"]: str(flag.get("project") or "default") for flag in flags.features}
        self._changed: dict[tuple[str, Any], int] = {}
        self._versions = {flags.version}
        self._events: dict[int | None, bytes] = {}  # by version what has changed since, for many who ask

    def advance(self, flags: Flags) -> None:
        """Takes over later flags."""
        features, segments = _write_texts(flags.features, "name"), _write_texts(flags.segments, "id")
        for kind, before, after in (("f", self._features, features), ("s", self._segments, segments)):
            for key in before.keys() | after.keys():
                if before.get(key) != after.get(key):
                    self._changed[kind, key] = flags.version
        self.version = flags.version
        self._events = {}
        self._features, self._segments = features, segments
        self._projects |= {flag["name"]: str(flag.get("project") or "default") for flag in flags.features}
        self._versions.add(flags.version)
        if len(self._changed) > MAX_CHANGES or len(self._versions) > MAX_CHANGES:
            self._changed, self._versions = {}, {flags.version}

    def events(self, since: int | None) -> bytes:
        """``{"events": [...]}``: what changed since a version, or everything if that version is not known."""
        since = since if since in self._versions else None
        if since not in self._events:
            if len(self._events) >= MAX_KEPT:
                self._events.clear()
            self._events[since] = self._write_events(since)
        return self._events[since]

    def _write_events(self, since: int | None) -> bytes:
        if since is None:
            features, segments = b",".join(self._features.values()), b",".join(self._segments.values())
            whole = b'{"events":[{"type":"hydration","eventId":%d,"features":[%b],"segments":[%b]}]}'
            return whole % (self.version, features, segments)
        changed = [key for key, version in self._changed.items() if version > since]
        return b'{"events":[%b]}' % b",".join(self._make_events(sorted(changed, key=str)))

    def _make_events(self, changed: list[tuple[str, Any]]) -> Iterator[bytes]:
        """Segments come before the flags that refer to them, and go after the flags that did."""
        flags = [name for kind, name in changed if kind == "f"]
        segments = [key for kind, key in changed if kind == "s"]
        for key in segments:
            if key in self._segments:
                yield self._make_event("segment-updated", b'"segment":%b' % self._segments[key])
        for name in flags:
            if name in self._features:
                yield self._make_event("feature-updated", b'"feature":%b' % self._features[name])
            else:
                removed = orjson.dumps({"featureName": name, "project": self._projects.get(name, "default")})
                yield self._make_event("feature-removed", removed[1:-1])
        for key in segments:
            if key not in self._segments:
                yield self._make_event("segment-removed", b'"segmentId":%d' % key)

    def _make_event(self, kind: str, members: bytes) -> bytes:
        return b'{"type":"%b","eventId":%d,%b}' % (kind.encode(), self.version, members)


def _write_texts(documents: list[dict[str, Any]], key: str) -> dict[Any, bytes]:
    return {document[key]: orjson.dumps(document) for document in documents}
