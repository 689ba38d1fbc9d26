"""Caches, in each worker, the latest content and history of every scope used by delta or streams.

Ids for the versions of an SDK token's flags: integers below 2^32, equal on every worker and machine.

An id is at least its time of creation, in seconds since 1970, so that ids made after a restore are larger than all
earlier ones. No two scopes share an id: if a token's projects change, the SDK's old id is unknown, and it gets
everything.

The scope of an SDK token: the environment and projects that determine its flags.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from weakref import WeakValueDictionary

import orjson
from django.conf import settings
from django.db import connection, connections
from django.utils import timezone
from django.utils.functional import cached_property

from flagadmin.core.caches import ByteCache
from flagadmin.core.db import outages
from flagadmin.core.db.outages import has_other_database
from flagadmin.core.db.standby import committed_locally, standby, wait_for_no_standby
from flagadmin.core.db.transactions import consistent_reads, transactional
from flagadmin.core.errors import ServiceUnavailable
from groups.models import ApiToken
from projects.models import SdkVersion
from projects.revision import read_revisions
from sdk.base import TokenScope
from sdk.delta.history import History, Matches
from sdk.features.api import find_compressed_chunks
from sdk.features.assembly import Piece, Place, read_pieces
from sdk.features.chunks import MAX_KEPT, Chunk, ChunkedBody
from sdk.watcher.watcher import token_scope

_ALL = "SELECT project_id, revision FROM projects_projectrevision"
_THESE = f"{_ALL} WHERE project_id = ANY(%s)"


@dataclass(frozen=True)
class Scope:
    """Tokens of the same scope get the same flags. ``projects`` is None for all, else sorted ids."""

    environment: str
    projects: tuple[str, ...] | None

    @classmethod
    def of(cls, token_scope: TokenScope) -> "Scope":
        return cls(token_scope.environment, None if token_scope.all_projects else token_scope.projects)

    @cached_property
    def key(self) -> str:
        """A hash."""
        return hashlib.sha256(orjson.dumps([self.environment, self.projects])).hexdigest()

    def read_revisions(self, *, using: str) -> dict[str, int]:
        """The revisions of the projects, by id."""
        with connections[using].cursor() as cursor:
            cursor.execute(*((_ALL,) if self.projects is None else (_THESE, [list(self.projects)])))
            return dict(cursor.fetchall())


def read_scope(token: ApiToken, *, using: str) -> tuple[Scope, dict[str, int]]:
    """The scope of a token, and the revisions of its projects by id. At most one SQL statement."""
    readable = token_scope(token, using=using)
    return Scope.of(readable), readable.revisions


@dataclass(frozen=True, slots=True)
class Content:
    """The pieces of a scope's projects by id."""

    place: Place
    pieces: Mapping[str, Piece]

    @property
    def revisions(self) -> dict[str, int]:
        return {project: piece.revision for project, piece in self.pieces.items()}

    @property
    def nbytes(self) -> int:
        return sum(piece.nbytes for piece in self.pieces.values())

    @property
    def flags(self) -> list[tuple[str, bytes]]:
        """All flags with their names, in the order of the names."""
        flags: list[tuple[str, bytes]] = []
        for piece in self.pieces.values():
            flags.extend(piece.flags.items())
        return sorted(flags)

    @property
    def segments(self) -> dict[int, bytes]:
        """All segments by id, in order."""
        segments: dict[int, bytes] = {}
        for piece in self.pieces.values():
            segments.update(piece.segments)
        return dict(sorted(segments.items()))

    def get_flag(self, name: str, project: str) -> bytes | None:
        piece = self.pieces.get(project)
        return piece.flags.get(name) if piece else None

    def find_changed_flags(self, before: "Content") -> dict[str, str]:
        """The names of the changed flags, each with its project, or the last one of a deleted flag."""
        removed: dict[str, str] = {}
        changed: dict[str, str] = {}
        for project in before.pieces.keys() | self.pieces.keys():
            old, new = before.pieces.get(project), self.pieces.get(project)
            if old is None or new is None:
                removed |= dict.fromkeys(old.flags if old else (), project)
                changed |= dict.fromkeys(new.flags if new else (), project)
            elif old.revision != new.revision:
                for name, text in new.find_changed(old).items():
                    (removed if text is None else changed)[name] = project
        return removed | changed  # a flag that moved is in its new project

    def find_compressed_chunks(self) -> list[Chunk]:
        return find_compressed_chunks(self.place.environment, self.pieces)


