"""The model of audit events. A database trigger keeps its table append-only."""

from datetime import datetime

import pgtrigger
from django.db import models

from flagadmin.core.db.transactions import AUDITED

NEWEST_FIRST = ["-created_at", "-id"]
"""Ids are assigned before their transactions take their time, so the later of two changes may have the lower id."""


class AuditEvents(models.QuerySet["AuditEvent"]):
    def newest_first(self) -> "AuditEvents":
        return self.order_by(*NEWEST_FIRST)

    def older_than(self, event_id: int) -> "AuditEvents":
        """Events after this one in a list sorted by newest first."""
        position = _locate(event_id)
        return (
            self.none()
            if position is None
            else self.filter(created_at__lte=position[0]).exclude(_match_not_before(*position))
        )

    def not_older_than(self, event_id: int) -> "AuditEvents":
        position = _locate(event_id)
        return (
            self.all()
            if position is None
            else self.filter(_match_not_before(*position), created_at__gte=position[0])
        )


def _locate(event_id: int) -> tuple[datetime, int] | None:
    """Finds the event's time; None if it is older than all events. A missing id stands for the event before it."""
    nearest = AuditEvent.objects.filter(pk__lte=event_id).order_by("-pk")
    return nearest.values_list("created_at", "pk").first()


def _match_not_before(moment: datetime, event_id: int) -> models.Q:
    return models.Q(created_at__gt=moment) | models.Q(created_at=moment, pk__gte=event_id)


class AuditEvent(models.Model):
    """A record of who changed what, with the values before and after.

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
        help_text="What the past needs besides `before`. See projects.history.frozen.rewind.",
    )
    request_id = models.CharField(max_length=64, blank=True)
    comment = models.TextField(blank=True, db_default="", help_text="Why, in the words of the person.")

    objects = AuditEvents.as_manager()

    class Meta:
        ordering = NEWEST_FIRST
        indexes = [
            models.Index(fields=["project", *NEWEST_FIRST], name="audit_project_time"),
            models.Index(fields=["feature", *NEWEST_FIRST], name="audit_feature_time"),
            models.Index(fields=["type", *NEWEST_FIRST], name="audit_type_time"),
            models.Index(fields=["actor_id", *NEWEST_FIRST], name="audit_actor_time"),
            # The events of one change. See projects.history.changes.
            models.Index(
                fields=["request_id", "-id"], name="audit_request", condition=~models.Q(request_id="")
            ),
            models.Index(fields=NEWEST_FIRST, name="audit_time"),
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
            # projects.revision also notes the changes of transactions that record no event. The transaction gets its id
            # before its events get theirs; readers that go through commits in order (integrations.deliveries.sender)
            # rely on it.
            pgtrigger.Trigger(
                name="audited",
                level=pgtrigger.Statement,
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=f"PERFORM pg_current_xact_id(), set_config('{AUDITED}', 'on', true); RETURN NULL;",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.feature or self.subject or self.project or ''}".strip()
