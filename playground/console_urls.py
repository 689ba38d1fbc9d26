"""URL patterns of the playground's pages."""

from django.urls import path

from playground.pages.views import ComparePage, FlagPage, PlaygroundPage

urlpatterns = [
    path("playground/", PlaygroundPage.as_view(), name="playground"),
    path("playground/compare/", ComparePage.as_view(), name="playground-compare"),
    path("playground/flag/<str:name>/", FlagPage.as_view(), name="playground-flag"),
]
