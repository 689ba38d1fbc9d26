"""URL patterns below /api/admin/ for projects, flags and related subjects.

Order matters: ``projects/archive/features`` must list the flags of a project whose id is ``archive``.
"""

from flagadmin.core.http.routers import Router
from projects.applications.api import (
    ApplicationViewSet,
    FlagUsageViewSet,
    IgnoredReportViewSet,
    InstanceViewSet,
    ProjectApplicationViewSet,
    UnknownFlagViewSet,
)
from projects.context_fields.api import ContextFieldViewSet, ProjectContextFieldViewSet
from projects.environments.api import EnvironmentViewSet, ProjectEnvironmentViewSet
from projects.flags.api import (
    FlagCreatorViewSet,
    FlagNameViewSet,
    FlagTypeViewSet,
    FlagViewSet,
    FlagViewViewSet,
    LinkViewSet,
    ProjectFlagCreatorViewSet,
    SearchViewSet,
)
from projects.flags.archive.api import ArchiveViewSet
from projects.flags.bulk.api import BulkFlagViewSet
from projects.flags.dependencies.api import (
    DependencyViewSet,
    ParentOptionViewSet,
    ParentVariantViewSet,
    ProjectDependencyViewSet,
)
from projects.flags.environments.api import (
    FlagEnvironmentViewSet,
    FlagVariantsBatchViewSet,
    FlagVariantsViewSet,
)
from projects.flags.lifecycle.api import LifecycleViewSet, StageCountViewSet
from projects.flags.payloads.api import PayloadSchemaViewSet
from projects.flags.tags.api import BulkTagViewSet, FlagTagViewSet, TagViewSet
from projects.history.api import EventCreatorViewSet, EventSearchViewSet, EventViewSet
from projects.installation.api import (
    MaintenanceViewSet,
    StatisticsViewSet,
    UiConfigViewSet,
    UnleashConsoleViewSet,
)
from projects.members.api import (
    GroupRoleViewSet,
    ProjectAccessViewSet,
    RoleAccessViewSet,
    RoleUsageViewSet,
    UserRoleViewSet,
)
from projects.projects.api import FlagFavoriteViewSet, ProjectFavoriteViewSet, ProjectViewSet
from projects.projects.personal_dashboard_api import PersonalDashboardViewSet
from projects.references.api import CodeReferenceViewSet, FlagReferenceViewSet
from projects.relays.api import RelayViewSet
from projects.reverts.api import RevertEnvironmentViewSet, RevertEventViewSet, RevertViewSet
from projects.segments.api import SegmentViewSet
from projects.strategies.api import ConstraintViewSet, StrategyViewSet
from projects.strategies.strategy_types_api import StrategyTypeViewSet
from projects.tag_types.api import TagTypeViewSet
from projects.tokens.api import ProjectTokenViewSet, TokenViewSet

PROJECT = "projects/<str:project_id>"
FLAGS = f"{PROJECT}/features"
FLAG = f"{FLAGS}/<str:name>"
FLAG_ENVIRONMENT = f"{FLAG}/environments/<str:environment>"

router = Router()
router.register("api-tokens", TokenViewSet)
router.register("constraints", ConstraintViewSet)
router.register("context", ContextFieldViewSet)
router.register("environments", EnvironmentViewSet)
router.register("environments/<str:name>/revert", RevertEnvironmentViewSet)
router.register("event-creators", EventCreatorViewSet)
router.register("events", EventViewSet)
router.register("events/<str:event_id>/revert", RevertEventViewSet)
router.register("feature-types", FlagTypeViewSet)
router.register("flag-creators", FlagCreatorViewSet)
router.register("flag-views", FlagViewViewSet)
router.register("lifecycle/count", StageCountViewSet)
router.register("personal-dashboard", PersonalDashboardViewSet)
router.register("instance-admin/statistics", StatisticsViewSet)
router.register("maintenance", MaintenanceViewSet)
router.register("relays", RelayViewSet)
router.register("segments", SegmentViewSet)
router.register("strategies", StrategyTypeViewSet)
router.register("tag-types", TagTypeViewSet)
router.register("tags", TagViewSet)
router.register("ui-config", UiConfigViewSet)
router.register("", UnleashConsoleViewSet)

router.register("client-metrics/features", FlagUsageViewSet)
router.register("metrics/applications", ApplicationViewSet)
router.register("metrics/ignored", IgnoredReportViewSet)
router.register("metrics/unknown-flags", UnknownFlagViewSet)
router.register("metrics/instances/<text:name>/environment", InstanceViewSet)

router.register("archive", ArchiveViewSet)
router.register("features", FlagNameViewSet)
router.register("features/<str:name>/tags", FlagTagViewSet)
router.register("search", SearchViewSet)
router.register("search/events", EventSearchViewSet)

router.register(FLAGS, FlagViewSet)
router.register(FLAGS, ParentOptionViewSet)
router.register(f"{FLAG}/dependencies", DependencyViewSet)
router.register(f"{FLAG}/environments", FlagEnvironmentViewSet)
router.register(f"{FLAG}/favorites", FlagFavoriteViewSet)
router.register(f"{FLAG}/lifecycle", LifecycleViewSet)
router.register(f"{FLAG}/link", LinkViewSet)
router.register(f"{FLAG}/payload-schema", PayloadSchemaViewSet)
router.register(f"{FLAG}/parent-variants", ParentVariantViewSet)
router.register(f"{FLAG}/references", FlagReferenceViewSet)
router.register(f"{FLAG}/revert", RevertViewSet)
router.register(f"{FLAG}/variants-batch", FlagVariantsBatchViewSet)
router.register(f"{FLAG_ENVIRONMENT}/strategies", StrategyViewSet)
router.register(f"{FLAG_ENVIRONMENT}/variants", FlagVariantsViewSet)

router.register("projects/roles/<str:role_id>/access", RoleUsageViewSet)
router.register(f"{PROJECT}/access", ProjectAccessViewSet)
router.register(f"{PROJECT}/applications", ProjectApplicationViewSet)
router.register(f"{PROJECT}/context", ProjectContextFieldViewSet)
router.register(f"{PROJECT}/dependencies", ProjectDependencyViewSet)
router.register(f"{PROJECT}/environments", ProjectEnvironmentViewSet)
router.register(f"{PROJECT}/favorites", ProjectFavoriteViewSet)
router.register(f"{PROJECT}/flag-creators", ProjectFlagCreatorViewSet)
router.register(f"{PROJECT}/groups/<str:holder_id>/roles", GroupRoleViewSet)
router.register(f"{PROJECT}/role/<str:role_id>/access", RoleAccessViewSet)
router.register(f"{PROJECT}/users/<str:holder_id>/roles", UserRoleViewSet)
router.register("code-references", CodeReferenceViewSet)
router.register("projects", ProjectViewSet)
router.register(PROJECT, BulkFlagViewSet)
router.register(f"{PROJECT}/api-tokens", ProjectTokenViewSet)
router.register(f"{PROJECT}/tags", BulkTagViewSet)

urlpatterns = router.urls
