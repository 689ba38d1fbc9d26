"""The model of audit events, which a database trigger keeps append-only."""

import pgtrigger
from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from flagadmin.core.db.transactions import AUDITED


class AuditEvent(models.Model):
    """Who changed what, with the values before and after.

    The table is append-only: database triggers reject updates and deletions.
    There are no foreign keys: an event outlives its actor and its subjects, so it stores their ids and names.
    """

    type = models.CharField(max_length=64)
    created_at = models.DateTimeField(
        db_default=models.Func(function="audit_moment", output_field=models.DateTimeField()),
        editable=False,
        help_text="The same for all events of a transaction. See docs/decisions/past.md.",
    )
    actor_id = models.BigIntegerField(null=True, blank=True)
    actor_name = models.CharField(max_length=255)
    project = models.TextField(null=True, blank=True)
    environment = models.TextField(null=True, blank=True)
    feature = models.TextField(null=True, blank=True)
    subject = models.TextField(null=True, blank=True, help_text="Name of a subject that is no flag.")
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    earlier = models.JSONField(
        null=True,
        blank=True,
        help_text="What the past needs besides `before`. See projects.history.back.",
    )
    request_id = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["project", "-id"], name="audit_project"),
            models.Index(fields=["feature", "-id"], name="audit_feature"),
            models.Index(fields=["type", "-id"], name="audit_type"),
            models.Index(fields=["actor_id", "-id"], name="audit_actor"),
            # The events of one change. See projects.history.changes.
            models.Index(
                fields=["request_id", "-id"], name="audit_request", condition=~models.Q(request_id="")
            ),
            # Events lie in the order of their time, so this is a few bytes for thousands of them.
            BrinIndex(fields=["created_at"], name="audit_moment", pages_per_range=32),
        ]
        triggers = [
            pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete),
            pgtrigger.Trigger(
                name="no_truncate",
                level=pgtrigger.Statement,
                when=pgtrigger.Before,
                operation=pgtrigger.Truncate,
                # The test runner empties its databases between tests, so the trigger does not apply to them.
                func="IF current_database() NOT LIKE 'test%' THEN "
                "RAISE EXCEPTION 'audit events are append-only'; END IF; RETURN NULL;",
            ),
            # projects.revision notes changes of transactions that record no event.
            pgtrigger.Trigger(
                name="audited",
                level=pgtrigger.Statement,
                when=pgtrigger.After,
                operation=pgtrigger.Insert,
                func=f"PERFORM set_config('{AUDITED}', 'on', true); RETURN NULL;",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.feature or self.subject or self.project or ''}".strip()
