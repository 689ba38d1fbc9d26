"""Caches compiled flags by environment and project revisions, and compiles changes.

Each worker has its own cache, which is never stale: each request reads the projects' revisions (one indexed query), and
a snapshot is used only for exactly the (project, revision) pairs at which it was read. The next one reads and compiles
only the flags that changed since.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from threading import Event, Lock
from time import perf_counter

from django.conf import settings
from prometheus_client import Counter, Histogram

from flagadmin.core.caches import CACHE_BYTES, SharingCache
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.metrics import process_name, register_sampler
from flagadmin.core.server.memory import collector_paused, trim_after_long_work
from playground.engine.snapshot import SPARE_ENTRIES
from playground.response.snapshot import Batch, ResponseSnapshot, compile_batches
from projects.definitions import read_definition_batches
from projects.revision import read_changed_flags, read_revisions

Pairs = tuple[tuple[str, int], ...]  # (project, revision), sorted
Key = tuple[str, Pairs]  # environment, pairs
PATIENCE = 60.0  # seconds to wait for flags that are being compiled ahead


class SnapshotCache(SharingCache[Key, ResponseSnapshot]):
    """Snapshots by their environment and revisions."""

    def put(self, key: Key, value: ResponseSnapshot, *, limit: int) -> None:
        """Replaces the snapshots of the same projects and environment at earlier revisions."""
        for other, _ in self.entries():
            if _replaces(key, other):
                self.drop(other)
        super().put(key, value, limit=limit)

    def find_nearest(self, key: Key) -> tuple[ResponseSnapshot | None, dict[str, int]]:
        """The snapshot from which most can be reused, and its revisions of the same projects.

        Its columns and segments are reused too: there must be few, unless most of its flags are reused.
        """
        environment, pairs = key
        projects = dict(pairs)
        best, revisions, most = None, dict[str, int](), (0, 0, 0)
        for its_pairs, snapshot in [
            (other[1], snapshot) for other, snapshot in self.entries() if other[0] == environment
        ]:
            sizes = snapshot.snapshot.sizes
            alike = sum(sizes[name] for name, _ in its_pairs if name in projects)
            fits = 2 * alike >= len(snapshot.flags) or snapshot.snapshot.entries <= SPARE_ENTRIES
            if not alike or not fits or snapshot.snapshot.is_worn:
                continue
            unchanged = sum(sizes[name] for name, revision in its_pairs if projects.get(name) == revision)
            # If two are equally good, the smaller one, because everything in a snapshot is scanned.
            score = unchanged, alike, -len(snapshot.flags)
            if score > most:
                best, most = snapshot, score
                revisions = {name: revision for name, revision in its_pairs if name in projects}
        return best, revisions


def _replaces(key: Key, other: Key) -> bool:
    """Whether a snapshot has the same projects and environment, at any revision."""
    return key[0] == other[0] and [name for name, _ in key[1]] == [name for name, _ in other[1]]


cache = SnapshotCache()
_compiling = Lock()

LOOKUPS = Counter(
    "flagadmin_snapshot_lookups_total",
    "Snapshots asked for: found in the cache (hit) or not (miss).",
    ["result"],
)
COMPILE_SECONDS = Histogram("flagadmin_snapshot_compile_seconds", "Reading and compiling what has changed.")


@register_sampler
def _sample() -> None:
    CACHE_BYTES.labels("snapshots", process_name()).set(cache.nbytes)


def load_snapshot(projects: Iterable[str] | None, environment: str) -> ResponseSnapshot:
    """The compiled flags of these projects (None: of all) in this environment, as stored now.

    Leaves out projects that do not exist. One query if the snapshot is cached.
    """
    return load_snapshot_at(read_revisions(projects), environment)


def load_snapshot_at(current: Mapping[str, int], environment: str) -> ResponseSnapshot:
    """The compiled flags of projects whose revisions were just read (``projects.revision.read_revisions``)."""
    cached = cache.get(make_key(current, environment))
    LOOKUPS.labels("hit" if cached else "miss").inc()
    return cached or _compile(list(current), environment)


def get_cached_snapshot(current: Mapping[str, int], environment: str) -> ResponseSnapshot | None:
    """The compiled flags of projects at these revisions, if this worker has them."""
    return cache.get(make_key(current, environment))


def make_key(current: Mapping[str, int], environment: str) -> Key:
    """The key of a snapshot in the cache."""
    return environment, tuple(sorted(current.items()))


class _Ahead:
    """All projects of an environment, while they are compiled before a request needs them."""

    def __init__(self, projects: int) -> None:
        self._projects = projects
        self.needed, self.done = Event(), Event()

    def wait_for(self, projects: list[str]) -> None:
        """Waits if that takes less time than compiling these projects."""
        if 2 * len(projects) > self._projects:
            self.needed.set()
            self.done.wait(PATIENCE)


_being_compiled: dict[str, _Ahead] = {}  # by environment


@trim_after_long_work()
def compile_ahead(environment: str, paced: Callable[[Iterator[Batch], Event], Iterator[Batch]]) -> None:
    """Compiles all projects in the steps of ``paced``, which stops pausing once its event is set.

    Does nothing if most of them are compiled already.
    """
    with consistent_reads():
        current = read_revisions()
        key = make_key(current, environment)
        if 2 * len(current.items() & cache.find_nearest(key)[1].items()) > len(current):
            return
        ahead = _being_compiled[environment] = _Ahead(len(current))
        try:
            batches = _read_batches(current, environment)
            compiled = compile_batches(paced(batches, ahead.needed), environment=environment)
            compiled.lay_out()
            cache.put(key, compiled, limit=settings.SNAPSHOT_CACHE_BYTES)
        finally:
            del _being_compiled[environment]
            ahead.done.set()


def _read_batches(
    projects: Iterable[str], environment: str, flags: Collection[str] | None = None
) -> Iterator[Batch]:
    return ((read.flags, read.segments) for read in read_definition_batches(projects, environment, flags))


@collector_paused
def _compile(projects: list[str], environment: str) -> ResponseSnapshot:
    """One thread of a worker compiles at a time; waiting threads use its result."""
    if ahead := _being_compiled.get(environment):
        ahead.wait_for(projects)
    with _compiling, trim_after_long_work():
        begun = perf_counter()
        with consistent_reads():
            current = read_revisions(projects)
            key = make_key(current, environment)
            compiled = cache.get(key)
            if compiled is not None:
                return compiled
            earlier, known = cache.find_nearest(key)
            changed = read_changed_flags(dict(known.items() - current.items()), current)
            unchanged = dict(known.items() & current.items()).keys() | changed.keys()
            replaced = set[str]().union(*changed.values())
            batches = _read_batches([name for name in projects if name not in unchanged], environment)
            if replaced:
                batches = chain(_read_batches(changed, environment, replaced), batches)
            compiled = compile_batches(
                batches, environment=environment, earlier=earlier, unchanged=unchanged, replaced=replaced
            )
        cache.put(key, compiled, limit=settings.SNAPSHOT_CACHE_BYTES)
        COMPILE_SECONDS.observe(perf_counter() - begun)
        return compiled
