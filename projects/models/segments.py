"""Segments: named lists of constraints that strategies share."""

from collections.abc import Collection

from django.db import models
from django.db.models import Q

from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from playground.engine.definitions import SegmentDefinition
from projects.models.projects import Project
from projects.models.querysets import SharedQuerySet
from projects.revision import OF_SEGMENT, make_revision_triggers


class SegmentQuerySet(SharedQuerySet["Segment"]):
    def names(self, ids: Collection[int]) -> dict[int, str]:
        return dict(self.filter(pk__in=ids).values_list("pk", "name"))


class Segment(models.Model):
    """A named list of constraints that strategies share.

    Global without a project, otherwise for that project only.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=255, unique=True)
    description = models.TextField(null=True, blank=True)
    constraints = models.JSONField(default=list, blank=True)
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="segments"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=255, blank=True)

    objects = SegmentQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.CheckConstraint(condition=~Q(name=""), name="segment_name_not_empty")]
        # Only the update trigger: a new segment is unused, and only unused segments can be deleted.
        triggers = make_revision_triggers(["id", "name", "constraints"], OF_SEGMENT)[2:]

    def __str__(self) -> str:
        return self.name

    @property
    def definition(self) -> SegmentDefinition:
        return {"id": self.pk, "name": self.name, "constraints": self.constraints}

    def document(self) -> Document:
        """For API responses and audit events."""
        document = {
            "id": self.pk,
            "name": self.name,
            "description": self.description,
            "constraints": self.constraints,
            "createdBy": self.created_by,
            "createdAt": iso(self.created_at),
        }
        return document | ({"project": self.project_id} if self.project_id else {})
