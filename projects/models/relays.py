"""Relays, with their last reports."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Relay(models.Model):
    """``identifier`` is a relay's own, for its directory. ``interval`` and ``flags_age`` are in seconds. ``clients``
    are the application instances that reported to it in its last interval, ``faults`` its own words. ``token_id``:
    the token of its report, 0 for reports from before 1.3.
    """

    identifier = models.CharField(max_length=64, primary_key=True)
    region = models.CharField(max_length=100, blank=True)
    version = models.CharField(max_length=50, blank=True)
    started_at = models.DateTimeField()
    heard_at = models.DateTimeField(db_index=True)
    interval = models.FloatField()
    flags_age = models.FloatField()
    tokens = models.PositiveIntegerField()
    clients = models.PositiveIntegerField()
    streams = models.PositiveIntegerField()
    batches_waiting = models.PositiveIntegerField()
    token_id = models.BigIntegerField(default=0, db_default=0)
    faults: Any = ArrayField(models.CharField(max_length=300), default=list)

    class Meta:
        ordering = ["region", "identifier"]

    def __str__(self) -> str:
        return self.region or self.identifier[:8]

    @property
    def flags_read_at(self) -> datetime:
        """When its oldest flags were last confirmed."""
        return self.heard_at - timedelta(seconds=self.flags_age)
