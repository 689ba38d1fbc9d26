"""/api/admin/flag-creators and /api/admin/projects/:projectId/flag-creators: who created flags."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from groups.people.serializers import AccountName
from groups.viewsets import ApiRequest, ViewSet
from projects.flags.lists.creators import MAX_CREATORS, list_flag_creators
from projects.models import Flag
from projects.viewsets import InProjectViewSet


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
