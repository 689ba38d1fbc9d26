"""/api/admin/search/features: search flags across projects. /api/admin/flag-creators: who created flags.
/api/admin/flag-views: saved views."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.http.fields import Body, Texts
from flagadmin.core.http.parameters import path_id
from groups.people.serializers import AccountName
from groups.viewsets import ApiRequest, ViewSet
from projects.flags.lists.queries import MAX_CREATORS, list_flag_creators
from projects.flags.lists.search import FlagFilter
from projects.flags.lists.views import MAX_NAME, MAX_QUERY, delete_view, list_views, save_view
from projects.flags.queries import search_documents
from projects.flags.serializers import EnvironmentSummary, FlagSummary, OwnerRecord, Person, StageRecord
from projects.models import Flag
from projects.viewsets import InProjectViewSet


class FoundEnvironment(EnvironmentSummary):
    yes = serializers.IntegerField()
    no = serializers.IntegerField()
    changeRequestIds = serializers.ListField(
        child=serializers.IntegerField(), help_text="Always empty: open change requests are not listed here."
    )


class FoundFlag(FlagSummary):
    """A flag in the search results."""

    environments = FoundEnvironment(many=True)
    project = serializers.CharField()
    archivedAt = serializers.DateTimeField(allow_null=True)
    dependencyType = serializers.ChoiceField(choices=["parent", "child"], allow_null=True)
    segments = Texts(help_text="Names of the segments that its strategies use.")
    createdBy = Person()
    owner = OwnerRecord(required=False, help_text="Absent without one.")
    lifecycle = StageRecord(required=False, help_text="The current stage.")


class FoundFlags(serializers.Serializer):
    features = FoundFlag(many=True)
    total = serializers.IntegerField(help_text="Number of flags that match, on all pages.")


class SearchViewSet(ViewSet):
    @extend_schema(
        operation_id="searchFeatures",
        tags=["Search"],
        parameters=FlagFilter.parameters(),
        responses={200: FoundFlags},
    )
    @action(detail=False)
    def features(self, request: ApiRequest) -> Response:
        """Search the flags that the caller can read.

        Archived flags are found only with archived=IS:true or lifecycle=IS:archived.
        """
        search = FlagFilter(request.query_params, Flag.objects.readable_by(self.caller))
        flags, total = search.page(self.caller.id)
        return Response({"features": search_documents(flags, caller=self.caller), "total": total})


class CreatorsQuery(serializers.Serializer):
    limit = serializers.IntegerField(min_value=1, max_value=MAX_CREATORS, default=MAX_CREATORS)


class FlagCreatorViewSet(ViewSet):
    tags = ("Features",)

    @extend_schema(
        operation_id="getFlagCreators", parameters=[CreatorsQuery], responses={200: AccountName(many=True)}
    )
    def list(self, request: ApiRequest) -> Response:
        """List the accounts that created a flag that the caller can read, archived flags included."""
        query = CreatorsQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        creators = list_flag_creators(Flag.objects.readable_by(self.caller), **query.validated_data)
        return Response(AccountName(creators, many=True).data)


class ViewBody(Body):
    name = serializers.CharField(max_length=MAX_NAME)
    query = serializers.CharField(
        max_length=MAX_QUERY, help_text="Parameters of the console's list, such as `owner=mine&sort=name`."
    )


class ViewRecord(ViewBody):
    id = serializers.IntegerField()


class FlagViewViewSet(ViewSet):
    tags = ("Favorites",)
    lookup_url_kwarg = "view_id"
    permissions = {"create": None, "destroy": None}

    @extend_schema(operation_id="getFlagViews", responses={200: ViewRecord(many=True)})
    def list(self, request: ApiRequest) -> Response:
        """List the caller's saved views of the list of all flags."""
        return Response(ViewRecord(list_views(self.caller), many=True).data)

    @extend_schema(operation_id="saveFlagView", request=ViewBody, responses={200: ViewRecord})
    def create(self, request: ApiRequest) -> Response:
        """Save a view of the list of all flags for the caller, in place of one with the same name."""
        view = save_view(**self.validated(ViewBody), caller=self.caller)
        return Response(ViewRecord(view).data)

    @extend_schema(operation_id="deleteFlagView", responses={204: None})
    def destroy(self, request: ApiRequest, view_id: str) -> Response:
        """Delete one of the caller's views."""
        delete_view(path_id(view_id, "View"), caller=self.caller)
        return Response(status=204)


class ProjectFlagCreatorViewSet(InProjectViewSet):
    tags = ("Projects",)

    @extend_schema(operation_id="getProjectFlagCreators", responses={200: AccountName(many=True)})
    def list(self, request: ApiRequest, project_id: str) -> Response:
        """List the accounts that created a flag of the project, archived flags included."""
        creators = list_flag_creators(Flag.objects.filter(project=self.project))
        return Response(AccountName(creators, many=True).data)
