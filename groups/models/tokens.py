"""Models of API tokens and the projects that they give access to."""

from datetime import datetime
from typing import TypedDict

import pgtrigger
from django.db import models
from django.db.models import Q

from flagadmin.core.db.commits import notify_trigger
from flagadmin.core.http.responses import iso


class ApiToken(models.Model):
    """An API token. The secret is shown once and never stored: ``secret_hash`` is its SHA-256.

    ``all_projects`` is explicit, so that a token whose projects were all deleted has access to none instead
    of all. A pending token (``pending_scope``) gives no access until the project and environment that it names exist.
    """

    class Kind(models.TextChoices):
        ADMIN = "admin", "Admin"
        BACKEND = "backend", "Backend"
        FRONTEND = "frontend", "Frontend"
        PERSONAL = "personal", "Personal"

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    type_name = models.CharField(
        max_length=16, blank=True, editable=False, help_text='The kind as its creator calls it: "client".'
    )
    name = models.CharField(max_length=255)
    secret_hash = models.CharField(max_length=64, unique=True, editable=False)
    prefix = models.CharField(max_length=255, editable=False, help_text="The visible start of the secret.")
    user = models.ForeignKey(
        "groups.User", null=True, blank=True, on_delete=models.CASCADE, related_name="tokens"
    )
    environment = models.ForeignKey(
        "projects.Environment", null=True, blank=True, on_delete=models.CASCADE, related_name="tokens"
    )
    all_projects = models.BooleanField(default=False)
    projects = models.ManyToManyField("projects.Project", through="ApiTokenProject", related_name="tokens")
    pending_scope = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text='The scope of a token that waits for an environment or projects: {"environment", "projects"}.',
    )
    alias = models.CharField(max_length=255, null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=255, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField("last used", null=True, blank=True)

    user_rights: str | None = None
    """The user's rights for `groups.access`, if the statement that found the token has selected them."""

    class Meta:
        verbose_name = "API token"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="personal", user__isnull=False)
                | (~Q(kind="personal") & Q(user__isnull=True)),
                name="api_token_personal_has_user",
            ),
            models.CheckConstraint(
                condition=~Q(kind__in=["backend", "frontend"])
                | Q(environment__isnull=False)
                | Q(pending_scope__isnull=False),
                name="api_token_sdk_has_environment",
            ),
            models.CheckConstraint(
                condition=Q(pending_scope__isnull=True) | Q(environment__isnull=True, all_projects=False),
                name="api_token_pending_has_no_access",
            ),
        ]
        # Not for seen_at, which is written all the time.
        triggers = [
            notify_trigger(
                pgtrigger.Delete
                | pgtrigger.UpdateOf("kind", "secret_hash", "environment_id", "all_projects", "expires_at")
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_pending(self) -> bool:
        return self.pending_scope is not None

    def has_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


class ApiTokenProject(models.Model):
    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="scopes")
    project = models.ForeignKey("projects.Project", on_delete=models.CASCADE, related_name="token_scopes")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token", "project"], name="api_token_project_once")]
        triggers = [notify_trigger(pgtrigger.Insert | pgtrigger.Update | pgtrigger.Delete)]

    def __str__(self) -> str:
        return f"{self.token} for {self.project_id}"


class StartUpKey(models.Model):
    """A token from INIT_*_API_TOKENS that was created at start-up. Once revoked, it is not created again."""

    secret_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"token from the environment, {self.created_at:%Y-%m-%d}"


class InviteLinkDocument(TypedDict):
    name: str
    key: str
    enabled: bool
    expiresAt: str | None
    role: str


class InviteLink(models.Model):
    """A sign-up link that works for anyone who has it. Its token is stored as a hash; ``key`` is its visible start."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=255)
    key = models.CharField(max_length=16, unique=True, editable=False)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    role = models.ForeignKey("groups.Role", on_delete=models.CASCADE, related_name="+")
    is_enabled = models.BooleanField("enabled", default=True)
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=255, blank=True)
    users = models.ManyToManyField("groups.User", related_name="+", blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.name

    def is_open(self, now: datetime) -> bool:
        return self.is_enabled and self.expires_at > now

    def document(self) -> InviteLinkDocument:
        """The link as a JSON document for audit events."""
        return {
            "name": self.name,
            "key": self.key,
            "enabled": self.is_enabled,
            "expiresAt": iso(self.expires_at),
            "role": self.role.name,
        }