def read_content(scope: Scope, *, using: str) -> Content:
    """The content in one database snapshot. Reads only projects without a piece at their revision."""
    with consistent_reads(using):
        revisions = scope.read_revisions(using=using)
        place = Place(scope.environment, inline_segments=False)
        return Content(place, read_pieces(revisions, place, using=using))


ATTEMPTS = 5
PAUSE = 0.02  # seconds before reading again if another worker has seen a later state
STATE_BYTES = 4_000  # in addition to its content
TRUSTED = 600.0  # seconds after which the id is looked up again, in case a backup was restored


class Events(ChunkedBody):
    """``{"events": […]}``."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        super().__init__(chunks)
        size = sum(len(text) for chunk in chunks for text in chunk.texts)
        # Compressed, it is less than a quarter. The texts are often shared with the pieces, but may outlive them.
        self.nbytes = size + size // 4 + (size if size <= MAX_KEPT else 0)


class ScopeState:
    """The history of a scope. Thread-safe: one thread at a time reads or updates it."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.nbytes = STATE_BYTES
        self._lock = Lock()
        self._history: History[Content] | None = None
        self._checked = 0.0

    def bring_up_to_date(self, revisions: Mapping[str, int] | None, *, using: str) -> int:
        """Reads the changes if these just-read revisions differ from the known ones. Returns the version.

        Reads the revisions if they are None. The version does not change during an outage, or while this worker's
        database (a replica) is behind another worker's state. Raises ServiceUnavailable if there is none.
        """
        with self._lock:
            history = self._history
            fresh = time.monotonic() - self._checked < TRUSTED
            if (
                history is None
                or not fresh
                or history.content.revisions
                != (self.scope.read_revisions(using=using) if revisions is None else revisions)
            ):
                try:
                    self._history = history = self._read(history, using=using)
                except outages.UNREACHABLE:
                    # A stream is notified repeatedly until it has the new state.
                    if history is None or revisions is None or not _may_stay(using):
                        raise
            return history.version

    def _read(self, history: History[Content] | None, *, using: str) -> History[Content]:
        for attempt in range(ATTEMPTS):
            time.sleep(PAUSE * attempt)
            content = read_content(self.scope, using=using)
            try:
                version = get_version_id(self.scope.key, content.revisions)
            except Outdated:
                continue
            self._checked = time.monotonic()
            if history is not None and version > history.version:
                history.advance(version, content)
            elif history is None or (version, content.revisions) != (
                history.version,
                history.content.revisions,
            ):  # the first one, or a backup was restored
                history = History(version, content)
                answers.clear()  # another state may have had this version
            self.nbytes = STATE_BYTES + content.nbytes
            return history
        if history is None:
            raise ServiceUnavailable("The replica of the database is behind. Try again.")
        return history

    def events(self, since: int | None, matches: Matches | None = None) -> tuple[int, Events | None]:
        """The version, and the events since another one, in the form of :meth:`History.events`.

        Without events if another worker has sent the SDK a later version, because it must not go back.
        """
        with self._lock:
            assert self._history is not None
            history, version = self._history, self._history.version
            if since is not None and since > version and self._is_later(since):
                return since, None
            key = version, since if history.knows(since) else None
            events = answers.get(key) if matches is None else None
            if events is None and (chunks := history.events(since, matches)):
                events = Events(chunks)
                if matches is None:
                    answers.put(key, events, limit=settings.CLIENT_FEATURES_CACHE_BYTES)
            return version, events

    def _is_later(self, version: int) -> bool:
        """Whether another worker has sent a later version. During an outage that is unknown, and no SDK goes back."""
        return _is_outage() or read_latest_id(self.scope.key) >= version


def _may_stay(using: str) -> bool:
    """Whether the known state may be the answer, because no database can be asked."""
    return not has_other_database(using) and outages.may_use_known()


def _is_outage() -> bool:
    return outages.reach.is_lost or outages.is_from_memory()


