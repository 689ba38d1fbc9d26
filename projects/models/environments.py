"""Environments: their types and their order."""

from typing import Self

from django.db import models
from django.db.models import Q

from projects.applications.usage_triggers import make_environment_usage_triggers


class EnvironmentQuerySet(models.QuerySet["Environment"]):
    def production(self) -> Self:
        return self.filter(type=Environment.PRODUCTION)

    def names(self) -> list[str]:
        """Their names, production first."""
        first = self.alias(first=Q(type=Environment.PRODUCTION)).order_by("-first", "sort_order", "name")
        return list(first.values_list("name", flat=True))


class Environment(models.Model):
    """An environment, such as development or production. The name is the primary key and never changes."""

    PRODUCTION = "production"  # a type: the environment may have any name

    name = models.CharField(max_length=100, primary_key=True)
    type = models.CharField(max_length=100, default=PRODUCTION)
    enabled = models.BooleanField(default=True)
    sort_order = models.IntegerField(default=9999)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = EnvironmentQuerySet.as_manager()

    class Meta:
        ordering = ["sort_order", "name"]
        constraints = [models.CheckConstraint(condition=~Q(name=""), name="environment_name_not_empty")]
        triggers = make_environment_usage_triggers()

    def __str__(self) -> str:
        return self.name

    @property
    def is_production(self) -> bool:
        return self.type == self.PRODUCTION
