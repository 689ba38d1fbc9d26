"""The flags of a scope in a relay, and its answers to SDKs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any

import orjson

from flagadmin.core.document import Document
from flagadmin.core.server.memory import collector_paused
from playground.response.snapshot import ResponseSnapshot, compile_playground
from relay.reading import Listing, locate_flags, read_changed
from relay.tokens import Scope, UpstreamFailed
from sdk.delta.history import History
from sdk.evaluation.prepared import Prepared
from sdk.features.chunks import Chunk, ChunkedBody, write_text
from sdk.streaming.scope_streams import NOTHING

VERSIONS = 2**32
"""SDKs read delta versions as integers below this. Revisions are sums over projects, and may be larger."""


class Body(ChunkedBody):
    """An answer and its ETag."""

    def __init__(self, etag: str, chunks: Sequence[Chunk]) -> None:
        super().__init__(chunks)
        self.etag = etag


class Flags:
    """The flags of a scope at one moment. ``fetched_at`` is in seconds since 1970."""

    def __init__(self, scope: Scope, document: Document, body: Body, version: int, fetched_at: float) -> None:
        self.scope = scope
        self.document = document
        self.version = version
        self.fetched_at = fetched_at
        self.listing: Listing | None = None
        self._body = body
        self._inlined: Body | None = None
        self._compiled: ResponseSnapshot | None = None
        self._prepared: Prepared | None = None
        self._preparing = Lock()

    @property
    def etag(self) -> str:
        return self._body.etag

    @property
    def features(self) -> list[Document]:
        features: list[Document] = self.document["features"]
        return features

    @property
    def segments(self) -> list[Document]:
        return self.document.get("segments") or []

    def body(self, *, knows_segments: bool, prefix: str = "") -> Body:
        """The answer to `/api/client/features`."""
        if prefix:
            return self._select_starting_with(prefix, knows_segments=knows_segments)
        if knows_segments or not self.segments:
            return self._body
        if self._inlined is None:
            self._inlined = make_body(self._make_inlined(self.features))
        return self._inlined

    def _select_starting_with(self, prefix: str, *, knows_segments: bool) -> Body:
        features = [flag for flag in self.features if flag["name"].startswith(prefix)]
        document = self.document | {"features": features} if knows_segments else self._make_inlined(features)
        if isinstance(query := document.get("query"), dict):
            document["query"] = query | {"namePrefix": prefix}
        return make_body(document)

    def feature(self, name: str, *, knows_segments: bool) -> Document | None:
        """The answer to `/api/client/features/NAME`; None without such a flag."""
        features = [flag for flag in self.features if flag["name"] == name]
        if not knows_segments:
            features = self._make_inlined(features)["features"]
        return next(iter(features), None)

    def _make_inlined(self, features: Iterable[Document]) -> Document:
        """Makes the document for SDKs that do not support segments: puts their constraints into the strategies."""
        known = {segment["id"]: _list_objects(segment.get("constraints")) for segment in self.segments}
        rest = {name: value for name, value in self.document.items() if name != "segments"}
        query = rest.get("query")
        if isinstance(query, dict):
            rest["query"] = query | {"inlineSegmentConstraints": True}
        return rest | {"features": [_add_constraints(flag, known) for flag in features]}

    @property
    def is_prepared(self) -> bool:
        return self._prepared is not None

    def prepare(self, before: Flags | None = None) -> Prepared:
        """Prepares the evaluation. Compiles the flags the first time, which takes milliseconds for a hundred of them.

        Call it in a thread until then; concurrent callers wait in theirs. Reuses unchanged flags of `before`, in the
        same scope.
        """
        with self._preparing:
            if self._prepared is None:
                self._compiled = self._compile(before)
                digest = hashlib.blake2b(self._mark.encode(), digest_size=7).digest()
                prepared = Prepared(self._compiled, {repr(self.scope): int.from_bytes(digest, "big")})
                _ = prepared.toggles, prepared.snapshot.batch
                self._prepared = prepared
            return self._prepared

    @property
    def _mark(self) -> str:
        """A mark unique to these flags. An ETag may recur after the upstream's revision has gone back."""
        revision = _read_revision(self.document)
        return self.etag if revision in (None, self.version) else f"{self.etag} {self.version}"

    @collector_paused
    def _compile(self, before: Flags | None) -> ResponseSnapshot:
        segments = {segment["id"]: segment for segment in self.segments}
        earlier = before._compiled if before is not None else None
        # A deleted compiled segment would stay.
        if before is None or earlier is None or earlier.snapshot.is_worn or before._has_others(segments):
            return compile_playground(
                [_as_stored(flag) for flag in self.features], segments, environment=self.scope[0]
            )
        changed = self._find_changed(before)
        return compile_playground(
            [_as_stored(flag) for flag in self.features if flag["name"] in changed],
            segments,
            environment=self.scope[0],
            earlier=earlier,
            unchanged=earlier.snapshot.sizes,
            replaced=changed,
        )

    def _has_others(self, segments: Collection[int]) -> bool:
        return any(segment["id"] not in segments for segment in self.segments)

    def _find_changed(self, before: Flags) -> set[str]:
        """The names of flags that were changed, added or removed, or that use a changed segment."""
        known_segments = {segment["id"]: segment for segment in before.segments}
        segments = {
            segment["id"] for segment in self.segments if known_segments.get(segment["id"]) != segment
        }
        known = {flag["name"]: flag for flag in before.features}
        same = {
            flag["name"]
            for flag in self.features
            if known.get(flag["name"]) == flag and (not segments or segments.isdisjoint(_list_segments(flag)))
        }
        return (known.keys() | {flag["name"] for flag in self.features}) - same

    def narrowed(self, projects: tuple[str, ...]) -> Flags:
        """The part that a token for only these projects can read."""
        features = [flag for flag in self.features if flag.get("project") in projects]
        used = {segment for flag in features for segment in _list_segments(flag)}
        document = self.document | {"features": features}
        if "segments" in document:
            document["segments"] = [segment for segment in self.segments if segment["id"] in used]
        if isinstance(document.get("query"), dict):
            document["query"] = document["query"] | {"project": list(projects)}
        document.pop("meta", None)
        scope = self.scope[0], projects
        return Flags(scope, document, make_body(document), self.version, self.fetched_at)


