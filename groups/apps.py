"""The groups app: users, groups, roles, tokens and login."""

from datetime import timedelta

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class GroupsConfig(AppConfig):
    name = "groups"
    verbose_name = "Access"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from flagadmin.core.hook import later
        from flagadmin.core.http.error_formats import register_error_format
        from flagadmin.core.server import background_tasks, loop_routes
        from groups.seed import seed_roles
        from groups.sessions import store

        register_error_format("/scim/", later("groups.scim.actions:make_error_body"))
        loop_routes.run_in_loop(later("groups.scim.preload:preload_service"))
        background_tasks.run_on_startup(later("groups.periodic_tasks:offer_setup_link"))
        background_tasks.run_every(timedelta(hours=1), later("groups.periodic_tasks:delete_expired"))
        store.connect()
        post_migrate.connect(seed_roles, sender=self)
