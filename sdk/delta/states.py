"""Caches, in each worker, the latest content and history of every scope that SDKs ask for by delta or stream."""

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from weakref import WeakValueDictionary

from django.conf import settings

from flagadmin.core.byte_cache import ByteCache
from flagadmin.core.db import outages
from flagadmin.core.db.replica import has_other_database
from flagadmin.core.errors import ServiceUnavailable
from sdk.delta.content import Content, read_content
from sdk.delta.history import History, Matches
from sdk.delta.scope import Scope
from sdk.delta.version_ids import Outdated, get_version_id, read_latest_id
from sdk.features.body import MAX_KEPT, ChunkedBody
from sdk.features.chunks import Chunk

ATTEMPTS = 5
PAUSE = 0.02  # seconds before reading again what another worker has seen later
STATE_BYTES = 4_000  # beside its content
TRUSTED = 600.0  # seconds; then the id is looked up again, in case a backup was restored


class Events(ChunkedBody):
    """``{"events": […]}``."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        super().__init__(chunks)
        size = sum(len(text) for chunk in chunks for text in chunk.texts)
        # The compressed form is smaller than a quarter. The texts are often those of the pieces, but may outlive them.
        self.nbytes = size + size // 4 + (size if size <= MAX_KEPT else 0)


class ScopeState:
    """The history of a scope. Thread-safe: one thread at a time reads it or brings it up to date."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.nbytes = STATE_BYTES
        self._lock = Lock()
        self._history: History[Content] | None = None
        self._checked = 0.0

    def bring_up_to_date(self, revisions: Mapping[str, int] | None, *, using: str) -> int:
        """Reads what has changed, if these revisions, just read, are not those known. Returns the version.

        Reads the revisions if they are None. While this worker's database (a replica) is behind what another
        worker has seen, and during an outage, the version stays as it is. Raises ServiceUnavailable if there is none.
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
                    # A stream is told again and again until it has what is new.
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
            ):  # the first, or a backup was restored
                history = History(version, content)
                answers.clear()  # another state may have had this version
            self.nbytes = STATE_BYTES + content.nbytes
            return history
        if history is None:
            raise ServiceUnavailable("The replica of the database is behind. Try again.")
        return history

    def events(self, since: int | None, matches: Matches | None = None) -> tuple[int, Events | None]:
        """The version and the events since another one, as :meth:`History.events` returns them.

        Without events for an SDK that another worker has told a later version: it must not go back.
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
        """Whether another worker has told of it. Nobody can say during an outage; then nobody goes back."""
        return _is_outage() or read_latest_id(self.scope.key) >= version


def _may_stay(using: str) -> bool:
    """Whether what is known may be the answer, because no database can be asked."""
    return not has_other_database(using) and outages.may_use_known()


def _is_outage() -> bool:
    return outages.reach.is_lost or outages.is_from_memory()


# By the version, which is of one scope, and the version that the SDK has.
answers: ByteCache[tuple[int, int | None], Events] = ByteCache()


class ScopeStates:
    """The states of the scopes asked for last, up to a total size, and those that somebody holds. Thread-safe.

    Whoever has told a client something holds the state: a new one would know nothing of what the client has.
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
