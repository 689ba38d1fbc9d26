"""The console's pages about projects and what is in them."""

from django.urls import include, path

urlpatterns = [
    path("", include("projects.members.pages")),
    path("", include("projects.members.role_page")),
    path("", include("projects.tokens.pages")),
    path("", include("projects.projects.pages")),
    path("", include("projects.flags.archive_pages")),
    path("", include("projects.flags.toggle_pages")),
    path("", include("projects.projects.detail_page")),
    path("", include("projects.applications.pages")),
    path("", include("projects.applications.detail_page")),
    path("", include("projects.deletion.pages")),
    path("", include("projects.flags.form_pages")),
    path("", include("projects.flags.action_pages")),
    path("", include("projects.flags.pages")),
    path("", include("projects.strategies.pages")),
    path("", include("projects.strategies.variants_page")),
    path("", include("projects.projects.settings_pages")),
    path("", include("projects.projects.default_strategy_page")),
    path("", include("projects.segments.pages")),
    path("", include("projects.context_fields.pages")),
    path("", include("projects.strategies.strategy_types_pages")),
    path("", include("projects.tag_types.pages")),
]
