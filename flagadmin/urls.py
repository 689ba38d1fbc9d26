"""All addresses. Each app brings its own; this file only says where they hang."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, path

from flagadmin import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("admin/", admin.site.urls),
]
