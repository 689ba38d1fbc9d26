"""Ready bytes of the client features document: built once per scope, query and revision, then served as they are."""

import gzip
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import orjson
from django.conf import settings

from flagadmin.db.transactions import consistent_reads
from groups.models import ApiToken
from projects.client_api.documents import client_features
from projects.client_api.token_scope import Scope, read_scope
from projects.models import FlagTag


@dataclass(frozen=True, slots=True)
class Query:
    """What a request narrows the document to. ``tags`` are (type, value); any of them is enough."""

    knows_segments: bool
    name_prefix: str = ""
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    key: bytes
    etag: str
    body: bytes
    gzipped: bytes

    @property
    def nbytes(self) -> int:
        return len(self.body) + len(self.gzipped)


class AnswerCache:
    """One answer a key, the newest; the least recently used out first beyond ``limit`` bytes."""

    def __init__(self) -> None:
        self._answers: OrderedDict[bytes, Answer] = OrderedDict()
        self._lock = Lock()
        self.nbytes = 0

    def get(self, key: bytes, etag: str) -> Answer | None:
        with self._lock:
            answer = self._answers.get(key)
            if answer is None or answer.etag != etag:
                return None
            self._answers.move_to_end(key)
            return answer

    def put(self, answer: Answer, *, limit: int) -> None:
        with self._lock:
            if answer.key in self._answers:
                self.nbytes -= self._answers.pop(answer.key).nbytes
            self._answers[answer.key] = answer
            self.nbytes += answer.nbytes
            while self.nbytes > limit and len(self._answers) > 1:
                self.nbytes -= self._answers.popitem(last=False)[1].nbytes

    def clear(self) -> None:
        with self._lock:
            self._answers.clear()
            self.nbytes = 0


cache = AnswerCache()
_building = Lock()


def etag_of(scope: Scope, query: Query, *, using: str) -> tuple[bytes, str]:
    """The key of an answer and its strong ETag, ``"<hash of the query>:<revision>:v1"``."""
    parts: list[Any] = [scope.environment, scope.all_projects, scope.projects, query.knows_segments]
    if query.name_prefix or query.tags:
        parts += [query.name_prefix, query.tags, sorted(_tagged(query, using=using) or ())]
    key = hashlib.sha256(orjson.dumps(parts)).digest()
    return key, f'"{key[:4].hex()}:{scope.revision}:v1"'


def answer_for(token: ApiToken, query: Query, *, using: str) -> Answer:
    """Read, built and kept. One thread of a worker at a time: the others find the result."""
    with _building, consistent_reads(using):
        scope = read_scope(token, using=using)
        key, etag = etag_of(scope, query, using=using)
        found = cache.get(key, etag)
        if found is None:
            body = _document(scope, query, key, etag, using=using)
            found = Answer(key, etag, body, gzip.compress(body, 6, mtime=0))
            cache.put(found, limit=settings.CLIENT_FEATURES_CACHE_BYTES)
    return found


def _document(scope: Scope, query: Query, key: bytes, etag: str, *, using: str) -> bytes:
    flags, segments = client_features(
        scope.projects, scope.environment, inline_segments=not query.knows_segments, using=using
    )
    wanted = _filter(query, using=using)
    document: dict[str, Any] = {
        "version": 2,
        "features": [flag for flag in flags if wanted(flag["name"])],
        "query": _query(scope, query),
    }
    if query.knows_segments:
        document["segments"] = segments
    document["meta"] = {"revisionId": scope.revision, "etag": etag, "queryHash": key[:4].hex()}
    return orjson.dumps(document)


def _query(scope: Scope, query: Query) -> dict[str, Any]:
    said: dict[str, Any] = {"tag": [list(tag) for tag in query.tags]} if query.tags else {}
    if not scope.all_projects:
        said["project"] = list(scope.projects)
    if query.name_prefix:
        said["namePrefix"] = query.name_prefix
    return said | {"environment": scope.environment, "inlineSegmentConstraints": not query.knows_segments}


def _filter(query: Query, *, using: str) -> Callable[[str], bool]:
    tagged = _tagged(query, using=using)
    return lambda name: name.startswith(query.name_prefix) and (tagged is None or name in tagged)


def _tagged(query: Query, *, using: str) -> set[str] | None:
    """The flags with one of the tags; tags raise no revision, so the ETag has the names. None without tags."""
    if not query.tags:
        return None
    names: set[str] = set()
    for tag_type, value in query.tags:
        rows = FlagTag.objects.using(using).filter(tag_type=tag_type, value=value, flag__archived_at=None)
        names.update(rows.values_list("flag__name", flat=True))
    return names
