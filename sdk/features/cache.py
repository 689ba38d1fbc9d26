"""Caches answers of /api/client/features by token scope, query and revision, and builds them."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from time import perf_counter
from typing import Any

import orjson
from django.conf import settings
from prometheus_client import Histogram

from flagadmin.core.caches import CACHE_BYTES, SharingCache
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.metrics import process_name, register_sampler
from groups.models import ApiToken
from projects.models import FlagTag
from sdk.features.assembly import (
    FeaturesAnswer,
    Piece,
    Place,
    make_flag_chunks,
    make_segments_chunk,
    read_pieces,
)
from sdk.features.chunks import Chunk
from sdk.token_scope import TokenScope, read_token_scope


@dataclass(frozen=True, slots=True)
class FeaturesQuery:
    """The filters of a request. ``tags`` are (type, value) pairs; a flag must have at least one of them."""

    knows_segments: bool
    name_prefix: str = ""
    tags: tuple[tuple[str, str], ...] = ()


class FeaturesCache(SharingCache[bytes, FeaturesAnswer]):
    """The latest answer for each cache key."""

    def current(self, key: bytes, etag: str) -> FeaturesAnswer | None:
        answer = self.get(key)
        return answer if answer is not None and answer.etag == etag else None

    def recount(self, answer: FeaturesAnswer, *, limit: int) -> None:
        """Call this after the answer may have created its bytes."""
        if self.get(answer.key) is answer:
            self.put(answer.key, answer, limit=limit)


cache = FeaturesCache()
_building = Lock()
BUILD_SECONDS = Histogram(
    "flagadmin_sdk_answer_build_seconds", "Reading what has changed and putting an answer together."
)
_ETAG = re.compile(r'(?:W/)?"([0-9a-f]{8}):([0-9]{1,19}):v1"')


@register_sampler
def _sample() -> None:
    CACHE_BYTES.labels("sdk answers", process_name()).set(cache.nbytes)


def make_key_and_etag(scope: TokenScope, query: FeaturesQuery, *, using: str) -> tuple[bytes, str]:
    """The cache key of a response and its strong ETag, ``"<hash of the query>:<revision>:v1"``."""
    parts: list[Any] = [scope.environment, scope.all_projects, scope.projects, query.knows_segments]
    if query.name_prefix or query.tags:
        parts += [query.name_prefix, query.tags, sorted(_read_tagged_flags(query, using=using) or ())]
    key = hashlib.sha256(orjson.dumps(parts)).digest()
    return key, f'"{key[:4].hex()}:{scope.revision}:v1"'


def find_compressed_chunks(environment: str, pieces: Mapping[str, Piece]) -> list[Chunk]:
    """The flags of a cached answer for the same environment and projects, if there is one.

    Some of its chunks may already be compressed. Answers with filters have fewer flags, so the largest is used.
    """
    chunk_lists = (
        answer.flags
        for _, answer in cache.entries()
        if answer.place.environment == environment and answer.pieces.keys() == pieces.keys()
    )
    return max(chunk_lists, key=lambda chunks: sum(len(chunk.names) for chunk in chunks), default=[])


def is_older(known: str, etag: str) -> bool:
    """Whether ``known`` is the ETag of an earlier answer to the same query."""
    known_parts, parts = _ETAG.fullmatch(known), _ETAG.fullmatch(etag)
    return bool(known_parts and parts and known_parts[1] == parts[1] and int(known_parts[2]) < int(parts[2]))


def get_answer(token: ApiToken, query: FeaturesQuery, *, using: str) -> FeaturesAnswer:
    """An answer from the cache, built if necessary. Only one thread of a worker builds at a time."""
    with _building:
        begun = perf_counter()
        with consistent_reads(using):
            scope = read_token_scope(token, using=using)
            key, etag = make_key_and_etag(scope, query, using=using)
            answer = cache.current(key, etag)
            if answer is not None:
                return answer
            place = Place(scope.environment, inline_segments=not query.knows_segments)
            pieces = read_pieces(scope.revisions, place, using=using)
            matches = _filter(query, using=using)
        answer = _make_answer(scope, query, key, etag, pieces, matches)
        cache.put(key, answer, limit=settings.CLIENT_FEATURES_CACHE_BYTES)
        BUILD_SECONDS.observe(perf_counter() - begun)
        return answer


def _make_answer(
    scope: TokenScope,
    query: FeaturesQuery,
    key: bytes,
    etag: str,
    pieces: dict[str, Piece],
    matches: Callable[[str], bool],
) -> FeaturesAnswer:
    earlier = cache.get(key)
    return FeaturesAnswer(
        key,
        etag,
        Place(scope.environment, not query.knows_segments),
        pieces,
        flags=make_flag_chunks(pieces, matches, earlier),
        segments=make_segments_chunk(pieces, earlier) if query.knows_segments else None,
        query=orjson.dumps(_make_query(scope, query)),
        meta=orjson.dumps({"revisionId": scope.revision, "etag": etag, "queryHash": key[:4].hex()}),
    )


def _make_query(scope: TokenScope, query: FeaturesQuery) -> dict[str, Any]:
    echoed: dict[str, Any] = {"tag": [list(tag) for tag in query.tags]} if query.tags else {}
    if not scope.all_projects:
        echoed["project"] = list(scope.projects)
    if query.name_prefix:
        echoed["namePrefix"] = query.name_prefix
    return echoed | {"environment": scope.environment, "inlineSegmentConstraints": not query.knows_segments}


def _filter(query: FeaturesQuery, *, using: str) -> Callable[[str], bool]:
    tagged = _read_tagged_flags(query, using=using)
    return lambda name: name.startswith(query.name_prefix) and (tagged is None or name in tagged)


def _read_tagged_flags(query: FeaturesQuery, *, using: str) -> set[str] | None:
    """The names of flags with one of the tags; None without tags.

    They are part of the ETag, because tags do not change revisions.
    """
    if not query.tags:
        return None
    names: set[str] = set()
    for tag_type, value in query.tags:
        rows = FlagTag.objects.using(using).filter(tag_type=tag_type, value=value, flag__archived_at=None)
        names.update(rows.values_list("flag__name", flat=True))
    return names
