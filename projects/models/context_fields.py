"""Context fields: the possible contents of a context."""

from django.db import models
from django.db.models import Q

from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from projects.models.projects import Project
from projects.models.querysets import SharedQuerySet


class ContextField(models.Model):
    """A field of the evaluation context: for constraints and, if ``stickiness`` is set, for stickiness."""

    name = models.CharField(max_length=255, primary_key=True)
    description = models.TextField(null=True, blank=True)
    stickiness = models.BooleanField(default=False)
    sort_order = models.IntegerField(default=10)
    legal_values = models.JSONField(default=list, blank=True, help_text='[{"value": …, "description": …}]')
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="context_fields"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SharedQuerySet["ContextField"].as_manager()

    class Meta:
        ordering = ["sort_order", "name"]
        constraints = [models.CheckConstraint(condition=~Q(name=""), name="context_field_name_not_empty")]

    def __str__(self) -> str:
        return self.name

    def document(self) -> Document:
        """For API responses and audit events."""
        document = {
            "name": self.name,
            "description": self.description,
            "stickiness": self.stickiness,
            "sortOrder": self.sort_order,
            "legalValues": self.legal_values,
            "createdAt": iso(self.created_at),
        }
        return document | ({"project": self.project_id} if self.project_id else {})
