"""Applications that use flags, their instances, the relays near them, and the usage that SDKs report.

SDKs write these tables many times a second. They have no foreign keys in the database, so that a report never waits
for the deletion of a flag. ``cleanup_usage`` deletes orphans left by such a race. When a flag is moved or deleted,
triggers update its usage (``projects.applications.usage_triggers``).
"""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now


class CountedReport(models.Model):
    """``digest`` is a hash of the token and of the id that the relay gave its report."""

    digest = models.CharField(max_length=64, primary_key=True)
    counted_at = models.DateTimeField(db_default=Now(), db_index=True)

    def __str__(self) -> str:
        return self.digest[:8]


class Application(models.Model):
    """An application, ``appName`` in SDKs. ``folded_name`` is the case-folded name, for searching."""

    id = models.BigAutoField(primary_key=True)
    name = models.TextField(unique=True, db_collation="C")
    folded_name = models.TextField(editable=False)
    strategies = ArrayField(models.TextField(), default=list, blank=True)
    created_at = models.DateTimeField()
    # Entered by users; reports do not change these columns.
    description = models.TextField(null=True, blank=True)
    url = models.TextField(null=True, blank=True)
    color = models.CharField(max_length=50, null=True, blank=True)
    icon = models.CharField(max_length=255, null=True, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ApplicationInstance(models.Model):
    """A running SDK.

    ``sdk_version`` is as sent, ``unleash-node-sdk:6.12.1``; an empty one does not overwrite it.

    ``sdk_flavor`` is the framework that wraps the SDK, with its version if one was sent: ``fastapi:1.2.0``.
    """

    id = models.BigAutoField(primary_key=True)
    application = models.ForeignKey(
        Application, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    environment = models.TextField()
    instance_id = models.TextField(db_collation="C")
    sdk_version = models.TextField(blank=True)
    folded_sdk = models.TextField(blank=True, editable=False)
    sdk_type = models.TextField(default="backend")
    platform_name = models.TextField(blank=True)
    platform_version = models.TextField(blank=True)
    spec_version = models.TextField(blank=True)
    engine_version = models.TextField(blank=True)
    sdk_flavor = models.TextField(blank=True, default="", db_default="")
    first_seen_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ["application", "instance_id", "environment"]
        constraints = [
            models.UniqueConstraint(
                fields=["application", "instance_id", "environment"], name="application_instance_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.instance_id} of {self.application_id} in {self.environment}"


class FlagUsage(models.Model):
    """An application's use of a flag in an environment, with the time of the last use.

    Kept without a time limit.
    """

    pk = models.CompositePrimaryKey("application_id", "flag_id", "environment")
    application_id = models.BigIntegerField()
    flag_id = models.BigIntegerField(db_index=True)
    environment = models.TextField()
    last_used_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.flag_id} by {self.application_id} in {self.environment}"


class UsageHour(models.Model):
    """An application's counts for a flag in an environment in one hour, starting at ``hour``.

    Kept for two days, then added to :class:`UsageDay`.
    """

    pk = models.CompositePrimaryKey("flag_id", "environment", "hour", "application_id")
    flag_id = models.BigIntegerField()
    environment = models.TextField()
    hour = models.DateTimeField(db_index=True)
    application_id = models.BigIntegerField()
    yes = models.BigIntegerField(default=0)
    no = models.BigIntegerField(default=0)
    variants = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.flag_id} by {self.application_id} in {self.environment} at {self.hour}"


class UsageDay(models.Model):
    """All applications' counts for a flag in an environment on one day (UTC).

    Hours are added to their day when they are deleted, so the last two days are incomplete here. Kept for 91
    days.
    """

    pk = models.CompositePrimaryKey("flag_id", "environment", "day")
    flag_id = models.BigIntegerField()
    environment = models.TextField()
    day = models.DateField(db_index=True)
    yes = models.BigIntegerField(default=0)
    no = models.BigIntegerField(default=0)
    variants = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.flag_id} in {self.environment} on {self.day}"


class UsageTotal(models.Model):
    """The counts of all flags of a project in one hour. Updated every ten minutes."""

    pk = models.CompositePrimaryKey("hour", "project_id")
    hour = models.DateTimeField()
    project_id = models.CharField(max_length=100)
    yes = models.BigIntegerField(default=0)
    no = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.project_id} at {self.hour}"


class UnknownFlag(models.Model):
    """A flag that does not exist, and when an application last reported it. Kept for two days."""

    pk = models.CompositePrimaryKey("application_id", "environment", "name")
    application_id = models.BigIntegerField()
    environment = models.TextField()
    name = models.TextField(db_collation="C")
    seen_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.name} in {self.environment}"


