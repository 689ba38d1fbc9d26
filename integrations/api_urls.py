"""URL patterns of the integrations API, below /api/admin/."""

from flagadmin.core.http.routers import Router
from integrations.addons.api import AddonViewSet

router = Router()
router.register("addons", AddonViewSet, basename="addons")

urlpatterns = router.urls
