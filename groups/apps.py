"""The groups app: users, groups, roles, tokens and login."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class GroupsConfig(AppConfig):
    name = "groups"
    verbose_name = "Access"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from flagadmin.core.http.error_responses import register_error_format
        from flagadmin.core.server import loop_routes
        from groups import periodic_tasks as housekeeping
        from groups.scim.errors import PREFIX, make_error_body
        from groups.scim.preload import preload_service
        from groups.seed import seed_roles
        from groups.sessions import middleware

        register_error_format(PREFIX, make_error_body)
        loop_routes.run_in_loop(preload_service)
        housekeeping.register()
        middleware.connect()
        post_migrate.connect(seed_roles, sender=self)
