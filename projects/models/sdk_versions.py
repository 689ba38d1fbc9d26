"""The latest version that delta and streaming SDKs were given, for each set of projects and environment."""

from django.db import models


class SdkVersion(models.Model):
    """The id of what tokens of one scope see, and the revisions of the projects at that id.

    ``scope`` is a hash. The ids of all scopes are different, so that an id also tells the scope it belongs to.
    Written by ``sdk/delta/version_ids.py`` only.
    """

    scope = models.CharField(max_length=64, primary_key=True)
    version = models.BigIntegerField(unique=True)
    revisions = models.JSONField()
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.scope[:8]} at {self.version}"
