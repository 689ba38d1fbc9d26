"""Stored playground contexts: those saved under a name, and those too long for a URL."""

from django.db import models
from django.db.models import Q

from groups.models import User
from projects.models import Project


class KeptContext(models.Model):
    """The context part of a playground URL, as a query string; the URL has its digest instead.

    Anyone logged in who has its digest may read it.
    """

    user = models.ForeignKey(User, models.CASCADE)
    digest = models.CharField(max_length=64, db_index=True)
    query = models.TextField()
    kept_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "digest"), name="kept_once_by_each_user"),)

    def __str__(self) -> str:
        return self.digest


class SavedContext(models.Model):
    """A context with a name, such as "Norwegian beta user": of one project, or of every project without one."""

    name = models.CharField(max_length=100, unique=True)
    project = models.ForeignKey(Project, models.CASCADE, null=True, blank=True, related_name="saved_contexts")
    context = models.JSONField(default=dict, blank=True)
    note = models.TextField(blank=True)
    expectations = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=255, blank=True)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.CharField(max_length=255, blank=True)

    class Meta:
        ordering = ("name",)
        constraints = (models.CheckConstraint(condition=~Q(name=""), name="saved_context_has_a_name"),)

    def __str__(self) -> str:
        return self.name
