"""Stored playground contexts: those too long for a URL, which then contains a digest instead."""

from django.db import models

from groups.models import User


class KeptContext(models.Model):
    """The context part of a playground URL, as a query string. Anyone logged in who has its digest may read it."""

    user = models.ForeignKey(User, models.CASCADE)
    digest = models.CharField(max_length=64, db_index=True)
    query = models.TextField()
    kept_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "digest"), name="kept_once_by_each_user"),)

    def __str__(self) -> str:
        return self.digest
