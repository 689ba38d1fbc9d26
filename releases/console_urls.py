"""URL patterns of the release pages."""

from django.urls import path

from releases.plans import pages as plans
from releases.plans.pages import InStepsPage
from releases.requests import pages
from releases.requests.request_page import RequestPage
from releases.safeguards import pages as safeguards
from releases.templates import pages as templates
from releases.templates.strategy_page import MilestoneStrategyPage
from releases.why.pages import WhyPage

FLAG = "projects/<str:project_id>/features/<str:name>/"
PLAN = f"{FLAG}plans/<str:plan_id>/"
TEMPLATES = "release-templates/"
TEMPLATE = f"{TEMPLATES}<str:template_id>/"
MILESTONE = f"{TEMPLATE}milestones/<str:milestone_id>"
REQUESTS = "projects/<str:project_id>/change-requests/"
REQUEST = f"{REQUESTS}<str:request_id>/"

urlpatterns = [
    path("requests/", pages.AllRequestsPage.as_view(), name="all-change-requests"),
    path(REQUESTS, pages.RequestsPage.as_view(), name="change-requests"),
    path(REQUEST, RequestPage.as_view(), name="change-request"),
    path(f"{REQUEST}state", pages.SetState.as_view(), name="change-request-state"),
    path(f"{REQUEST}comment", pages.AddComment.as_view(), name="change-request-comment"),
    path(f"{REQUEST}title", pages.SetTitle.as_view(), name="change-request-title"),
    path(f"{REQUEST}reviewers", pages.SetReviewers.as_view(), name="change-request-reviewers"),
    path(f"{REQUEST}remove", pages.RemoveChange.as_view(), name="change-request-remove"),
    path(f"{REQUEST}keep", pages.KeepChange.as_view(), name="change-request-keep"),
    path(f"{REQUEST}revert", pages.Revert.as_view(), name="change-request-revert"),
    path(f"{REQUEST}cancel/", pages.EndRequest.as_view(), name="change-request-cancel"),
    path(f"{REQUEST}reject/", pages.EndRequest.as_view(verb="Reject"), name="change-request-reject"),
    path(f"{REQUEST}discard/", pages.EndRequest.as_view(verb="Discard"), name="change-request-discard"),
    path(f"{FLAG}environments/<str:environment>/plans/new/", plans.NewPlanPage.as_view(), name="plan-new"),
    path(
        f"{FLAG}environments/<str:environment>/safeguards/",
        safeguards.FlagSafeguardsPage.as_view(),
        name="flag-safeguards",
    ),
    path(f"{FLAG}why/", WhyPage.as_view(), name="flag-why"),
    path(f"{FLAG}impact-metrics/", safeguards.FlagChartsPage.as_view(), name="flag-charts"),
    path("impact-metrics/", safeguards.ChartsPage.as_view(), name="charts"),
    path(PLAN, plans.PlanPage.as_view(), name="plan"),
    path(f"{PLAN}pause", plans.PausePlan.as_view(), name="plan-pause"),
    path(f"{PLAN}milestones/<str:milestone_id>", plans.SetTransition.as_view(), name="plan-transition"),
    path(f"{PLAN}safeguard", plans.SetSafeguard.as_view(), name="plan-safeguard"),
    path(f"{PLAN}<str:verb>/", plans.AskPlan.as_view(), name="plan-ask"),
    path("in-steps/<path:form>", InStepsPage.as_view(), name="in-steps"),
    path("release-plans/", plans.PlansPage.as_view(), name="release-plans"),
    path(TEMPLATES, templates.TemplatesPage.as_view(), name="release-templates"),
    path(f"{TEMPLATES}new/", templates.NewTemplatePage.as_view(), name="release-template-new"),
    path(TEMPLATE, templates.TemplatePage.as_view(), name="release-template"),
    path(f"{TEMPLATE}remove", templates.RemoveTemplate.as_view(), name="release-template-remove"),
    path(f"{TEMPLATE}archive", templates.ArchiveTemplate.as_view(), name="release-template-archive"),
    path(f"{TEMPLATE}details", templates.SetDetails.as_view(), name="release-template-details"),
    path(f"{TEMPLATE}milestones/new", templates.AddMilestone.as_view(), name="milestone-new"),
    path(MILESTONE, templates.SetMilestone.as_view(), name="milestone"),
    path(f"{MILESTONE}/remove/", templates.RemoveMilestone.as_view(), name="milestone-remove"),
    path(f"{MILESTONE}/strategies/new", MilestoneStrategyPage.as_view(), name="milestone-strategy-new"),
    path(
        f"{MILESTONE}/strategies/<str:strategy_id>",
        MilestoneStrategyPage.as_view(),
        name="milestone-strategy",
    ),
]