@collector_paused
def read_flags(
    scope: Scope, content: bytes, etag: str, *, before: Flags | None, fetched_at: float | None = None
) -> Flags:
    """Parses the upstream's answer. Raises UpstreamFailed for anything but a list of flags."""
    listing = read_changed(content, before.listing) if before and before.listing else None
    try:
        document = listing.document if listing else orjson.loads(content)
    except orjson.JSONDecodeError:
        raise UpstreamFailed("The upstream's flags are not JSON.") from None
    if not isinstance(document, dict) or not _are_named(document.get("features"), "name"):
        raise UpstreamFailed("The upstream's flags have another shape.")
    if not _are_named(document.get("segments") or [], "id"):
        raise UpstreamFailed("The upstream's segments have another shape.")
    body = Body(etag, [Chunk((content,))]) if etag else make_body(document, content)
    flags = Flags(scope, document, body, _read_version(document, before), fetched_at or time.time())
    flags.listing = listing or locate_flags(content, document)
    return flags


def make_body(document: Document, content: bytes | None = None) -> Body:
    plain = content or orjson.dumps(document)
    return Body(f'"{hashlib.blake2b(plain, digest_size=16).hexdigest()}"', [Chunk((plain,))])


def _read_version(document: Document, before: Flags | None) -> int:
    """The upstream's revision if it grows, otherwise the next version; after the last version, any."""
    revision = _read_revision(document)
    least = before.version + 1 if before and before.version + 1 < VERSIONS else 1
    return revision if revision is not None and least <= revision else least


