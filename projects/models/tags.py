"""Tag types and tags. The tags of flags are in ``projects.models.flags``."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Length

from flagadmin.core.document import Document

models.CharField.register_lookup(Length)


class TagType(models.Model):
    name = models.CharField(max_length=50, primary_key=True)
    description = models.TextField(blank=True)
    icon = models.CharField(max_length=255, null=True, blank=True)
    color = models.CharField(max_length=7, null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.CheckConstraint(condition=Q(name__length__gte=2), name="tag_type_name_length")]

    def __str__(self) -> str:
        return self.name

    def document(self) -> Document:
        """For API responses and audit events."""
        return {
            "name": self.name,
            "description": self.description,
            "icon": self.icon,
            "color": self.color,
        }


class Tag(models.Model):
    """A tag that was created separately, to be offered in forms. A flag's own tags are ``FlagTag`` rows."""

    tag_type = models.ForeignKey(TagType, on_delete=models.CASCADE, related_name="+")
    value = models.CharField(max_length=50)

    class Meta:
        ordering = ["tag_type", "value"]
        constraints = [
            models.UniqueConstraint(fields=["tag_type", "value"], name="tag_once"),
            models.CheckConstraint(condition=Q(value__length__gte=2), name="tag_value_length"),
        ]

    def __str__(self) -> str:
        return f"{self.tag_type_id}:{self.value}"
