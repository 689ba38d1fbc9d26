"""URL patterns of the release API, below /api/admin/."""

from flagadmin.core.http.routers import Router
from releases.requests.api import ChangeRequestViewSet, ChangeViewSet, EnvironmentChangeRequestViewSet
from releases.requests.search_api import ChangeRequestSearchViewSet

PROJECT = "projects/<str:project_id>"
REQUESTS = f"{PROJECT}/change-requests"

router = Router()
router.register(f"{PROJECT}/environments/<str:environment>/change-requests", EnvironmentChangeRequestViewSet)
router.register(f"{REQUESTS}/<str:request_id>/changes", ChangeViewSet)
router.register(REQUESTS, ChangeRequestViewSet)
router.register("search", ChangeRequestSearchViewSet)

urlpatterns = router.urls
