"""URLs of the API endpoints for importing, validating, exporting and promoting flags."""

from django.urls import path

from flagadmin.core.http.routers import Router
from importer.api import BatchViewSet
from importer.as_code.api import AsCodeViewSet, FileSchemaView
from importer.promotion_api import PromotionViewSet

router = Router()
router.register("features-batch", BatchViewSet)
router.register("flags-as-code", AsCodeViewSet)
router.register("projects/<str:project_id>/environments/promote", PromotionViewSet)

urlpatterns = [
    path("flags-as-code/schemas/<str:name>", FileSchemaView.as_view(), name="file-schema"),
    *router.urls,
]
