"""The console's pages about imports."""

from django.urls import include, path

urlpatterns = [
    path("", include("importer.pages.upload")),
    path("", include("importer.pages.run")),
    path("", include("importer.pages.evaluate")),
    path("", include("importer.pages.history")),
]
