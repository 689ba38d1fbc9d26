"""URLs of the API endpoints for importing, validating, exporting and promoting flags."""

from flagadmin.core.http.routers import Router
from importer.api import BatchViewSet
from importer.promotion_api import PromotionViewSet

router = Router()
router.register("features-batch", BatchViewSet)
router.register("projects/<str:project_id>/environments/promote", PromotionViewSet)

urlpatterns = router.urls
