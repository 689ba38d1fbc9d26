"""Mounted at /api/admin/features-batch/."""

from django.urls import path

from importer import api

urlpatterns = [
    path("import", api.ImportView.as_view(), name="features-import"),
    path("validate", api.ValidateView.as_view(), name="features-validate"),
    path("export", api.ExportView.as_view(), name="features-export"),
]
