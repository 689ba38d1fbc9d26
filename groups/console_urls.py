"""The console's pages about people, groups, roles and keys."""

from django.urls import include, path

urlpatterns = [
    path("", include("groups.people.own_account_pages")),
    path("", include("groups.people.pages")),
    path("", include("groups.people.edit_pages")),
    path("", include("groups.groups.pages")),
    path("", include("groups.login.pages")),
    path("", include("groups.roles.pages")),
    path("", include("groups.people.service_token_pages")),
]
