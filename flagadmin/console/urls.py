"""The console's own pages: start, activity. The other apps bring theirs."""

from django.urls import URLPattern

from flagadmin.console import activity, start

urlpatterns: list[URLPattern] = [*start.urlpatterns, *activity.urlpatterns]
