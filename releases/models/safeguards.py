"""Safeguards of release plans and of flags in an environment, and charts of impact metrics."""

from typing import Any

from django.db import models
from django.db.models import Q

from projects.models import Environment, Flag
from releases.models.plans import ReleasePlan, UlidField


class Safeguard(models.Model):
    """A condition for a plan to continue, or for a flag to stay on: a number, or an alert that is not firing.

    It belongs to a plan, or to a flag in an environment. ``numbers_from``: when the flag was turned on, as far as
    known. ``look_at``: the next look of the background task. ``approved``: by a change request, or set by a user who
    may skip them. A flag's safeguard from before its environment required approvals acts anyway, and says so.

    ``frontend``: also counts reports with frontend tokens. Their secrets are public, so anyone can breach it then.

    ``metric``: the name of an impact metric, a query in PromQL, or the name of an alert. ``compares``: the number is
    the difference between users with and without the flag. ``firing_since``: of an alert; ``firing`` lists the firing
    alerts of its name, such as one for each server.
    """

    class Source(models.TextChoices):
        INTERNAL = "internal"
        EXTERNAL = "external"
        ALERT = "alert"

    class Action(models.TextChoices):
        PAUSE = "pause"
        STEP_BACK = "stepBack"
        TURN_OFF = "turnOff"

    id = UlidField(primary_key=True)
    plan = models.ForeignKey(ReleasePlan, models.CASCADE, null=True, blank=True, related_name="safeguards")
    flag = models.ForeignKey(Flag, models.CASCADE, null=True, blank=True, related_name="safeguards")
    environment = models.ForeignKey(Environment, models.CASCADE, null=True, blank=True, related_name="+")
    source = models.CharField(max_length=8, choices=Source.choices, default=Source.INTERNAL)
    title = models.CharField(max_length=255, blank=True)
    metric = models.TextField()
    aggregation = models.CharField(max_length=8, blank=True)
    time_range = models.CharField(max_length=8, blank=True)
    labels: Any = models.JSONField(default=dict)
    compares = models.BooleanField(default=False)
    frontend = models.BooleanField(default=False, db_default=False)
    operator = models.CharField(max_length=1, default=">")
    threshold = models.FloatField(default=0)
    action = models.CharField(max_length=8, choices=Action.choices, default=Action.PAUSE)
    firing_since = models.DateTimeField(null=True, blank=True)
    firing: Any = models.JSONField(default=list, blank=True, db_default=[])
    numbers_from = models.DateTimeField(null=True, blank=True)
    look_at = models.DateTimeField(null=True, blank=True)
    approved = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(fields=("look_at",), condition=~Q(look_at=None), name="safeguards_of_flags"),)
        constraints = (
            models.CheckConstraint(
                name="impact_metric_has_aggregation_and_time_range",
                condition=~Q(source="internal") | ~Q(aggregation="") & ~Q(time_range=""),
            ),
            models.CheckConstraint(
                name="safeguard_of_one",
                condition=Q(flag=None, environment=None) & ~Q(plan=None)
                | Q(plan=None) & ~Q(flag=None) & ~Q(environment=None),
            ),
        )

    def __str__(self) -> str:
        return self.title or self.metric


class MetricChart(models.Model):
    """An impact metric over the last hour, day, week or month: of a flag, or (None) of the installation."""

    class YAxis(models.TextChoices):
        AUTO = "auto"
        ZERO = "zero"

    id = UlidField(primary_key=True)
    flag = models.ForeignKey(Flag, models.CASCADE, null=True, blank=True, related_name="metric_charts")
    title = models.CharField(max_length=255, blank=True)
    metric = models.CharField(max_length=255)
    aggregation = models.CharField(max_length=8)
    time_range = models.CharField(max_length=8)
    labels: Any = models.JSONField(default=dict)
    y_axis = models.CharField(max_length=4, choices=YAxis.choices, default=YAxis.AUTO)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.title or self.metric
