"""Loads the pages of the admin site, as the URLconf does."""

from django.contrib import admin

admin.autodiscover()
