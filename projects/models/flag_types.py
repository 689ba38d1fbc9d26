"""Flag types: what flags are for, and how long they are expected to live."""

from django.db import models


class FlagType(models.Model):
    """What a flag is for. ``lifetime_days``: how long such a flag is expected to live; null for ever."""

    id = models.CharField(max_length=100, primary_key=True)
    name = models.CharField(max_length=255)
    description = models.TextField()
    lifetime_days = models.PositiveIntegerField(null=True, blank=True)
    sort_order = models.IntegerField(default=0)

    class Meta:
        ordering = ["sort_order", "id"]

    def __str__(self) -> str:
        return self.name
