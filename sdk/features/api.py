"""GET /api/client/features: the flag definitions that SDKs evaluate locally."""

import orjson
from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.db import outages
from flagadmin.core.db.outages import has_other_database, read_for_sdks
from flagadmin.core.errors import NotFound, ServiceUnavailable, ValidationError
from flagadmin.core.http.fields import Texts
from flagadmin.core.http.openapi import refusal
from flagadmin.core.http.responses import is_known, make_json_response, not_modified, read_known_etags
from groups.authentication import ApiRequest
from sdk.base import ClientView, get_token
from sdk.features.assembly import FeaturesAnswer
from sdk.features.cache import FeaturesQuery, cache, get_answer, is_older, make_key_and_etag
from sdk.headers import HEADER, knows_segments
from sdk.poll_shortcuts import Origin, features_answers, mark_origin
from sdk.watcher.watcher import token_scope

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
