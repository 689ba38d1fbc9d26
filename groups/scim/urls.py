"""URL patterns of SCIM."""

from django.urls import path

from groups.scim import api

urlpatterns = [
    path("ServiceProviderConfig", api.ServiceProviderConfigView.as_view()),
    path("Schemas", api.SchemasView.as_view()),
    path("Schemas/<str:key>", api.SchemasView.as_view()),
    path("ResourceTypes", api.ResourceTypesView.as_view()),
    path("ResourceTypes/<str:key>", api.ResourceTypesView.as_view()),
    path("Users", api.UsersView.as_view()),
    path("Users/<str:key>", api.UserView.as_view()),
    path("Groups", api.GroupsView.as_view()),
    path("Groups/<str:key>", api.GroupView.as_view()),
]
