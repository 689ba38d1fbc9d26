"""URL patterns of the release pages."""

from django.urls import path

from releases.requests import pages
from releases.requests.request_page import RequestPage

REQUESTS = "projects/<str:project_id>/change-requests/"
REQUEST = f"{REQUESTS}<str:request_id>/"

urlpatterns = [
    path(REQUESTS, pages.RequestsPage.as_view(), name="change-requests"),
    path(REQUEST, RequestPage.as_view(), name="change-request"),
    path(f"{REQUEST}state", pages.SetState.as_view(), name="change-request-state"),
    path(f"{REQUEST}comment", pages.AddComment.as_view(), name="change-request-comment"),
    path(f"{REQUEST}title", pages.SetTitle.as_view(), name="change-request-title"),
    path(f"{REQUEST}remove", pages.RemoveChange.as_view(), name="change-request-remove"),
    path(f"{REQUEST}keep", pages.KeepChange.as_view(), name="change-request-keep"),
    path(f"{REQUEST}revert", pages.Revert.as_view(), name="change-request-revert"),
    path(f"{REQUEST}discard", pages.Discard.as_view(), name="change-request-discard"),
]
