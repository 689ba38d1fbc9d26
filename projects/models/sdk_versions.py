"""The latest version given to delta and streaming SDKs, for each set of projects and environment."""

from django.db import models


class SdkVersion(models.Model):
    """The id of the flags visible to tokens of one scope, and the revisions of the projects at that id.

    ``scope`` is a hash. Scopes never share ids, so that an id also identifies its scope. Written by
    ``sdk/delta/version_ids.py`` only.
    """

    scope = models.CharField(max_length=64, primary_key=True)
    version = models.BigIntegerField(unique=True)
    revisions = models.JSONField()
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.scope[:8]} at {self.version}"
