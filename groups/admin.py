"""Registers the admin site's pages for users, groups, roles and logins."""

from django.contrib import admin
from django.contrib.auth.models import Group as DjangoGroup

from groups.groups import admin as groups
from groups.login import admin as login
from groups.people import admin as people
from groups.roles import admin as roles

__all__ = ["groups", "login", "people", "roles"]

# Django's own groups are not used.
admin.site.unregister(DjangoGroup)
