"""Stored playground contexts: those saved under a name, those too long for a URL, and files of many."""

import uuid

from django.db import models
from django.db.models import Q

from groups.models import User
from projects.models import Environment, Flag, Project
from projects.models.projects import SharedQuerySet


class KeptContext(models.Model):
    """The context part of a playground URL, as a query string; the URL has its digest instead.

    Any logged-in user who has its digest may read it.
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
    """A context with a name, such as "Norwegian beta user": of one project, or of every project without one.

    ``enforced_in``, without a project: the project that enforces the expectations of a flag, by flag.
    """

    name = models.CharField(max_length=100, unique=True)
    project = models.ForeignKey(Project, models.CASCADE, null=True, blank=True, related_name="saved_contexts")
    context = models.JSONField(default=dict, blank=True)
    note = models.TextField(blank=True)
    expectations = models.JSONField(default=list, blank=True)
    enforced_in = models.JSONField(default=dict, db_default={}, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=255, blank=True)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.CharField(max_length=255, blank=True)

    objects = SharedQuerySet["SavedContext"].as_manager()

    class Meta:
        ordering = ("name",)
        constraints = (models.CheckConstraint(condition=~Q(name=""), name="saved_context_has_a_name"),)

    def __str__(self) -> str:
        return self.name

    def enforcing_project(self, flag: str) -> str | None:
        """The project that enforces the expectations of a flag; None if they are only reported."""
        return self.project_id or self.enforced_in.get(flag)


class Work(models.Model):
    """Work on a table, beside the requests: the table, the progress, and the problem if it failed.

    ``body`` is the table as gzip, or as it was sent; "" once the work has ended. ``rows`` is 0 until they are counted.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    caller_id = models.BigIntegerField(null=True, blank=True)
    caller_name = models.CharField(max_length=255)
    file_name = models.TextField(blank=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    body = models.BinaryField(default=b"")
    rows = models.PositiveIntegerField(default=0)
    rows_done = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    problem = models.TextField(blank=True)

    class Meta:
        abstract = True
        ordering = ("-created_at",)

    @property
    def has_ended(self) -> bool:
        return self.state in (self.State.DONE, self.State.FAILED)

    @property
    def writer(self) -> str:
        """The function that does the work."""
        raise NotImplementedError

    def forget_parts(self) -> None:
        """Deletes what has been stored of its result."""


class UserRun(Work):
    """Work on a table of users with the counts of its result, which is kept for some days.

    ``projects`` are those that its caller chose or could read. Only its caller sees it.
    """

    class Kind(models.TextChoices):
        """``USERS``: what each gets of flags now. ``ASSIGNMENTS``: what each row had at its time. ``INCIDENT``: which
        change some of them noticed, and others did not.
        """

        USERS = "users"
        ASSIGNMENTS = "assignments"
        INCIDENT = "incident"

    kind = models.CharField(max_length=16, choices=Kind.choices, default=Kind.USERS, db_default="users")
    options = models.JSONField(default=dict, db_default={}, blank=True)
    projects = models.JSONField(default=list)
    environment = models.TextField()
    flag = models.TextField(blank=True)
    flags = models.PositiveIntegerField(default=0)
    counts = models.JSONField(default=list, blank=True)
    size = models.BigIntegerField(default=0)

    class Meta(Work.Meta):
        indexes = (models.Index(fields=("state", "created_at"), name="user_run_state"),)

    def __str__(self) -> str:
        return f"{self.rows} users in {self.environment}"

    @property
    def writer(self) -> str:
        return {
            self.Kind.USERS.value: "playground.user_runs.evaluate.write_users",
            self.Kind.ASSIGNMENTS.value: "playground.outcomes.runs.write_assignments",
            self.Kind.INCIDENT.value: "playground.outcomes.runs.write_incident",
        }[self.kind]

    def forget_parts(self) -> None:
        UserRunPart.objects.filter(run=self).delete()


class Analysis(Work):
    """What came of a flag in an environment: its design and, once it is done, its result. The rows are not kept.

    ``design`` is a ``playground.outcomes.analyses.design.Design``. ``sight``: the projects that its maker could read.
    """

    flag = models.ForeignKey(Flag, models.CASCADE, related_name="analyses")
    environment = models.ForeignKey(Environment, models.CASCADE, related_name="+")
    name = models.CharField(max_length=200)
    design = models.JSONField()
    sight = models.JSONField()
    result = models.JSONField(null=True, blank=True)

    class Meta(Work.Meta):
        verbose_name_plural = "analyses"
        indexes = (models.Index(fields=("state", "created_at"), name="analysis_state"),)
        constraints = (models.CheckConstraint(condition=~Q(name=""), name="analysis_has_a_name"),)

    def __str__(self) -> str:
        return self.name

    @property
    def writer(self) -> str:
        return "playground.outcomes.analyses.evaluate.write_analysis"


class OwnUsers(models.Model):
    """Users of a person's last CSV file, kept with their consent for Who changes. Only they see them.

    ``body`` is a JSON list of their values by field, as gzip.
    """

    user = models.OneToOneField(User, models.CASCADE)
    file_name = models.TextField()
    number = models.PositiveIntegerField()
    body = models.BinaryField()
    kept_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.file_name


class UserRunPart(models.Model):
    """A part of a run's result. The parts, sorted by id, form one gzip file."""

    run = models.ForeignKey(UserRun, models.CASCADE, related_name="parts")
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"part of {self.run_id}"
