"""Mounted at /api/admin/features-batch/."""

from django.urls import path

from importer import api

urlpatterns = [
    path("import", api.ImportView.as_view(), name="features-import"),
]
