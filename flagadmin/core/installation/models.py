"""The settings of the installation that can change while it runs, in the only row of their table."""

import uuid
from typing import Any

from django.apps import apps as global_apps
from django.db import DEFAULT_DB_ALIAS, models

ROW = 1


class Installation(models.Model):
    """``frontend_origins``: None until they are first changed; then FLAGADMIN_FRONTEND_ORIGINS no longer applies."""

    id = models.SmallIntegerField(primary_key=True, default=ROW)
    instance_id = models.UUIDField(default=uuid.uuid4, editable=False)
    is_in_maintenance = models.BooleanField("maintenance mode", default=False, db_default=False)
    frontend_origins = models.JSONField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "installation"
        constraints = [models.CheckConstraint(condition=models.Q(id=ROW), name="installation_one_row")]

    def __str__(self) -> str:
        return str(self.instance_id)


def create_row(*, using: str = DEFAULT_DB_ALIAS, apps: Any = global_apps, **kwargs: Any) -> None:
    """Creates the row after every ``migrate`` and ``flush``, like the other initial rows."""
    try:
        model = apps.get_model("installation", "Installation")
    except LookupError:  # migrated back to a version without it
        return
    model.objects.using(using).get_or_create(pk=ROW)
