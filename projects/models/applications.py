"""Who asks for flags: applications, their instances, and which flag they asked for where.

SDKs write these tables many times a second, so they carry no foreign keys in the database: a report never waits
for whoever deletes a flag. What such a race leaves behind is joined to nothing and swept by ``cleanup_usage``.
Flags take their usage with them by trigger (``projects.applications.usage_triggers``).
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Application(models.Model):
    """What SDKs call ``appName``. ``folded_name`` is its case-folded form, for searching."""

    id = models.BigAutoField(primary_key=True)
    name = models.TextField(unique=True, db_collation="C")
    folded_name = models.TextField(editable=False)
    strategies = ArrayField(models.TextField(), default=list, blank=True)
    created_at = models.DateTimeField()
    # What people note about it; reports leave them alone.
    description = models.TextField(null=True, blank=True)
    url = models.TextField(null=True, blank=True)
    color = models.CharField(max_length=50, null=True, blank=True)
    icon = models.CharField(max_length=255, null=True, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ApplicationInstance(models.Model):
    """A running SDK. ``sdk_version`` is as sent, ``unleash-node-sdk:6.12.1``; once known it never becomes empty.

    ``sdk_flavor`` is what the SDK is wrapped in, with its version if one was sent: ``fastapi:1.2.0``.
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
    """An application asked for a flag in an environment, last at that time. One narrow row that stays."""

    pk = models.CompositePrimaryKey("application_id", "flag_id", "environment")
    application_id = models.BigIntegerField()
    flag_id = models.BigIntegerField(db_index=True)
    environment = models.TextField()
    last_used_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.flag_id} by {self.application_id} in {self.environment}"


class UsageHour(models.Model):
    """How often it asked within an hour (``hour`` is its beginning). Kept for two days."""

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


class IgnoredReport(models.Model):
    """How much of the reports of an hour was beyond a limit and not kept (``projects.applications.report_limits``).

    Of a token, or of an application: the other one is 0 or empty.
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
    """One series of an impact metric: a metric's name with labels. ``labels`` is JSON with sorted names."""

    pk = models.CompositePrimaryKey("name", "labels")
    name = models.TextField(db_collation="C")
    labels = models.TextField(db_collation="C")
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


class ProjectApplication(models.Model):
    """One line of a project's applications list, kept at write time by ``projects_refresh_applications``.

    The counts and SDKs are those of the instances seen since a moment that is on or before ``oldest_seen_at``;
    once that falls out of the window the line is made anew. ``search`` has the case-folded name, environments
    and SDKs between unit separators.
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
            # With what lists are sorted by: sorting reads this alone, and in order of the names that break ties.
            models.Index(
                fields=["project_id", "name"],
                include=["application_id", "environment_count", "instance_count", "sdk_count"],
                name="project_application_name",
            ),
            models.Index(fields=["project_id", "oldest_seen_at"], name="project_application_oldest"),
        ]

    def __str__(self) -> str:
        return f"{self.name} in {self.project_id}"