# By the version, which belongs to one scope, and the SDK's version.
answers: ByteCache[tuple[int, int | None], Events] = ByteCache()


class ScopeStates:
    """The states of the scopes used last, up to a total size, and those still referenced. Thread-safe.

    Code that has sent a client something keeps a reference to the state: a new one would not know the client's content.
    """

    def __init__(self) -> None:
        self._latest: OrderedDict[Scope, ScopeState] = OrderedDict()
        self._states: WeakValueDictionary[Scope, ScopeState] = WeakValueDictionary()
        self._lock = Lock()

    def get(self, scope: Scope) -> ScopeState:
        with self._lock:
            state = self._states.get(scope)
            if state is None:
                state = self._states[scope] = ScopeState(scope)
            self._latest[scope] = state
            self._latest.move_to_end(scope)
            while len(self._latest) > 1 and self.nbytes > settings.CLIENT_FEATURES_CACHE_BYTES:
                self._latest.popitem(last=False)
            return state

    @property
    def nbytes(self) -> int:
        return sum(state.nbytes for state in self._latest.values())

    def clear(self) -> None:
        with self._lock:
            self._latest.clear()
            self._states.clear()
            answers.clear()


states = ScopeStates()


# An arbitrary key for an advisory lock that serializes the creation of ids.
LOCK = 7_325_003
SEEN_STEP = timedelta(days=1)
KEPT = timedelta(days=60)

_NEXT = """
INSERT INTO projects_sdkversion (scope, version, revisions, seen_at)
SELECT %(scope)s, greatest(coalesce(max(version), 0) + 1, extract(epoch FROM clock_timestamp())::bigint),
       %(revisions)s, now()
  FROM projects_sdkversion
    ON CONFLICT (scope) DO UPDATE
   SET version = excluded.version, revisions = excluded.revisions, seen_at = excluded.seen_at
RETURNING version
"""


class Outdated(Exception):
    """Another worker has already seen a later state than these revisions."""


def get_version_id(scope: str, revisions: Mapping[str, int]) -> int:
    """The id of the state of a scope in which its projects have these revisions. Raises Outdated.

    Writes only if they differ from the last ones that any worker read. Do not use it inside a transaction that has
    already read something, which would not see concurrent writes.
    """
    stored = _read_version(scope)
    if stored is None or stored.revisions != revisions:
        return _store_next_id(scope, dict(revisions))
    if timezone.now() - stored.seen_at > SEEN_STEP:
        with committed_locally():
            SdkVersion.objects.filter(pk=scope).update(seen_at=timezone.now())
    return stored.version


def read_latest_id(scope: str) -> int:
    """The latest id given to the scope by any worker; 0 if there is none."""
    stored = _read_version(scope)
    return stored.version if stored else 0


def forget_unused() -> None:
    """Deletes ids that were not used for KEPT. By then, the time is later than the id."""
    SdkVersion.objects.filter(seen_at__lt=timezone.now() - KEPT).delete()


def _read_version(scope: str) -> SdkVersion | None:
    return SdkVersion.objects.filter(pk=scope).first()


@transactional
def _store_next_id(scope: str, revisions: dict[str, int]) -> int:
    if standby.is_missing:
        wait_for_no_standby()  # no standby could confirm it, and SDKs only read
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        stored = _read_version(scope)
        if stored is not None:
            if stored.revisions == revisions:
                return stored.version
            if not _is_later(revisions, stored.revisions):
                raise Outdated
        cursor.execute(_NEXT, {"scope": scope, "revisions": _json(revisions)})
        return int(cursor.fetchone()[0])


def _is_later(revisions: Mapping[str, int], known: Mapping[str, int]) -> bool:
    """Whether these different ``revisions`` were read later than the known ones.

    A project's revision only grows, so any common project decides. A project that only one of them has was created or
    deleted in between, which its present existence shows.
    """
    for project in revisions.keys() & known.keys():
        if revisions[project] != known[project]:
            return revisions[project] > known[project]
    created_or_deleted = revisions.keys() ^ known.keys()
    existing = read_revisions(created_or_deleted).keys()
    return all((project in revisions) == (project in existing) for project in created_or_deleted)


def _json(revisions: Mapping[str, int]) -> str:
    return orjson.dumps(revisions).decode()
