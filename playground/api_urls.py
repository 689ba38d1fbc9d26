"""URL patterns of the playground API (/api/admin/playground)."""

from flagadmin.core.http.routers import Router
from playground.api import PlaygroundViewSet
from playground.outcomes.analyses.api import AnalysisViewSet
from playground.outcomes.api import AssignmentViewSet, IncidentViewSet
from playground.saved_contexts.api import SavedContextViewSet
from playground.stale.api import StaleViewSet
from playground.user_runs.api import UserRunViewSet

router = Router()
router.register("playground/contexts", SavedContextViewSet)
router.register("playground/assignments", AssignmentViewSet)
router.register("playground/incidents", IncidentViewSet)
router.register("projects/<str:project_id>/features/<str:name>/analyses", AnalysisViewSet)
router.register("playground/users", UserRunViewSet)
router.register("playground", PlaygroundViewSet)
router.register("stale-flags", StaleViewSet)

urlpatterns = router.urls
