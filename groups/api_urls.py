"""Everything below /api/admin/ that is about people, groups, roles and keys."""

from django.urls import include, path

urlpatterns = [
    path("", include("groups.people.access_candidates_api")),
    path("", include("groups.groups.api")),
    path("", include("groups.people.me_api")),
    path("", include("groups.people.personal_tokens_api")),
    path("", include("groups.roles.api")),
    path("", include("groups.people.service_accounts_api")),
    path("", include("groups.people.api")),
]
