"""GET /api/client/features: the flag definitions that SDKs evaluate locally.

Caches answers of /api/client/features by token scope, query and revision, and builds them.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from time import perf_counter
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from prometheus_client import Histogram
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.caches import CACHE_BYTES, SharingCache
from flagadmin.core.db import outages
from flagadmin.core.db.outages import has_other_database, read_for_sdks
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.errors import NotFound, ServiceUnavailable, ValidationError
from flagadmin.core.http.fields import Texts
from flagadmin.core.http.openapi import refusal
from flagadmin.core.http.responses import is_known, make_json_response, not_modified, read_known_etags
from flagadmin.core.metrics import process_name, register_sampler
from groups.authentication import ApiRequest
from groups.models import ApiToken
from projects.models import FlagTag
from sdk.base import ClientView, TokenScope, get_token, read_token_scope
from sdk.features.assembly import (
    FeaturesAnswer,
    Piece,
    Place,
    make_flag_chunks,
    make_segments_chunk,
    read_pieces,
)
from sdk.features.chunks import Chunk
from sdk.headers import HEADER, knows_segments
from sdk.poll_shortcuts import Origin, features_answers, mark_origin
from sdk.watcher.watcher import token_scope


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


EXAMPLE = {
    "version": 2,
    "features": [
        {
            "name": "new-checkout",
            "type": "release",
            "enabled": True,
            "project": "default",
            "stale": False,
            "strategies": [
                {
                    "name": "flexibleRollout",
                    "constraints": [],
                    "parameters": {"groupId": "new-checkout", "rollout": "50", "stickiness": "default"},
                    "variants": [],
                    "segments": [1],
                }
            ],
            "variants": [],
            "description": None,
            "impressionData": False,
        }
    ],
    "query": {"project": ["default"], "environment": "development", "inlineSegmentConstraints": False},
    "segments": [
        {
            "id": 1,
            "name": "norwegians",
            "constraints": [{"values": ["NO"], "operator": "IN", "contextName": "country"}],
        }
    ],
    "meta": {"revisionId": 81, "etag": '"1fc12c72:81:v1"', "queryHash": "1fc12c72"},
}


class ClientStrategy(serializers.Serializer):
    name = serializers.CharField()
    constraints = serializers.ListField(child=serializers.DictField())
    parameters = serializers.DictField(child=serializers.CharField())
    variants = serializers.ListField(child=serializers.DictField())
    segments = serializers.ListField(
        child=serializers.IntegerField(), required=False, help_text="Absent if there are none."
    )


class ClientDependency(serializers.Serializer):
    feature = serializers.CharField(help_text="Name of the parent.")
    enabled = serializers.BooleanField()
    variants = Texts()


class ClientFeature(serializers.Serializer):
    name = serializers.CharField()
    type = serializers.CharField()
    enabled = serializers.BooleanField(help_text="In the environment of the token.")
    project = serializers.CharField()
    stale = serializers.BooleanField()
    strategies = ClientStrategy(many=True, help_text="Without disabled strategies.")
    variants = serializers.ListField(child=serializers.DictField())
    description = serializers.CharField(allow_null=True)
    impressionData = serializers.BooleanField()
    dependencies = ClientDependency(many=True, required=False, help_text="Absent if there are none.")


class ClientSegment(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    constraints = serializers.ListField(child=serializers.DictField())


class ClientFeatures(serializers.Serializer):
    version = serializers.IntegerField()
    features = ClientFeature(many=True)
    query = serializers.DictField()
    segments = ClientSegment(many=True, required=False, help_text="Since client specification 4.2.0.")
    meta = serializers.DictField()


SPEC = OpenApiParameter(
    HEADER, str, OpenApiParameter.HEADER, description="Client specification of the SDK, `5.2.0`."
)
FILTERS = [
    OpenApiParameter("namePrefix", str, description="Only flags whose names start with this prefix."),
    OpenApiParameter("tag", str, many=True, description="Only flags with one of these tags, `type:value`."),
]


class FeaturesView(ClientView):
    @extend_schema(
        operation_id="getAllClientFeatures",
        parameters=[
            SPEC,
            OpenApiParameter(
                "If-None-Match",
                str,
                OpenApiParameter.HEADER,
                description="The ETag of the previous response.",
            ),
            *FILTERS,
        ],
        responses={
            200: ClientFeatures,
            304: OpenApiResponse(description="Not modified. No body."),
        },
        examples=[OpenApiExample("Features", value=EXAMPLE, response_only=True, status_codes=["200"])],
    )
    def get(self, request: ApiRequest) -> HttpResponse:
        """List all active flags of the token's projects in the token's environment.

        The token determines the projects and the environment. An SDK of client specification 4.2.0 or later
        gets segments by id; for older ones their constraints are written into the strategies.
        """
        query = read_query(request)
        return read_for_sdks(lambda using: self._answer(request, query, using=using))

    def _answer(self, request: ApiRequest, query: FeaturesQuery, *, using: str) -> HttpResponse:
        scope = token_scope(get_token(request), using=using)
        key, etag = make_key_and_etag(scope, query, using=using)
        answer = None
        if is_known(request, etag):
            response = not_modified(etag)
        elif outages.is_from_memory():
            return _answer_of_before(request, key, etag)
        else:
            try:
                answer = cache.current(key, etag) or get_answer(get_token(request), query, using=using)
            except outages.UNREACHABLE:
                if has_other_database(using) or not outages.may_use_known():
                    raise
                return _answer_of_before(request, key, etag)
            response = _make_full_response(request, answer)
            cache.recount(answer, limit=settings.CLIENT_FEATURES_CACHE_BYTES)
        is_current = answer is None or (answer.etag == etag and _is_behind(request, etag))
        if is_current and not (query.tags or outages.is_from_memory()):
            mark_origin(response, Origin(get_token(request).pk, scope, answer))
        return _add_caching_headers(response)


class FeatureView(ClientView):
    @extend_schema(
        operation_id="getClientFeature",
        parameters=[SPEC],
        responses={200: ClientFeature, 404: refusal(404)},
    )
    def get(self, request: ApiRequest, name: str) -> Response:
        """Get one flag, in the format of the list."""
        return read_for_sdks(lambda using: self._answer(request, name, using=using))

    def _answer(self, request: ApiRequest, name: str, *, using: str) -> Response:
        query = FeaturesQuery(knows_segments(request.headers.get(HEADER, "")))
        key, etag = make_key_and_etag(token_scope(get_token(request), using=using), query, using=using)
        answer = cache.current(key, etag) or get_answer(get_token(request), query, using=using)
        for piece in answer.pieces.values():
            if name in piece.flags:
                return Response(orjson.loads(piece.flags[name]))
        raise NotFound(f"Could not find feature flag {name}")


def _answer_of_before(request: ApiRequest, key: bytes, etag: str) -> HttpResponse:
    """During an outage: this worker's latest answer, unless another worker has given a later one."""
    answer = cache.get(key)
    latest = answer.etag if answer else etag
    for known in read_known_etags(request):
        if known == latest or is_older(latest, known):
            return _add_caching_headers(not_modified(known))
    if answer is None:
        raise ServiceUnavailable
    return _add_caching_headers(_make_full_response(request, answer))


