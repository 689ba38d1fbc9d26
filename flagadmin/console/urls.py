"""The console's own pages. The other apps bring theirs in `console_urls.py`."""

from django.urls import path

from flagadmin.console.activity import ActivityPage
from flagadmin.console.start import StartPage, keep_theme

urlpatterns = [
    path("", StartPage.as_view(), name="start"),
    path("theme/", keep_theme, name="theme"),
    path("activity/", ActivityPage.as_view(), name="activity"),
]
