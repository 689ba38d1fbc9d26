"""GET /api/client/delta: the changes since an SDK last asked."""

import hashlib
import time
from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any

import orjson
from django.db.models import Q
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from flagadmin.core.db.outages import read_for_sdks
from flagadmin.core.http.responses import make_json_response, not_modified
from groups.authentication import ApiRequest
from projects.models import FlagTag
from sdk.base import ClientView, get_token
from sdk.delta.history import Matches, read_known_version
from sdk.delta.states import TRUSTED, Scope, states
from sdk.features.api import EXAMPLE as FEATURES
from sdk.features.api import FILTERS, ClientFeature, ClientSegment, FeaturesQuery, read_query
from sdk.poll_shortcuts import Origin, delta_answers, mark_origin
from sdk.watcher.watcher import token_scope

MAX_ID = 2**32 - 1
FEATURE, SEGMENT = FEATURES["features"][0], FEATURES["segments"][0]  # type: ignore[index]
EVENTS: dict[str, dict[str, Any]] = {
    "hydration": {"features": [FEATURE], "segments": [SEGMENT]},
    "segment-updated": {"segment": SEGMENT},
    "feature-updated": {"feature": FEATURE},
    "feature-removed": {"featureName": "old-checkout", "project": "default"},
    "segment-removed": {"segmentId": 2},
}
EXAMPLE = {"events": [{"type": kind, "eventId": 1795358405} | event for kind, event in EVENTS.items()]}


class DeltaEvent(serializers.Serializer):
    type = serializers.ChoiceField(choices=list(EVENTS))
    eventId = serializers.IntegerField(max_value=MAX_ID, help_text="The version of which this is a part.")
    features = ClientFeature(many=True, required=False, help_text="All of them, in a hydration.")
    segments = ClientSegment(many=True, required=False, help_text="All of them, in a hydration.")
    feature = ClientFeature(required=False)
    featureName = serializers.CharField(required=False)
    project = serializers.CharField(required=False, help_text="Where the removed flag was.")
    segment = ClientSegment(required=False)
    segmentId = serializers.IntegerField(required=False)


class Delta(serializers.Serializer):
    events = DeltaEvent(many=True)


class DeltaView(ClientView):
    @extend_schema(
        operation_id="getDelta",
        parameters=[
            OpenApiParameter(
                "If-None-Match",
                str,
                OpenApiParameter.HEADER,
                description="The ETag of the previous response: without it, everything comes as a hydration.",
            ),
            *FILTERS,
        ],
        responses={
            200: Delta,
            304: OpenApiResponse(description="Nothing has changed. No body."),
        },
        examples=[OpenApiExample("Events", value=EXAMPLE, response_only=True, status_codes=["200"])],
    )
    def get(self, request: ApiRequest) -> HttpResponse:
        """List the changes in the flags that the token can read since the version in If-None-Match.

        The ETag is the `eventId` of the events, and grows. For an unknown one, from a token that could read other
        projects or from long ago, the answer has one `hydration` event: everything, replacing the SDK's content. A
        flag moved to a project that the token cannot read is removed. Segments come by id.
        """
        query = read_query(request)
        return read_for_sdks(lambda using: self._answer(request, query, using=using))

    def _answer(self, request: ApiRequest, query: FeaturesQuery, *, using: str) -> HttpResponse:
        scope = token_scope(get_token(request), using=using)
        state = states.get(Scope.of(scope))
        state.bring_up_to_date(scope.revisions, using=using)
        matches, suffix = _filter(query, using=using)
        known = read_known_version(request.headers.get("If-None-Match", ""), suffix)
        version, events = state.events(known, matches)
        etag = f'"{version}{suffix}"'
        if events is None:
            response = not_modified(etag)
            if not query.tags:
                # For as long as the id is trusted: other workers must learn that it is still in use.
                mark_origin(response, Origin(get_token(request).pk, scope, valid_until=time.time() + TRUSTED))
        else:
            response = make_json_response(request, events)
            response["ETag"] = etag
        response["Vary"] = delta_answers.vary
        response["Cache-Control"] = "no-store"  # the changes since one version do not fit another
        return response


def _filter(query: FeaturesQuery, *, using: str) -> tuple[Matches | None, str]:
    """A test for the names that the filters of a request admit, and the suffix for its ETag.

    Tagging a flag makes no new version, so the ETag identifies the tagged flags.
    """
    if not query.tags:
        return (lambda name: name.startswith(query.name_prefix)) if query.name_prefix else None, ""
    tagged = _read_tagged_flags(query.tags, using=using)
    digest = hashlib.sha256(orjson.dumps([query.name_prefix, sorted(tagged)])).hexdigest()
    return lambda name: name in tagged and name.startswith(query.name_prefix), f":{digest[:16]}"


def _read_tagged_flags(tags: Iterable[tuple[str, str]], *, using: str) -> set[str]:
    """The names of flags with one of these (type, value) pairs."""
    one_of = reduce(or_, (Q(tag_type=kind, value=value) for kind, value in tags))
    return set(FlagTag.objects.using(using).filter(one_of).values_list("flag__name", flat=True))
