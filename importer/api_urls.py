"""URLs of the API endpoints for importing, validating and exporting flags (/api/admin/features-batch)."""

from flagadmin.core.http.routers import Router
from importer.api import BatchViewSet

router = Router()
router.register("features-batch", BatchViewSet)

urlpatterns = router.urls
