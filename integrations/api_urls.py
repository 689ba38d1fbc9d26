"""URL patterns of the integrations API, below /api/admin/."""

from flagadmin.core.http.routers import Router
from integrations.addons.api import AddonViewSet
from integrations.signals.api import SignalRuleViewSet, SignalSourceViewSet

router = Router()
router.register("addons", AddonViewSet, basename="addons")
router.register("signals", SignalSourceViewSet)
router.register("signals/<str:source_id>/rules", SignalRuleViewSet)

urlpatterns = router.urls
