"""/api/admin/search/features: search flags across projects. /api/admin/flag-creators: who created flags."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.http.fields import Texts
from groups.people.serializers import AccountName
from groups.viewsets import ApiRequest, ViewSet
from projects.flags.lists.queries import MAX_CREATORS, list_flag_creators
from projects.flags.lists.search import FlagFilter
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


class ProjectFlagCreatorViewSet(InProjectViewSet):
    tags = ("Projects",)

    @extend_schema(operation_id="getProjectFlagCreators", responses={200: AccountName(many=True)})
    def list(self, request: ApiRequest, project_id: str) -> Response:
        """List the accounts that created a flag of the project, archived flags included."""
        creators = list_flag_creators(Flag.objects.filter(project=self.project))
        return Response(AccountName(creators, many=True).data)
