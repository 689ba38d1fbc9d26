"""…/features/:name/link: links of a flag."""

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.fields import validated
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_flag
from projects.flags import links as actions
from projects.flags.serializers import LinkBody

TAGS = ["Feature links"]
EXAMPLE = OpenApiExample(
    "A ticket", {"url": "https://tracker.example.com/SHOP-12", "title": "SHOP-12"}, request_only=True
)


class LinksView(APIView):
    @extend_schema(
        operation_id="createFeatureLink",
        tags=TAGS,
        request=LinkBody,
        responses={204: None} | refusals(400, 403, 404, 415),
        examples=[EXAMPLE],
    )
    def post(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Add a link. `example.com` becomes `https://example.com`."""
        access_flag(request.user, project_id, name, archived=False, permission=Permission.UPDATE_FEATURE)
        link = validated(LinkBody(data=request.data))
        actions.add_link(project_id, name, link["url"], link.get("title"), caller=request.user)
        return Response(status=204)


class LinkView(APIView):
    @extend_schema(
        operation_id="updateFeatureLink",
        tags=TAGS,
        request=LinkBody,
        responses={204: None} | refusals(400, 403, 404, 415),
    )
    def put(self, request: ApiRequest, project_id: str, name: str, link_id: str) -> Response:
        access_flag(request.user, project_id, name, archived=False, permission=Permission.UPDATE_FEATURE)
        link = validated(LinkBody(data=request.data))
        actions.update_link(project_id, name, link_id, link["url"], link.get("title"), caller=request.user)
        return Response(status=204)

    @extend_schema(operation_id="deleteFeatureLink", tags=TAGS, responses={204: None} | refusals(403, 404))
    def delete(self, request: ApiRequest, project_id: str, name: str, link_id: str) -> Response:
        actions.remove_link(project_id, name, link_id, caller=request.user)
        return Response(status=204)


FLAG = "projects/<str:project_id>/features/<str:name>"
urlpatterns = [
    path(f"{FLAG}/link", LinksView.as_view()),
    path(f"{FLAG}/link/<str:link_id>", LinkView.as_view()),
]
