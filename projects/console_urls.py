"""URL patterns of the console pages for projects, flags and related subjects."""

from django.urls import path

from flagadmin.core.http import routers  # noqa: F401 - <text:name>
from groups.people.console import PEOPLE, SERVICE
from projects.applications import pages as applications
from projects.connect import pages as connect
from projects.context_fields import pages as context_fields
from projects.deletion import pages as deletion
from projects.drafts import drafting_path
from projects.environments import pages as environments
from projects.flags import action_pages, form_pages
from projects.flags import form_pages as copy_pages
from projects.flags import pages as flags
from projects.flags.archive import pages as archive_pages
from projects.flags.bulk import pages as bulk_pages
from projects.flags.pages import PayloadSchemaPage, ToggleFlag
from projects.installation import pages as installation
from projects.members import grant_page
from projects.members import pages as members
from projects.projects import flag_list_page, pages, settings_pages
from projects.projects import pages as projects
from projects.relays import pages as relays
from projects.reverts.environment_page import SetBackPage
from projects.reverts.version_page import RevertChange, RevertPage
from projects.segments import pages as segments
from projects.segments.list_pages import FetchListNow, ListSourcePage, SegmentListPage
from projects.strategies import pages as strategies
from projects.strategies import strategy_types_pages as strategy_types
from projects.strategies import variants_page
from projects.tag_types import pages as tag_types
from projects.tokens import pages as tokens
from projects.tokens.project_page import ProjectTokensPage

PROJECT = "projects/<str:project_id>/"
FLAG = f"{PROJECT}features/<str:name>/"

