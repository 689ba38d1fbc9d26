"""What flags are made of: flag types, strategy types, segments, context fields, tag types and tags."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Length

from projects.models.projects import Project
from projects.revision import OF_SEGMENT, revision_triggers

models.CharField.register_lookup(Length)


class FlagType(models.Model):
    """What a flag is for. ``lifetime_days``: how long such a flag is expected to live; null for ever."""

    id = models.CharField(max_length=100, primary_key=True)
    name = models.CharField(max_length=255)
    description = models.TextField()
    lifetime_days = models.PositiveIntegerField(null=True, blank=True)
    sort_order = models.IntegerField(default=0)

    class Meta:
        ordering = ["sort_order", "id"]

    def __str__(self) -> str:
        return self.name


class StrategyType(models.Model):
    """A kind of strategy. Built-in ones are evaluated here; of custom ones only the SDK knows how."""

    name = models.CharField(max_length=255, primary_key=True)
    title = models.CharField(max_length=255, blank=True)
    description = models.TextField(blank=True)
    parameters = models.JSONField(default=list, blank=True)
    built_in = models.BooleanField(default=False)
    deprecated = models.BooleanField(default=False)
    sort_order = models.IntegerField(default=9999)

    class Meta:
        ordering = ["sort_order", "name"]

    def __str__(self) -> str:
        return self.name


class Segment(models.Model):
    """A named list of constraints that strategies share: global, or (with a project) of that project alone."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=255, unique=True)
    description = models.TextField(null=True, blank=True)
    constraints = models.JSONField(default=list, blank=True)
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="segments"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=255, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.CheckConstraint(condition=~Q(name=""), name="segment_name_not_empty")]
        # A segment can be removed only once no strategy has it, and that raises the revision.
        triggers = revision_triggers(["id", "name", "constraints"], OF_SEGMENT)[2:]

    def __str__(self) -> str:
        return self.name


class ContextField(models.Model):
    """A field of the evaluation context: for constraints, and for stickiness where ``stickiness`` is set."""

    name = models.CharField(max_length=255, primary_key=True)
    description = models.TextField(null=True, blank=True)
    stickiness = models.BooleanField(default=False)
    sort_order = models.IntegerField(default=10)
    legal_values = models.JSONField(default=list, blank=True, help_text='[{"value": …, "description": …}]')
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="context_fields"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["sort_order", "name"]
        constraints = [models.CheckConstraint(condition=~Q(name=""), name="context_field_name_not_empty")]

    def __str__(self) -> str:
        return self.name


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


class Tag(models.Model):
    """A tag that was created on its own, to choose from. Flags need none: see ``FlagTag``."""

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
