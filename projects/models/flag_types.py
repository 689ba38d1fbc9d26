"""Flag types, such as release or experiment: the purpose of a flag and its expected lifetime."""

from django.db import models


class FlagType(models.Model):
    """The purpose of a flag.

    ``lifetime_days`` is the expected lifetime of such flags; null means unlimited.
    """

    id = models.CharField(max_length=100, primary_key=True)
    name = models.CharField(max_length=255)
    description = models.TextField()
    lifetime_days = models.PositiveIntegerField(null=True, blank=True)
    sort_order = models.IntegerField(default=0)

    class Meta:
        ordering = ["sort_order", "id"]

    def __str__(self) -> str:
        return self.name
