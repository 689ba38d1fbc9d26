"""/api/admin/search/features and /api/admin/archive/features: flags across projects."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.openapi import refusals
from groups.authentication import ApiRequest
from projects.access import access_project, readable_flags
from projects.api.context_fields import validated
from projects.api.flag_bodies import EnvironmentSummary, FlagMetadata, FlagSummary, Person
from projects.documents.flags import metadata_document, search_documents
from projects.flag_search import FILTERS, SORT_FIELDS, Search, search_flags
from projects.models import Flag

TAGS = ["Search"]


class SearchQuery(serializers.Serializer):
    query = serializers.CharField(required=False, allow_blank=True)
    sortBy = serializers.CharField(default="createdAt")
    sortOrder = serializers.ChoiceField(choices=["asc", "desc"], default="asc")
    favoritesFirst = serializers.BooleanField(default=False)
    offset = serializers.IntegerField(default=0, min_value=0, max_value=2**31 - 1)
    limit = serializers.IntegerField(default=50, min_value=1, max_value=1000)


class FoundEnvironment(EnvironmentSummary):
    yes = serializers.IntegerField()
    no = serializers.IntegerField()


class FoundFlag(FlagSummary):
    """A flag as the search shows it."""

    environments = FoundEnvironment(many=True)
    project = serializers.CharField()
    archivedAt = serializers.DateTimeField(allow_null=True)
    dependencyType = serializers.ChoiceField(choices=["parent", "child"], allow_null=True)
    segments = serializers.ListField(
        child=serializers.CharField(), help_text="Names of segments on its strategies."
    )
    createdBy = Person(allow_null=True)


class FoundFlags(serializers.Serializer):
    features = FoundFlag(many=True)
    total = serializers.IntegerField(help_text="How many match in all.")


class ArchivedFlags(serializers.Serializer):
    version = serializers.IntegerField()
    features = FlagMetadata(many=True)


PARAMETERS = [
    OpenApiParameter(
        "query", description="Terms, separated by commas: in name, description or type:value of a tag."
    ),
    *(
        OpenApiParameter(
            name, description=f"{' or '.join(known.operators)}, a colon and values: IS:… for example."
        )
        for name, known in FILTERS.items()
    ),
    OpenApiParameter(
        "status", many=True, description="environment:enabled or environment:disabled; any of them."
    ),
    OpenApiParameter("sortBy", enum=sorted(SORT_FIELDS), default="createdAt"),
    OpenApiParameter("sortOrder", enum=["asc", "desc"], default="asc"),
    OpenApiParameter("favoritesFirst", bool, description="The caller's favourites before the others."),
    OpenApiParameter("offset", int, default=0),
    OpenApiParameter("limit", int, default=50, description="1 to 1000."),
]


class SearchView(APIView):
    @extend_schema(
        operation_id="searchFeatures",
        tags=TAGS,
        parameters=PARAMETERS,
        responses={200: FoundFlags} | refusals(400, 403),
    )
    def get(self, request: ApiRequest) -> Response:
        """Flags the caller may read, filtered, sorted and paged. Archived ones only with archived=IS:true."""
        search = _search(request)
        found, total = search_flags(readable_flags(request.user), search)
        return Response({"features": search_documents(found, caller=request.user), "total": total})


def _search(request: ApiRequest) -> Search:
    """Raises ValidationError."""
    sent = request.query_params
    given: dict[str, Any] = validated(SearchQuery(data=sent.dict()))
    return Search(
        query=given.get("query", ""),
        filters={name: sent[name] for name in FILTERS if sent.get(name)},
        status=[*sent.getlist("status"), *sent.getlist("status[]")],
        sort_by=given["sortBy"],
        descending=given["sortOrder"] == "desc",
        favourites_of=request.user.id if given["favoritesFirst"] else None,
        offset=given["offset"],
        limit=given["limit"],
    )


class ArchiveView(APIView):
    @extend_schema(
        operation_id="getArchivedFeatures", tags=["Archive"], responses={200: ArchivedFlags} | refusals(403)
    )
    def get(self, request: ApiRequest) -> Response:
        """All archived flags the caller may read, by name."""
        return _archived(readable_flags(request.user))


class ProjectArchiveView(APIView):
    @extend_schema(
        operation_id="getArchivedFeaturesByProjectId",
        tags=["Archive"],
        responses={200: ArchivedFlags} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, project_id: str) -> Response:
        """The archived flags of a project, by name."""
        return _archived(Flag.objects.filter(project=access_project(request.user, project_id)))


def _archived(flags: Any) -> Response:
    found = flags.filter(archived_at__isnull=False).order_by("name")
    return Response({"version": 2, "features": [metadata_document(flag) for flag in found]})


urlpatterns = [
    path("search/features", SearchView.as_view()),
    path("archive/features", ArchiveView.as_view()),
    path("archive/features/<str:project_id>", ProjectArchiveView.as_view()),
]