def _read_revision(document: Document) -> int | None:
    """The upstream's revision, as a version."""
    meta = document.get("meta")
    revision = meta.get("revisionId") if isinstance(meta, dict) else None
    return revision % VERSIONS if isinstance(revision, int) else None


def _are_named(items: object, member: str) -> bool:
    kind = str if member == "name" else int
    return isinstance(items, list) and all(
        isinstance(item, dict) and isinstance(item.get(member), kind) for item in items
    )


def _list_objects(value: object) -> list[Document]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _list_strategies(flag: Document) -> list[Document]:
    return _list_objects(flag.get("strategies"))


def _list_segments(flag: Document) -> list[int]:
    return [segment for strategy in _list_strategies(flag) for segment in _list_ids(strategy.get("segments"))]


def _list_ids(value: object) -> list[int]:
    return [each for each in value if isinstance(each, int)] if isinstance(value, list) else []


def _as_stored(flag: Document) -> Document:
    """The flag in the form that the engine reads."""
    return flag | {"impression_data": flag.get("impressionData")}


def _add_constraints(flag: Document, segments: Mapping[int, list[Any]]) -> Document:
    strategies = []
    for strategy in _list_strategies(flag):
        own = {name: value for name, value in strategy.items() if name != "segments"}
        constraints = _list_objects(own.get("constraints"))
        for segment in _list_ids(strategy.get("segments")):
            constraints += segments.get(segment, [])
        strategies.append(own | {"constraints": constraints})
    return flag | {"strategies": strategies}


MAX_KEPT = 20  # answers


class Texts:
    """The flags and segments at one moment, each as JSON."""

    def __init__(self, flags: Flags, earlier: Texts | None = None) -> None:
        """Reuses the texts of flags that are the same objects as in ``earlier``."""
        self._documents: dict[str, Document] = {flag["name"]: flag for flag in flags.features}
        self._flags: dict[str, bytes] = {}
        for name, flag in self._documents.items():
            is_same = earlier is not None and earlier._documents.get(name) is flag
            self._flags[name] = earlier._flags[name] if earlier and is_same else write_text(flag)
        self._projects = {flag["name"]: str(flag.get("project") or "default") for flag in flags.features}
        self.segments = dict(sorted((segment["id"], write_text(segment)) for segment in flags.segments))

    @property
    def flags(self) -> list[tuple[str, bytes]]:
        return list(self._flags.items())

    def get_flag(self, name: str, project: str) -> bytes | None:
        return self._flags.get(name)

    def find_changed_flags(self, before: Texts) -> dict[str, str]:
        projects = before._projects | self._projects
        names = before._flags.keys() | self._flags.keys()
        return {name: projects[name] for name in names if before._flags.get(name) != self._flags.get(name)}

    def find_compressed_chunks(self) -> list[Chunk]:
        return []


class Changes:
    """The history of a scope, with cached answers for many clients."""

    def __init__(self, version: int, texts: Texts) -> None:
        self._history = History(version, texts)
        self._answers: dict[int | None, Body] = {}  # changes since a version, by version

    @property
    def version(self) -> int:
        return self._history.version

    @property
    def texts(self) -> Texts:
        """The latest."""
        return self._history.content

    def advance(self, version: int, texts: Texts) -> None:
        """Replaces the texts with those of a later version."""
        self._history.advance(version, texts)
        self._answers.clear()

    def events(self, since: int | None) -> Body:
        """``{"events": [...]}``: the changes since a version, or everything if that version is unknown."""
        since = since if self._history.knows(since) else None
        if since not in self._answers:
            if len(self._answers) >= MAX_KEPT:
                self._answers.clear()
            chunks = self._history.events(since) or [Chunk((NOTHING,))]
            body = self._answers[since] = Body(f'"{self.version}"', chunks)
            body.join_small()  # lets streams share the whole instead of its many parts
        return self._answers[since]
