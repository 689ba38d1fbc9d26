"""URLs of the console pages in this package. Each app has a `console_urls.py` for its own."""

from django.urls import path

from flagadmin.console.activity import ActivityPage
from flagadmin.console.start import StartPage, keep_theme

urlpatterns = [
    path("", StartPage.as_view(), name="start"),
    path("theme/", keep_theme, name="theme"),
    path("activity/", ActivityPage.as_view(), name="activity"),
]
