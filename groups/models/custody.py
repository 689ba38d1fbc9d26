"""Records who else could act as an account."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from groups.models.people import User


class CustodyQuerySet(models.QuerySet["Custody"]):
    def open(self) -> "CustodyQuerySet":
        """The records that count: unconfirmed and, for people, not older than the setting."""
        since = timezone.now() - timedelta(days=settings.NEW_ACCOUNT_DAYS)
        return self.filter(Q(since__gt=since) | Q(account__is_service=True), confirmed_at=None)


class Custody(models.Model):
    """Another account (``keeper``) could act as this one since then, having created it or set its login.

    It counts until another admin confirms that the account belongs to another person. Accounts have no record if they
    are older than this table, or if the identity provider, SCIM or a command created them.
    """

    class How(models.TextChoices):
        CREATED = "created", "created"
        INVITED = "invited", "invited"
        SIGNED_UP = "signedUp", "let in with an invite link"
        PASSWORD = "password", "given a password or login link"
        EMAIL = "email", "given another email address"
        TOKEN = "token", "given a token"

    account = models.ForeignKey(User, models.CASCADE, related_name="custodies")
    keeper = models.ForeignKey(User, models.CASCADE, related_name="+")
    how = models.CharField(max_length=16, choices=How.choices)
    since = models.DateTimeField(auto_now_add=True)
    confirmed_at = models.DateTimeField(null=True, blank=True)
    confirmed_by = models.CharField(max_length=255, blank=True)

    objects: Any = CustodyQuerySet.as_manager()

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.account} was {self.words}"

    @property
    def words(self) -> str:
        """``invited by Ada on 3 Mar 2026``"""
        return f"{self.How(self.how).label} by {self.keeper.display_name} on {_say_day(self.since)}"

    @property
    def until(self) -> datetime | None:
        """The time until which it counts; None for service accounts, for which it always counts."""
        return None if self.account.is_service else self.since + timedelta(days=settings.NEW_ACCOUNT_DAYS)


def _say_day(moment: datetime) -> str:
    return f"{moment.day} {moment:%b %Y}"
