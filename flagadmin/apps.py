"""The apps of the project package (with management commands and static files) and of the admin site."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib import admin
from django.contrib.admin import apps as admin_apps
from django.contrib.admin import checks as admin_checks
from django.core import checks


class FlagadminConfig(AppConfig):
    """The project itself as an app: its management commands and static files."""

    name = "flagadmin"
    verbose_name = "flagadmin"
    default = True


class AdminSite(admin.AdminSite):
    index_title = "Data fixes"
    # The lists need the width; the index page and the breadcrumbs suffice for navigation.
    enable_nav_sidebar = False


class AdminConfig(admin_apps.SimpleAdminConfig):
    """The admin site. The URLconf loads its pages, so that commands start faster without them."""

    default_site = "flagadmin.apps.AdminSite"

    def ready(self) -> None:
        checks.register(admin_checks.check_dependencies, checks.Tags.admin)
        checks.register(check_admin_pages, checks.Tags.admin)


def check_admin_pages(
    app_configs: Sequence[AppConfig] | None, **options: Any
) -> Sequence[checks.CheckMessage]:
    """Django's check of the admin site's pages, once they are loaded."""
    admin.autodiscover()
    return admin_checks.check_admin_app(app_configs, **options)