class IgnoredReport(models.Model):
    """The number of reported items of an hour that exceeded a limit and were not stored.

    See ``projects.applications.sdk_versions``. Counted for a token or for an application. The column that
    does not apply is 0 or empty.
    """

    pk = models.CompositePrimaryKey("hour", "kind", "token_id", "application")
    hour = models.DateTimeField()
    kind = models.TextField()
    token_id = models.BigIntegerField(default=0)
    application = models.TextField(default="")
    number = models.BigIntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["application"], name="ignored_report_application")]

    def __str__(self) -> str:
        return f"{self.number} of kind {self.kind} at {self.hour}"


class ImpactSeries(models.Model):
    """A series of an impact metric: the metric's name with labels. ``labels`` is JSON with sorted names.

    ``origin`` is the id of an `ImpactOrigin`; "": backend tokens of all projects, and reports from before 1.3.
    """

    pk = models.CompositePrimaryKey("name", "labels", "origin")
    name = models.TextField(db_collation="C")
    labels = models.TextField(db_collation="C")
    origin = models.TextField(db_collation="C", default="", db_default="", blank=True)
    kind = models.TextField()
    help = models.TextField(blank=True)
    value = models.FloatField(default=0)
    count = models.BigIntegerField(default=0)
    buckets = models.JSONField(default=dict)
    seen_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "impact series"

    def __str__(self) -> str:
        return f"{self.name}{self.labels}"


class ImpactOrigin(models.Model):
    """The tokens that report series: their kind and projects, ``["*"]`` for all. The id is a digest of both."""

    id = models.TextField(primary_key=True, db_collation="C")
    is_frontend = models.BooleanField()
    projects = ArrayField(models.TextField())

    def __str__(self) -> str:
        return f"{'frontend' if self.is_frontend else 'backend'} tokens of {', '.join(self.projects)}"


class ImpactPoint(models.Model):
    """The values of an impact metric's series in a minute, or in an hour that sums up its minutes.

    A gauge's ``value`` is the last one of the minute, or the mean of the hour. ``origin`` is the series'.
    """

    pk = models.CompositePrimaryKey("name", "at", "labels", "is_hour", "origin")
    name = models.TextField(db_collation="C")
    at = models.DateTimeField()
    labels = models.TextField(db_collation="C")
    is_hour = models.BooleanField(default=False)
    origin = models.TextField(db_collation="C", default="", db_default="", blank=True)
    kind = models.TextField()
    value = models.FloatField(default=0)
    count = models.BigIntegerField(default=0)
    buckets = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "impact points"
        indexes = [models.Index(fields=["at"], name="impact_point_age")]

    def __str__(self) -> str:
        return f"{self.name}{self.labels} at {self.at}"


class ProjectApplication(models.Model):
    """A row of a project's applications list.

    The SQL function ``projects_refresh_applications`` maintains it. The counts and SDKs cover instances seen
    at or after ``oldest_seen_at``. When that time leaves the window, the row is rebuilt. ``search`` contains
    the case-folded name, environments and SDKs between unit separators.
    """

    pk = models.CompositePrimaryKey("project_id", "application_id")
    project_id = models.CharField(max_length=100)
    application_id = models.BigIntegerField(db_index=True)
    name = models.TextField(db_collation="C")
    search = models.TextField()
    environments = ArrayField(models.TextField(), default=list)
    sdks = ArrayField(models.TextField(), default=list)
    environment_count = models.IntegerField(default=0)
    instance_count = models.IntegerField(default=0)
    sdk_count = models.IntegerField(default=0)
    last_seen_at = models.DateTimeField()
    oldest_seen_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            # Includes the columns by which lists are sorted, so that sorting needs only this index. Names
            # break ties.
            models.Index(
                fields=["project_id", "name"],
                include=["application_id", "environment_count", "instance_count", "sdk_count"],
                name="project_application_name",
            ),
            models.Index(fields=["project_id", "oldest_seen_at"], name="project_application_oldest"),
        ]

    def __str__(self) -> str:
        return f"{self.name} in {self.project_id}"


class RefusedRequest(models.Model):
    """A refused request of an SDK, to help connect it. Kept for a quarter of an hour, at most 200 rows.

    Stores only the parts of the token that are not secret: the project and environment at its beginning, and its last
    four characters.
    """

    fingerprint = models.TextField(primary_key=True)
    seen_at = models.DateTimeField(db_index=True)
    message = models.TextField()
    project = models.TextField()
    environment = models.TextField()
    ending = models.TextField()
    sdk = models.TextField()
    application = models.TextField()
    address = models.TextField()

    def __str__(self) -> str:
        return f"{self.message} ({self.address})"


class SdkVersion(models.Model):
    """The id of the flags visible to tokens of one scope, and the revisions of the projects at that id.

    ``scope`` is a hash. Scopes never share ids, so that an id also identifies its scope. Written by
    ``sdk/delta/states.py`` only.
    """

    scope = models.CharField(max_length=64, primary_key=True)
    version = models.BigIntegerField(unique=True)
    revisions = models.JSONField()
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.scope[:8]} at {self.version}"


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
