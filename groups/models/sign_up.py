"""The model of invite links."""

from datetime import datetime
from typing import TypedDict

from django.db import models

from flagadmin.core.http.responses import iso


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
