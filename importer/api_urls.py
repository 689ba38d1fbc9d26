"""/api/admin/features-batch: import, validate and export."""

from flagadmin.http.routers import Router
from importer.api import BatchViewSet

router = Router()
router.register("features-batch", BatchViewSet)

urlpatterns = router.urls