# fmt: off
urlpatterns = [
    path("installation/", installation.InstallationPage.as_view(), name="installation"),
    path("installation/maintenance", installation.SetMaintenance.as_view(), name="installation-maintenance"),
    path("relays/", relays.RelaysPage.as_view(), name="relays"),
    path("flags/", flag_list_page.AllFlagsPage.as_view(), name="all-flags"),
    drafting_path("flags/archive", archive_pages.ArchivePage, name="all-flags-archive"),
    drafting_path("flags/switch", bulk_pages.TogglePage, name="all-flags-toggle"),
    path("flags/stale", bulk_pages.Stale.as_view(), name="all-flags-stale"),
    path("flags/views/", flag_list_page.SaveView.as_view(), name="flag-view-save"),
    path("flags/views/<int:view_id>/delete", flag_list_page.DeleteView.as_view(), name="flag-view-delete"),
    path("flags/tags", bulk_pages.TagsPage.as_view(), name="all-flags-tags"),
    path("projects/", projects.ProjectsPage.as_view(), name="projects"),
    path("projects/new/", projects.NewProjectPage.as_view(), name="project-new"),
    path(PROJECT, flag_list_page.ProjectPage.as_view(), name="project"),
    path(f"{PROJECT}favorite", projects.ProjectFavorite.as_view(), name="project-favorite"),
    path(f"{PROJECT}settings/", settings_pages.SettingsPage.as_view(), name="project-settings"),
    path(f"{PROJECT}settings/approvals/", settings_pages.ApprovalsPage.as_view(), name="project-approvals"),
    path(f"{PROJECT}settings/tokens/", ProjectTokensPage.as_view(), name="project-tokens"),
    path(f"{PROJECT}environments", settings_pages.Environments.as_view(), name="project-environments"),
    path(f"{PROJECT}environments/", environments.ComparePage.as_view(), name="environments-compare"),
    drafting_path(f"{PROJECT}environments/<str:environment>/strategy", settings_pages.DefaultStrategyPage, name="default-strategy"),
    path(f"{PROJECT}environments/<str:environment>/approvals", pages.ApprovalsPage.as_view(), name="environment-approvals"),
    path(f"{PROJECT}archive", settings_pages.Archive.as_view(), name="project-archive"),
    path(f"{PROJECT}revive", settings_pages.Revive.as_view(), name="project-revive"),
    path(f"{PROJECT}delete/", deletion.DeleteProjectPage.as_view(), name="project-delete"),
    path(f"{PROJECT}delete/backup", deletion.BackupFile.as_view(), name="project-backup"),
    path(f"{PROJECT}access/", members.ProjectAccessPage.as_view(), name="project-access"),
    path(f"{PROJECT}access/invite/", members.InvitePage.as_view(), name="project-invite"),
    path(f"{PROJECT}access/take", members.RevokeRole.as_view(), name="project-access-revoke"),
    path(f"{PROJECT}applications/", applications.ApplicationsPage.as_view(), name="project-applications"),
    path(f"{PROJECT}connect/", connect.ConnectPage.as_view(), name="connect"),
    path(f"{PROJECT}connect/live", connect.LivePage.as_view(), name="connect-live"),
    path("connect/", connect.ConnectAnywherePage.as_view(), name="connect-anywhere"),
    path("applications/", applications.AllApplicationsPage.as_view(), name="applications"),
    path("applications/<text:name>/", applications.ApplicationPage.as_view(), name="application"),

    path(f"{PROJECT}features/new", form_pages.NewFlagPage.as_view(), name="flag-new"),
    drafting_path(f"{PROJECT}features/archive", archive_pages.ArchivePage, name="flags-archive"),
    path(f"{PROJECT}features/revive", archive_pages.ReviveFlags.as_view(), name="flags-revive"),
    path(f"{PROJECT}features/delete", archive_pages.DeletePage.as_view(), name="flags-delete"),
    drafting_path(f"{PROJECT}features/switch", bulk_pages.TogglePage, name="flags-toggle"),
    path(f"{PROJECT}features/stale", bulk_pages.Stale.as_view(), name="flags-stale"),
    path(f"{PROJECT}features/tags", bulk_pages.TagsPage.as_view(), name="flags-tags"),
    path(FLAG, flags.FlagPage.as_view(), name="flag"),
    path(f"{FLAG}insights/", flags.InsightsPage.as_view(), name="flag-insights"),
    path(f"{FLAG}edit", form_pages.EditFlagPage.as_view(), name="flag-edit"),
    drafting_path(f"{FLAG}switch", ToggleFlag, name="flag-toggle"),
    path(f"{FLAG}favorite", action_pages.Favorite.as_view(), name="flag-favorite"),
    path(f"{FLAG}stale", action_pages.Stale.as_view(), name="flag-stale"),
    path(f"{FLAG}impression-data", action_pages.ImpressionData.as_view(), name="flag-impression-data"),
    path(f"{FLAG}tags", action_pages.Tags.as_view(), name="flag-tags"),
    drafting_path(f"{FLAG}parents", action_pages.Parents, name="flag-parents"),
    path(f"{FLAG}payload-schema", PayloadSchemaPage.as_view(), name="payload-schema"),
    path(f"{FLAG}links", action_pages.Links.as_view(), name="flag-links"),
    path(f"{FLAG}link/<str:link_id>/", form_pages.EditLinkPage.as_view(), name="flag-link"),
    drafting_path(f"{FLAG}order", action_pages.Order, name="flag-order"),
    drafting_path(f"{FLAG}revert", RevertPage, name="flag-revert"),
    path(f"{FLAG}move", copy_pages.MovePage.as_view(), name="flag-move"),
    path(f"{FLAG}clone", copy_pages.ClonePage.as_view(), name="flag-clone"),
    drafting_path(f"{FLAG}variants", variants_page.VariantsPage, name="flag-variants"),
    drafting_path(f"{FLAG}share", strategies.SharePage, name="flag-share"),
    drafting_path(f"{FLAG}strategies/new", strategies.NewStrategyPage, name="strategy-new"),
    drafting_path(f"{FLAG}strategies/edit", strategies.EditStrategyPage, name="strategy-edit"),

    path("segments/", segments.SegmentsPage.as_view(), name="segments"),
    path("segments/new", segments.SegmentForm.as_view(), name="segment-new"),
    drafting_path("segments/<str:segment_id>/", segments.EditSegment, name="segment"),
    drafting_path("segments/<str:segment_id>/list", SegmentListPage, name="segment-list"),
    path("segments/<str:segment_id>/list/source", ListSourcePage.as_view(), name="segment-list-source"),
    path("segments/<str:segment_id>/list/source/fetch", FetchListNow.as_view(), name="segment-list-fetch"),
    path("segments/<str:segment_id>/delete", segments.DeleteSegment.as_view(), name="segment-delete"),

    path("context-fields/", context_fields.ContextFieldsPage.as_view(), name="context-fields"),
    path("context-fields/new", context_fields.NewContextField.as_view(), name="context-field-new"),
    path("context-fields/<str:name>/", context_fields.EditContextField.as_view(), name="context-field"),
    path("context-fields/<str:name>/delete", context_fields.DeleteContextField.as_view(), name="context-field-delete"),

    drafting_path("activity/<int:event_id>/revert", RevertChange, name="change-revert"),
    path("strategy-types/", strategy_types.StrategyTypesPage.as_view(), name="strategy-types"),
    path("strategy-types/new", strategy_types.NewStrategyType.as_view(), name="strategy-type-new"),
    path("strategy-types/<str:name>/", strategy_types.EditStrategyType.as_view(), name="strategy-type"),
    path("strategy-types/<str:name>/deprecate", strategy_types.StrategyTypeAction.as_view(verb="deprecate"), name="strategy-type-deprecate"),
    path("strategy-types/<str:name>/reactivate", strategy_types.StrategyTypeAction.as_view(verb="reactivate"), name="strategy-type-reactivate"),
    path("strategy-types/<str:name>/delete", strategy_types.StrategyTypeAction.as_view(verb="delete"), name="strategy-type-delete"),

    path("environments/", environments.EnvironmentsPage.as_view(), name="environments"),
    path("environments/new", environments.NewEnvironment.as_view(), name="environment-new"),
    path("environments/<str:name>/", environments.EditEnvironment.as_view(), name="environment"),
    drafting_path("environments/<str:name>/revert", SetBackPage, name="environment-revert"),
    path("environments/<str:name>/move", environments.MoveEnvironment.as_view(), name="environment-move"),
    path("environments/<str:name>/delete", environments.DeleteEnvironment.as_view(), name="environment-delete"),

    path("tag-types/", tag_types.TagTypesPage.as_view(), name="tag-types"),
    path("tag-types/new", tag_types.NewTagType.as_view(), name="tag-type-new"),
    path("tag-types/<str:name>/", tag_types.EditTagType.as_view(), name="tag-type"),
    path("tag-types/<str:name>/delete", tag_types.DeleteTagType.as_view(), name="tag-type-delete"),

    path("access/roles/<int:role_id>/", members.RolePage.as_view(), name="role"),
    path("access/people/<int:user_id>/grant/", grant_page.GrantToAccount.as_view(**PEOPLE), name="person-grant"),
    path("access/service-accounts/<int:user_id>/grant/", grant_page.GrantToAccount.as_view(**SERVICE), name="service-account-grant"),
    path("access/groups/<int:group_id>/grant/", grant_page.GrantToGroup.as_view(), name="group-grant"),
    path("access/tokens/", tokens.TokensPage.as_view(), name="tokens"),
    path("access/tokens/new/", tokens.NewTokenPage.as_view(), name="token-new"),
    path("access/tokens/<int:token_id>/revoke/", tokens.RevokeTokenPage.as_view(), name="token-revoke"),
]
