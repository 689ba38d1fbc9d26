"""Change requests: lists of changes to an environment of a project, reviewed before they are made."""

from typing import Any

from django.db import models

from groups.models import User
from projects.models import Environment, Project


def full_name(user: User | None, name: str) -> str:
    """The name of a person who still exists; for others, and for programs, the stored name."""
    return name if user is None else user.display_name


class Authored:
    author: Any
    author_name: Any

    @property
    def author_full_name(self) -> str:
        return full_name(self.author, self.author_name)


class ChangeRequest(Authored, models.Model):
    """Changes to one environment of one project, proposed by one author. Only the author sees a draft.

    `state_times`: when it entered each state, as ISO 8601. `required_approvals`: the environment's number when the
    request was sent. `impact`: the affected users at that time (`requests/impact.py`), `summary`: the part shown on
    its page. `fingerprint`: of its result at that time (`projects/fingerprint.py`). `moved`: why its approvals were
    withdrawn, if its effect is no longer the approved one (`requests/review.py`).
    """

    class State(models.TextChoices):
        DRAFT = "Draft"
        IN_REVIEW = "In review"
        APPROVED = "Approved"
        SCHEDULED = "Scheduled"
        APPLIED = "Applied"
        CANCELLED = "Cancelled"
        REJECTED = "Rejected"

    project = models.ForeignKey(Project, models.CASCADE, related_name="change_requests")
    environment = models.ForeignKey(Environment, models.CASCADE, related_name="change_requests")
    title = models.CharField(max_length=255, blank=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.DRAFT)
    state_times = models.JSONField(default=dict)
    required_approvals = models.PositiveSmallIntegerField(default=1)
    impact: Any = models.JSONField(null=True, blank=True)
    summary: Any = models.JSONField(null=True, blank=True)
    fingerprint: Any = models.JSONField(null=True, blank=True)
    moved: Any = models.JSONField(null=True, blank=True)
    author = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="change_requests")
    author_name = models.CharField(max_length=255)
    reviewers = models.ManyToManyField(User, blank=True, related_name="requested_reviews")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("project", "state", "-id"), name="change_requests_of_project"),)
        constraints = (
            models.UniqueConstraint(
                fields=("project", "environment", "author"),
                condition=models.Q(state="Draft"),
                name="one_draft_of_each_author",
            ),
        )

    def __str__(self) -> str:
        return f"{self.project_id} / {self.environment_id} #{self.pk}"


class Change(models.Model):
    """One change of a request: an action on a flag, or on a segment without ``feature``.

    ``made_from`` is the changed part when the change was added. If it differs now, the change is in conflict.
    """

    request = models.ForeignKey(ChangeRequest, models.CASCADE, related_name="changes")
    feature = models.CharField(max_length=255, blank=True)
    action = models.CharField(max_length=40)
    payload: Any = models.JSONField(null=True)
    made_from: Any = models.JSONField(null=True)
    author_name = models.CharField(max_length=255)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(fields=("feature",), name="changes_of_flag"),)

    def __str__(self) -> str:
        return f"{self.action} {self.feature}".strip()


class Review(Authored, models.Model):
    """A decision about a request, with the affected users. A change of the request removes its reviews.

    ``by_system``: flagadmin itself decided, not a person who was deleted since.
    `fingerprint`: of the request's result at that time. None for reviews from before it was stored.
    """

    request = models.ForeignKey(ChangeRequest, models.CASCADE, related_name="reviews")
    author = models.ForeignKey(User, models.SET_NULL, null=True, blank=True)
    author_name = models.CharField(max_length=255)
    approved = models.BooleanField()
    by_system = models.BooleanField(default=False, db_default=False)
    impact: Any = models.JSONField(null=True, blank=True)
    fingerprint: Any = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("request", "author"), name="one_review_of_each_author"),
        )

    def __str__(self) -> str:
        return f"{self.author_name}: {'approved' if self.approved else 'rejected'}"


class Schedule(models.Model):
    """The time for applying a request automatically, and the result.

    ``comment`` is stored in the events of its changes. ``reason`` explains a suspension or failure.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        SUSPENDED = "suspended"
        FAILED = "failed"
        DONE = "done"

    request = models.OneToOneField(ChangeRequest, models.CASCADE, related_name="schedule")
    at = models.DateTimeField()
    by = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="schedules")
    by_name = models.CharField(max_length=255)
    comment = models.TextField(blank=True)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PENDING)
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ("at", "id")
        indexes = (
            models.Index(fields=("at", "id"), condition=models.Q(status="pending"), name="pending_schedules"),
        )

    def __str__(self) -> str:
        return f"#{self.request_id} at {self.at:%Y-%m-%d %H:%M} UTC"

    @property
    def by_full_name(self) -> str:
        return full_name(self.by, self.by_name)


class Comment(Authored, models.Model):
    request = models.ForeignKey(ChangeRequest, models.CASCADE, related_name="comments")
    text = models.TextField()
    author = models.ForeignKey(User, models.SET_NULL, null=True, blank=True)
    author_name = models.CharField(max_length=255)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.text[:80]
