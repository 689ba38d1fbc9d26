"""URL patterns of the playground API (/api/admin/playground)."""

from flagadmin.http.routers import Router
from playground.api import PlaygroundViewSet

router = Router()
router.register("playground", PlaygroundViewSet)

urlpatterns = router.urls
