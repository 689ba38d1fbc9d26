"""/api/admin/projects/:projectId/features/:name/link: add, change and remove links of a flag."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.flags.links import actions
from projects.flags.serializers import LinkBody
from projects.viewsets import OnFlagViewSet

EXAMPLE = OpenApiExample(
    "A ticket", {"url": "https://tracker.example.com/SHOP-12", "title": "SHOP-12"}, request_only=True
)


class LinkViewSet(OnFlagViewSet):
    tags = ("Feature links",)
    lookup_url_kwarg = "link_id"
    permissions = {
        "create": Permission.UPDATE_FEATURE,
        "update": Permission.UPDATE_FEATURE,
        "destroy": Permission.UPDATE_FEATURE,
    }

    @extend_schema(
        operation_id="createFeatureLink", request=LinkBody, responses={204: None}, examples=[EXAMPLE]
    )
    def create(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Add a link. `example.com` becomes `https://example.com`."""
        link = self.validated(LinkBody)
        actions.add_link(project_id, name, link["url"], link.get("title"), caller=self.caller)
        return Response(status=204)

    @extend_schema(operation_id="updateFeatureLink", request=LinkBody, responses={204: None})
    def update(self, request: ApiRequest, project_id: str, name: str, link_id: str) -> Response:
        """Replace the URL and the title of a link."""
        link = self.validated(LinkBody)
        actions.update_link(project_id, name, link_id, link["url"], link.get("title"), caller=self.caller)
        return Response(status=204)

    @extend_schema(operation_id="deleteFeatureLink", responses={204: None})
    def destroy(self, request: ApiRequest, project_id: str, name: str, link_id: str) -> Response:
        """Remove a link."""
        actions.remove_link(project_id, name, link_id, caller=self.caller)
        return Response(status=204)
