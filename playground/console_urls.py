"""URL patterns of the playground's pages."""

from django.urls import path

from playground.lens import LensPage
from playground.outcomes.analyses import pages as analyses
from playground.outcomes.pages import AssignmentsPage, IncidentsPage
from playground.pages.changes import VersionsPart
from playground.pages.flag_detail import IfSavedPage
from playground.pages.views import ComparePage, FlagPage, PlaygroundPage
from playground.pages.who_changes import WhoChangesPage
from playground.saved_contexts import pages as saved
from playground.saved_contexts.expectations_page import (
    ExpectationsPage,
    FlagExpectationsPart,
    NewExpectationPage,
)
from playground.stale import pages as stale
from playground.user_runs import pages as users

ANALYSES = "projects/<str:project_id>/features/<str:name>/analyses/"

urlpatterns = [
    path("lens/", LensPage.as_view(), name="lens"),
    path("playground/expectations/new", NewExpectationPage.as_view(), name="expectation-new"),
    path("playground/expectations/", ExpectationsPage.as_view(), name="expectations"),
    path("playground/contexts/", saved.SavedContextsPage.as_view(), name="saved-contexts"),
    path("playground/contexts/new", saved.NewSavedContext.as_view(), name="saved-context-new"),
    path("playground/contexts/<str:context_id>/", saved.EditSavedContext.as_view(), name="saved-context"),
    path(
        "playground/contexts/<str:context_id>/delete",
        saved.DeleteSavedContext.as_view(),
        name="saved-context-delete",
    ),
    path("playground/users/", users.UsersPage.as_view(), name="users"),
    path("playground/assignments/", AssignmentsPage.as_view(), name="assignments"),
    path("playground/incidents/", IncidentsPage.as_view(), name="incidents"),
    path("playground/analyses/", analyses.AnalysesPage.as_view(), name="analyses"),
    path(f"{ANALYSES}new", analyses.NewAnalysisPage.as_view(), name="analysis-new"),
    path(f"{ANALYSES}<uuid:analysis_id>/", analyses.AnalysisPage.as_view(), name="analysis"),
    path(
        f"{ANALYSES}<uuid:analysis_id>/progress",
        analyses.AnalysisProgress.as_view(),
        name="analysis-progress",
    ),
    path(f"{ANALYSES}<uuid:analysis_id>/result", analyses.AnalysisDownload.as_view(), name="analysis-result"),
    path(f"{ANALYSES}<uuid:analysis_id>/delete", analyses.DeleteAnalysis.as_view(), name="analysis-delete"),
    path("playground/users/own/delete", users.ForgetOwnUsers.as_view(), name="own-users-delete"),
    path("playground/users/<uuid:run_id>/", users.RunPage.as_view(), name="user-run"),
    path("playground/users/<uuid:run_id>/progress", users.ProgressPart.as_view(), name="user-run-progress"),
    path("playground/users/<uuid:run_id>/result", users.ResultDownload.as_view(), name="user-run-result"),
    path("playground/users/<uuid:run_id>/delete", users.DeleteRun.as_view(), name="user-run-delete"),
    path("playground/", PlaygroundPage.as_view(), name="playground"),
    path("playground/compare/", ComparePage.as_view(), name="playground-compare"),
    path("playground/who-changes/", WhoChangesPage.as_view(), name="who-changes"),
    path("playground/flag/<str:name>/", FlagPage.as_view(), name="playground-flag"),
    path(
        "projects/<str:project_id>/features/<str:name>/versions", VersionsPart.as_view(), name="flag-versions"
    ),
    path(
        "projects/<str:project_id>/features/<str:name>/expectations",
        FlagExpectationsPart.as_view(),
        name="flag-expectations",
    ),
    path("stale-flags/", stale.StaleFlagsPage.as_view(), name="stale-flags"),
    path(
        "projects/<str:project_id>/features/<str:name>/complete",
        stale.Complete.as_view(),
        name="flag-complete",
    ),
    path("if-saved/<path:form>", IfSavedPage.as_view(), name="if-saved"),
]
