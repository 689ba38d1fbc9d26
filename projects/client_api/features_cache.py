"""Caches serialised /api/client/features responses by token scope, query and revision."""

import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import orjson
from django.conf import settings

from flagadmin.byte_cache import ByteCache
from flagadmin.db.transactions import consistent_reads
from groups.models import ApiToken
from projects.client_api.documents import client_features
from projects.client_api.token_scope import TokenScope, read_token_scope
from projects.models import FlagTag


@dataclass(frozen=True, slots=True)
class FeaturesQuery:
    """The filters of a request. ``tags`` are (type, value) pairs; a flag must have at least one of them."""

    knows_segments: bool
    name_prefix: str = ""
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CachedResponse:
    key: bytes
    etag: str
    body: bytes
    gzipped: bytes

    @property
    def nbytes(self) -> int:
        return len(self.body) + len(self.gzipped)


class FeaturesCache:
    """Keeps the latest response for each cache key, up to a total size in bytes."""

    def __init__(self) -> None:
        self._responses: ByteCache[bytes, CachedResponse] = ByteCache()

    @property
    def nbytes(self) -> int:
        return self._responses.nbytes

    def get(self, key: bytes, etag: str) -> CachedResponse | None:
        response = self._responses.get(key)
        return response if response is not None and response.etag == etag else None

    def put(self, response: CachedResponse, *, limit: int) -> None:
        self._responses.put(response.key, response, limit=limit)

    def clear(self) -> None:
        self._responses.clear()


cache = FeaturesCache()
_building = Lock()


def etag_of(scope: TokenScope, query: FeaturesQuery, *, using: str) -> tuple[bytes, str]:
    """The cache key of a response and its strong ETag, ``"<hash of the query>:<revision>:v1"``."""
    parts: list[Any] = [scope.environment, scope.all_projects, scope.projects, query.knows_segments]
    if query.name_prefix or query.tags:
        parts += [query.name_prefix, query.tags, sorted(_tagged(query, using=using) or ())]
    key = hashlib.sha256(orjson.dumps(parts)).digest()
    return key, f'"{key[:4].hex()}:{scope.revision}:v1"'


def cached_response(token: ApiToken, query: FeaturesQuery, *, using: str) -> CachedResponse:
    """A response from the cache, built if necessary. Only one thread of a worker builds at a time."""
    with _building, consistent_reads(using):
        scope = read_token_scope(token, using=using)
        key, etag = etag_of(scope, query, using=using)
        found = cache.get(key, etag)
        if found is None:
            body = _document(scope, query, key, etag, using=using)
            found = CachedResponse(key, etag, body, gzip.compress(body, 6, mtime=0))
            cache.put(found, limit=settings.CLIENT_FEATURES_CACHE_BYTES)
    return found


def _document(scope: TokenScope, query: FeaturesQuery, key: bytes, etag: str, *, using: str) -> bytes:
    flags, segments = client_features(
        scope.projects, scope.environment, inline_segments=not query.knows_segments, using=using
    )
    matches = _filter(query, using=using)
    document: dict[str, Any] = {
        "version": 2,
        "features": [flag for flag in flags if matches(flag["name"])],
        "query": _query(scope, query),
    }
    if query.knows_segments:
        document["segments"] = segments
    document["meta"] = {"revisionId": scope.revision, "etag": etag, "queryHash": key[:4].hex()}
    return orjson.dumps(document)


def _query(scope: TokenScope, query: FeaturesQuery) -> dict[str, Any]:
    echoed: dict[str, Any] = {"tag": [list(tag) for tag in query.tags]} if query.tags else {}
    if not scope.all_projects:
        echoed["project"] = list(scope.projects)
    if query.name_prefix:
        echoed["namePrefix"] = query.name_prefix
    return echoed | {"environment": scope.environment, "inlineSegmentConstraints": not query.knows_segments}


def _filter(query: FeaturesQuery, *, using: str) -> Callable[[str], bool]:
    tagged = _tagged(query, using=using)
    return lambda name: name.startswith(query.name_prefix) and (tagged is None or name in tagged)


def _tagged(query: FeaturesQuery, *, using: str) -> set[str] | None:
    """The names of flags with one of the tags, None without tags.

    Part of the ETag, as tags do not change revisions.
    """
    if not query.tags:
        return None
    names: set[str] = set()
    for tag_type, value in query.tags:
        rows = FlagTag.objects.using(using).filter(tag_type=tag_type, value=value, flag__archived_at=None)
        names.update(rows.values_list("flag__name", flat=True))
    return names
