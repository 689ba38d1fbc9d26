"""Counted bulk reports, so that a relay's repeated report is not counted twice."""

from django.db import models
from django.db.models.functions import Now


class CountedReport(models.Model):
    """``digest`` is a hash of the token and of the id that the relay gave its report."""

    digest = models.CharField(max_length=64, primary_key=True)
    counted_at = models.DateTimeField(db_default=Now(), db_index=True)

    def __str__(self) -> str:
        return self.digest[:8]
