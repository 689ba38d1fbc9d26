"""URL patterns of the release API, below /api/admin/."""

from flagadmin.core.http.routers import Router
from releases.plans.api import ProgressionOfPlanViewSet, ProgressionViewSet, ReleasePlanViewSet
from releases.requests.api import ChangeRequestViewSet, ChangeViewSet, EnvironmentChangeRequestViewSet
from releases.requests.search_api import ChangeRequestPlaygroundViewSet, ChangeRequestSearchViewSet
from releases.safeguards.api import (
    FlagMetricChartViewSet,
    FlagSafeguardViewSet,
    MetricChartViewSet,
    SafeguardViewSet,
)
from releases.templates import api as templates

PROJECT = "projects/<str:project_id>"
REQUESTS = f"{PROJECT}/change-requests"
PLACE = f"{PROJECT}/features/<str:name>/environments/<str:environment>"
TEMPLATES, OWN = "release-plan-templates", f"{PROJECT}/release-templates"
MILESTONE = "<str:template_id>/milestones/<str:milestone_id>"

router = Router()
router.register(f"{PROJECT}/environments/<str:environment>/change-requests", EnvironmentChangeRequestViewSet)
router.register(f"{REQUESTS}/<str:request_id>/changes", ChangeViewSet)
router.register(REQUESTS, ChangeRequestViewSet)
router.register("search", ChangeRequestSearchViewSet)
router.register("playground/change-request/<str:request_id>", ChangeRequestPlaygroundViewSet)
router.register(f"{PLACE}/release-plans/<str:plan_id>/safeguards", SafeguardViewSet)
router.register(f"{PLACE}/release-plans", ReleasePlanViewSet)
router.register(f"{PLACE}/safeguards", FlagSafeguardViewSet)
router.register(f"{PROJECT}/features/<str:name>/impact-metrics/config", FlagMetricChartViewSet)
router.register("impact-metrics/config", MetricChartViewSet)
router.register(f"{PLACE}/progressions", ProgressionViewSet)
router.register(f"{PLACE}/progressions", ProgressionOfPlanViewSet)
router.register(f"{TEMPLATES}/archive", templates.ReleaseTemplateArchiveViewSet)
router.register(f"{TEMPLATES}/{MILESTONE}/strategies", templates.MilestoneStrategyViewSet)
router.register(f"{TEMPLATES}/<str:template_id>/milestones", templates.TemplateMilestoneViewSet)
router.register(TEMPLATES, templates.ReleaseTemplateViewSet)
router.register(f"{OWN}/archive", templates.ProjectReleaseTemplateArchiveViewSet)
router.register(f"{OWN}/{MILESTONE}/strategies", templates.ProjectMilestoneStrategyViewSet)
router.register(f"{OWN}/<str:template_id>/milestones", templates.ProjectTemplateMilestoneViewSet)
router.register(OWN, templates.ProjectReleaseTemplateViewSet)

urlpatterns = router.urls