def read_query(request: ApiRequest) -> FeaturesQuery:
    """The filters in the query string. Ignores ``project`` and ``environment``, which the token determines.

    Raises ValidationError.
    """
    tags = []
    for index, tag in enumerate(request.query_params.getlist("tag")):
        tag_type, separator, value = tag.partition(":")
        if not (tag_type and separator and value):
            raise ValidationError.at(f"tag[{index}]", f'"{tag}" is not of the form type:value.')
        tags.append((tag_type, value))
    return FeaturesQuery(
        knows_segments(request.headers.get(HEADER, "")),
        request.query_params.get("namePrefix", ""),
        tuple(tags),
    )


def _is_behind(request: ApiRequest, etag: str) -> bool:
    """Whether the client has nothing or an older answer.

    After another worker's answer from a newer state, an older one must not follow, even if it is ready.
    """
    known = request.headers.get("If-None-Match")
    return known is None or is_older(known, etag)


def _make_full_response(request: ApiRequest, answer: FeaturesAnswer) -> HttpResponse:
    response = make_json_response(request, answer)
    response["ETag"] = answer.etag
    return response


def _add_caching_headers(response: HttpResponse) -> HttpResponse:
    """Lets shared caches keep the answer of each token, if they revalidate it every time."""
    response["Vary"] = features_answers.vary
    # Without "public", no shared cache may keep the answer to a request with Authorization (RFC 9111, 3.5).
    response["Cache-Control"] = "public, no-cache"
    return response
