"""URLs of the console pages in this package. Each app has a `console_urls.py` of its own."""

from django.conf import settings
from django.urls import path

from flagadmin.console.activity import ActivityPage, ProjectActivity
from flagadmin.console.search.page import SearchPage
from flagadmin.console.start import Dismiss, SettingsOverview, StartPage, StyleGuidePage, keep_theme
from flagadmin.console.what_happened import HappenedPage

urlpatterns = [
    path("", StartPage.as_view(), name="start"),
    path("dismiss/", Dismiss.as_view(), name="dismiss"),
    path("search/", SearchPage.as_view(), name="search"),
    path("settings/", SettingsOverview.as_view(), name="settings"),
    path("theme/", keep_theme, name="theme"),
    path("what-happened/", HappenedPage.as_view(), name="what-happened"),
    path("projects/<str:project_id>/activity/", ProjectActivity.as_view(), name="project-activity"),
    path("activity/", ActivityPage.as_view(), name="activity"),
]

if settings.DEBUG:
    urlpatterns.append(path("styleguide/", StyleGuidePage.as_view(), name="styleguide"))
