"""Everything below /api/admin/ that is about projects."""

from django.urls import include, path

from flagadmin.http.routers import Router
from projects.environments.api import EnvironmentViewSet, ProjectEnvironmentViewSet
from projects.tag_types.api import TagTypeViewSet
from projects.tokens.api import ProjectTokenViewSet, TokenViewSet

router = Router()
router.register("api-tokens", TokenViewSet)
router.register("environments", EnvironmentViewSet)
router.register("projects/<str:project_id>/api-tokens", ProjectTokenViewSet)
router.register("projects/<str:project_id>/environments", ProjectEnvironmentViewSet)
router.register("tag-types", TagTypeViewSet)

urlpatterns = [
    path("", include("projects.applications.metrics_api")),
    path("", include("projects.applications.overview_api")),
    path("", include("projects.applications.api")),
    path("", include("projects.context_fields.api")),
    path("", include("projects.strategies.constraints_api")),
    path("", include("projects.flags.dependencies_api")),
    path("", include("projects.history.api")),
    path("", include("projects.projects.favourites_api")),
    path("", include("projects.flags.environments_api")),
    path("", include("projects.flags.flag_types_api")),
    path("", include("projects.flags.api")),
    path("", include("projects.flags.lifecycle_api")),
    path("", include("projects.flags.links_api")),
    path("", include("projects.members.api")),
    path("", include("projects.projects.api")),
    path("", include("projects.flags.search_api")),
    path("", include("projects.flags.bulk_api")),  # after "search": archive/features is an address of its own
    path("", include("projects.members.role_usage_api")),
    path("", include("projects.segments.api")),
    path("", include("projects.strategies.api")),
    path("", include("projects.strategies.strategy_types_api")),
    path("", include("projects.flags.tags_api")),
    *router.urls,
]
