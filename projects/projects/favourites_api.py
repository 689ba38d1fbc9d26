"""…/favorites: what the caller keeps at hand."""

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from projects.projects.favourites import set_flag_favourite, set_project_favourite

TAGS = ["Favorites"]
ANSWERS = {200: None} | refusals(403, 404)


class FlagFavouriteView(APIView):
    @extend_schema(operation_id="addFavoriteFeature", tags=TAGS, request=None, responses=ANSWERS)
    def post(self, request: ApiRequest, project_id: str, name: str) -> Response:
        set_flag_favourite(project_id, name, True, caller=request.user)
        return Response()

    @extend_schema(operation_id="removeFavoriteFeature", tags=TAGS, responses=ANSWERS)
    def delete(self, request: ApiRequest, project_id: str, name: str) -> Response:
        set_flag_favourite(project_id, name, False, caller=request.user)
        return Response()


class ProjectFavouriteView(APIView):
    @extend_schema(operation_id="addFavoriteProject", tags=TAGS, request=None, responses=ANSWERS)
    def post(self, request: ApiRequest, project_id: str) -> Response:
        set_project_favourite(project_id, True, caller=request.user)
        return Response()

    @extend_schema(operation_id="removeFavoriteProject", tags=TAGS, responses=ANSWERS)
    def delete(self, request: ApiRequest, project_id: str) -> Response:
        set_project_favourite(project_id, False, caller=request.user)
        return Response()


urlpatterns = [
    path("projects/<str:project_id>/features/<str:name>/favorites", FlagFavouriteView.as_view()),
    path("projects/<str:project_id>/favorites", ProjectFavouriteView.as_view()),
]
