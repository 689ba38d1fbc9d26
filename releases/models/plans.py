"""Release plans: the strategies of a flag in steps, with the time and the conditions of each next step."""

import secrets
import time
from typing import Any

from django.db import models
from django.db.models import Q

from groups.models import User
from projects.models import Environment, Flag, Project
from releases.models.requests import ChangeRequest, full_name

_BASE_32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def make_ulid() -> str:
    """A ULID, like the reference server's ids: 26 characters that sort by creation time."""
    number = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    return "".join(_BASE_32[number >> shift & 31] for shift in range(125, -1, -5))


class UlidField(models.CharField):
    """A key. Migrations see a plain string: the database has no default."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs | {"max_length": 26, "default": make_ulid})

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, _, args, kwargs = super().deconstruct()
        del kwargs["default"]
        return name, "django.db.models.CharField", args, kwargs


class ReleaseTemplate(models.Model):
    """Milestones for making plans, of one project or (None) of all."""

    id = UlidField(primary_key=True)
    name = models.CharField(max_length=255)
    description = models.TextField(blank=True)
    project = models.ForeignKey(
        Project, models.CASCADE, null=True, blank=True, related_name="release_templates"
    )
    author = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("project", "name"),
                condition=models.Q(archived_at=None),
                nulls_distinct=False,
                name="release_template_name_once",
            ),
        )

    def __str__(self) -> str:
        return self.name


class ReleasePlan(models.Model):
    """The milestones of a flag in an environment. The active one's strategies are strategies of the flag.

    ``strategy_ids``: these strategies. ``since``: the start of the active milestone's time, without pauses.
    ``numbers_from``: safeguards ignore older data. ``look_at``: the next look of the background task. ``approved``:
    if changes need a change request, steps are taken until the plan is edited without one. ``request``: the change
    request that approved it, whose approvals must still count. ``fingerprints``: of each approved milestone, by its
    id (``projects/fingerprint.py``); None for plans from before they were stored. ``by``: the person who started it,
    whose permission must last; ``is_personal`` tells a deleted person from an API token. ``reason``: for the pause.
    ``pause_if_broken``: before a step that would break an expectation of a saved context, even if the project allows
    that.
    """

    class State(models.TextChoices):
        PLANNED = "planned"
        RUNNING = "running"
        PAUSED = "paused"
        DONE = "done"

    id = UlidField(primary_key=True)
    flag = models.ForeignKey(Flag, models.CASCADE, related_name="release_plans")
    environment = models.ForeignKey(Environment, models.CASCADE, related_name="release_plans")
    name = models.CharField(max_length=255)
    description = models.TextField(blank=True)
    template_key = models.CharField(max_length=26, blank=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.PLANNED)
    reason = models.TextField(blank=True)
    active = models.ForeignKey("Milestone", models.SET_NULL, null=True, blank=True, related_name="+")
    strategy_ids: Any = models.JSONField(default=list)
    since = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    numbers_from = models.DateTimeField(null=True, blank=True)
    look_at = models.DateTimeField(null=True, blank=True)
    approved = models.BooleanField(default=False)
    request = models.ForeignKey(ChangeRequest, models.SET_NULL, null=True, blank=True, related_name="+")
    fingerprints: Any = models.JSONField(null=True, blank=True)
    pause_if_broken = models.BooleanField(default=False, db_default=False)
    author = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")
    by = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")
    by_name = models.CharField(max_length=255, blank=True)
    is_personal = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=("look_at",), condition=models.Q(state="running"), name="running_plans"),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("flag", "environment"),
                condition=~models.Q(state="done"),
                name="one_plan_of_a_flag",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} of {self.flag} in {self.environment_id}"

    @property
    def by_full_name(self) -> str:
        return full_name(self.by, self.by_name)

    @property
    def why_paused(self) -> str:
        """The reason for the pause, without the word "now"."""
        return f"{self.reason.removesuffix(' now.')}." if self.reason.endswith(" now.") else self.reason


class Milestone(models.Model):
    """A step of a template or of a plan. ``strategies`` are documents of strategies, in their order.

    ``transition``: the condition of the next one, ``{intervalMinutes?, window?: {zone, days, from, to}}``. None: it is
    started by hand.
    """

    id = UlidField(primary_key=True)
    template = models.ForeignKey(ReleaseTemplate, models.CASCADE, null=True, related_name="milestones")
    plan = models.ForeignKey(ReleasePlan, models.CASCADE, null=True, related_name="milestones")
    name = models.CharField(max_length=255)
    place = models.PositiveSmallIntegerField()
    strategies: Any = models.JSONField(default=list)
    transition: Any = models.JSONField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    passed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("place", "id")
        constraints = (
            models.CheckConstraint(
                condition=models.Q(template=None) ^ models.Q(plan=None), name="milestone_of_one"
            ),
        )

    def __str__(self) -> str:
        return self.name

    def list_segments(self) -> set[int]:
        """The ids of the segments that its strategies use."""
        return {segment for strategy in self.strategies for segment in strategy["segments"]}


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
