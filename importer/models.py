"""Models for import runs (pending, running, done or undone), their reports for each flag, and foreign history."""

import uuid
from datetime import timedelta
from typing import Any

import pgtrigger
from django.db import models
from django.utils import timezone


class ImportRun(models.Model):
    """One import: its caller, source and target, its result, and the data for undoing it.

    It has no foreign keys, because it outlives its caller and its project. ``before`` holds the documents of
    the flags that were changed, ``after`` a hash of every flag written; ``saved_contexts`` has both for
    those. ``promoted_from`` is the source environment of a promotion, whose ``body`` lists what to copy (see
    :mod:`importer.promotion`), and ``converted_from`` the product whose file is converted
    (:mod:`importer.converting.stored`). A pending run has a compressed
    ``body`` (``size`` bytes uncompressed) and a preview: ``preview`` (see :mod:`importer.report`)
    and a :class:`FlagReport` per flag.
    """

    class Source(models.TextChoices):
        API = "api"
        CONSOLE = "console"
        COMMAND = "command"

    class State(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        DONE = "done"
        UNDONE = "undone"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    source = models.CharField(max_length=16, choices=Source.choices)
    state = models.CharField(max_length=16, choices=State.choices)
    caller_id = models.BigIntegerField(null=True, blank=True)
    caller_name = models.CharField(max_length=255)
    project = models.TextField()
    environment = models.TextField()
    promoted_from = models.TextField(blank=True, default="", db_default="")
    converted_from = models.TextField(blank=True, default="", db_default="")
    file_name = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    counts = models.JSONField(default=dict, blank=True)
    fingerprint = models.CharField(max_length=64, blank=True)
    preview = models.JSONField(default=dict, blank=True)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    saved_contexts = models.JSONField(default=dict, db_default={}, blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)
    excluded = models.JSONField(default=list, blank=True)
    body = models.BinaryField(null=True, blank=True)
    size = models.PositiveIntegerField(default=0)
    step = models.TextField(blank=True)
    progress_done = models.PositiveIntegerField(default=0)
    progress_total = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["project", "-created_at"], name="import_run_project"),
            models.Index(fields=["state", "expires_at"], name="import_run_expiry"),
        ]

    def __str__(self) -> str:
        return (
            f"{self.get_state_display()} {self.noun} {self.preposition} {self.project} / {self.environment}"
        )

    @property
    def noun(self) -> str:
        return "promotion" if self.promoted_from else "import"

    @property
    def written(self) -> int:
        """The number of flags that it creates or changes."""
        return self.counts.get("create", 0) + self.counts.get("change", 0)

    @property
    def verb(self) -> str:
        return "Promote" if self.promoted_from else "Import"

    @property
    def preposition(self) -> str:
        return "to" if self.promoted_from else "into"


class FlagReport(models.Model):
    """The effect of an import, planned or done, on one flag. Ids ascend in the order of the file.

    ``changes`` is ``[{part, before, after}]``; ``is_here`` is whether the project already had the flag.
    """

    run = models.ForeignKey(
        # Rows are written in bulk and deleted with their run, so a constraint would only cost time.
        ImportRun,
        models.CASCADE,
        related_name="reports",
        db_constraint=False,
        db_index=False,
    )
    name = models.TextField()
    action = models.CharField(max_length=16)
    reason = models.TextField(blank=True)
    summary = models.TextField(blank=True)
    changes = models.JSONField(default=list, blank=True)
    is_here = models.BooleanField(default=False)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["run", "id"], name="flag_report_of_run")]

    def __str__(self) -> str:
        return f"{self.action} {self.name}"

    def document(self) -> dict[str, Any]:
        """``{name, action, reason?, summary?, changes?}``"""
        optional = {"reason": self.reason, "summary": self.summary, "changes": self.changes}
        return {"name": self.name, "action": self.action} | {k: v for k, v in optional.items() if v}


class SourceEvent(models.Model):
    """A change recorded by another installation before its flags moved here, in its original form.

    ``source`` is the URL of the installation. It is not part of our own history: nothing can be reverted to it.
    """

    id = models.BigAutoField(primary_key=True)
    source = models.TextField()
    event_id = models.BigIntegerField(help_text="The id there.")
    created_at = models.DateTimeField()
    type = models.TextField()
    created_by = models.TextField(blank=True)
    project = models.TextField(null=True, blank=True)
    environment = models.TextField(null=True, blank=True)
    feature = models.TextField(null=True, blank=True)
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-event_id"]
        constraints = [models.UniqueConstraint(fields=["source", "event_id"], name="source_event_once")]
        indexes = [
            models.Index(fields=["-created_at", "-event_id"], name="source_event_time"),
            models.Index(fields=["feature", "-created_at"], name="source_event_feature"),
            models.Index(fields=["project", "-created_at"], name="source_event_project"),
        ]
        triggers = [pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)]

    def __str__(self) -> str:
        return f"{self.type} {self.feature or self.project or ''}".strip()


class InstallationMove(models.Model):
    """A look at another installation from the console, or a move from it. Its token, and the users of the file named
    in ``file_name``, are only kept in memory. ``left_out`` lists what stays there.

    While it runs, ``beat_at`` is updated: the process may have died. ``report`` and ``proofs`` are documents of
    ``importer.moving``.
    """

    class Step(models.TextChoices):
        PLAN = "plan", "Check"
        APPLY = "apply", "Move"
        PROVE = "prove", "Proof"

    MAX_SILENCE = timedelta(seconds=30)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    step = models.CharField(max_length=16, choices=Step.choices)
    address = models.TextField()
    projects = models.JSONField(default=list, blank=True)
    left_out = models.JSONField(default=list, blank=True, db_default=[])
    users = models.PositiveIntegerField(default=0)
    file_name = models.TextField(blank=True, default="", db_default="")
    overwrite = models.BooleanField(default=False)
    caller_id = models.BigIntegerField(null=True, blank=True)
    caller_name = models.CharField(max_length=255)
    created_at = models.DateTimeField(auto_now_add=True)
    beat_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    progress = models.TextField(blank=True)
    problem = models.TextField(blank=True)
    report = models.JSONField(null=True, blank=True)
    proofs = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.get_step_display()}: {self.address}"

    @property
    def is_running(self) -> bool:
        return self.finished_at is None and timezone.now() - self.beat_at < self.MAX_SILENCE

    @property
    def is_interrupted(self) -> bool:
        return self.finished_at is None and not self.is_running
