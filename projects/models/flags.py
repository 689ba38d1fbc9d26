"""Models of flags and their parts: types, environments, tags, links, dependencies, lifecycle, references in code.

JSON Schemas of the payloads of flags.
"""

import uuid
from typing import Any, Self, TypedDict

import pgtrigger
from django.db import models
from django.db.models import F, Q

from groups.access import Caller
from projects.applications.usage_triggers import make_usage_triggers
from projects.models.projects import ArchivableQuerySet, Environment, Project
from projects.revision import OF_FLAG, OF_PROJECT, make_revision_triggers


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


# SDKs report usage late, and their clocks may be wrong. So usage never adds a stage that precedes one the flag already
# has, and no stage is dated before an earlier stage. Triggers need no further statement for each report.
_ENTER_BY_USAGE = """
    INSERT INTO projects_lifecyclestage (flag_id, stage, entered_at)
    WITH used AS (
        SELECT r.flag_id, e.type = 'production' AS live, min(r.seen_at) AS seen_at
          FROM new_rows r JOIN projects_environment e ON e.name = r.environment GROUP BY 1, 2
    ), reached AS (
        SELECT flag_id, live, max(seen_at) OVER (PARTITION BY flag_id ORDER BY live) AS seen_at FROM used
    )
    SELECT r.flag_id, CASE WHEN r.live THEN 'live' ELSE 'pre-live' END, greatest(r.seen_at, (
               SELECT max(s.entered_at) FROM projects_lifecyclestage s WHERE s.flag_id = r.flag_id))
      FROM reached r
     WHERE NOT EXISTS (
           SELECT FROM projects_lifecyclestage s WHERE s.flag_id = r.flag_id
              AND (s.stage IN ('live', 'completed', 'archived') OR (s.stage = 'pre-live' AND NOT r.live)))
     ORDER BY 1, 2
    ON CONFLICT DO NOTHING;
    RETURN NULL;
"""


def make_lifecycle_triggers() -> list[pgtrigger.Trigger]:
    """Triggers on last-seen rows.

    They fire on updates too, so that a flag goes live again after it is revived or no longer completed.
    """
    return [
        _make_trigger("lifecycle_stage", pgtrigger.Insert),
        _make_trigger("lifecycle_stage_again", pgtrigger.Update),
    ]


def _make_trigger(name: str, operation: pgtrigger.Operation) -> pgtrigger.Trigger:
    return pgtrigger.Trigger(
        name=name,
        level=pgtrigger.Statement,
        when=pgtrigger.After,
        operation=operation,
        referencing=pgtrigger.Referencing(new="new_rows"),
        func=_ENTER_BY_USAGE,
    )


class OwnerDocument(TypedDict):
    kind: str  # "user" or "group"
    id: int
    name: str


class FlagQuerySet(ArchivableQuerySet["Flag"]):
    def readable_by(self, caller: Caller) -> Self:
        """The flags that the caller may read, archived ones included."""
        return self.filter(caller.match_readable("project_id"))


class Flag(models.Model):
    """A feature flag. Names are unique across all projects, archived flags included."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=100, unique=True)
    project = models.ForeignKey(Project, on_delete=models.RESTRICT, related_name="flags")
    type = models.CharField(max_length=100, default="release")
    description = models.TextField(null=True, blank=True)
    stale = models.BooleanField(default=False)
    impression_data = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(
        "groups.User", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    archived_at = models.DateTimeField(null=True, blank=True)
    owner_user = models.ForeignKey(
        "groups.User", null=True, blank=True, on_delete=models.SET_NULL, related_name="owned_flags"
    )
    owner_group = models.ForeignKey(
        "groups.Group", null=True, blank=True, on_delete=models.SET_NULL, related_name="owned_flags"
    )

    objects = FlagQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="flag_name_not_empty"),
            models.CheckConstraint(
                condition=Q(owner_user=None) | Q(owner_group=None), name="flag_owner_user_or_group"
            ),
        ]
        indexes = [models.Index(fields=["project", "name"], name="flag_project_name")]
        triggers = (
            make_revision_triggers(
                [
                    "id",
                    "name",
                    "project_id",
                    "type",
                    "description",
                    "stale",
                    "impression_data",
                    "archived_at",
                ],
                OF_PROJECT,
            )
            + make_usage_triggers()
        )

    def __str__(self) -> str:
        return self.name

    @property
    def is_archived(self) -> bool:
        return self.archived_at is not None

    def make_owner_document(self) -> OwnerDocument | None:
        """The owner; None without one. Costs a query for an owner that was not fetched with the flag."""
        if self.owner_user is not None:
            return {"kind": "user", "id": self.owner_user.pk, "name": self.owner_user.username}
        if self.owner_group is not None:
            return {"kind": "group", "id": self.owner_group.pk, "name": self.owner_group.name}
        return None


class FlagEnvironment(models.Model):
    """Whether a flag is enabled in an environment, and its variants there."""

    # The indexes below begin with the flag and with the environment. None has the environment alone: outdated
    # statistics could make the planner use it to find one flag among all.
    flag = models.ForeignKey(Flag, on_delete=models.CASCADE, related_name="environments", db_index=False)
    environment = models.ForeignKey(Environment, on_delete=models.RESTRICT, related_name="+", db_index=False)
    enabled = models.BooleanField(default=False)
    variants = models.JSONField(default=list, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["flag", "environment"], name="flag_environment_once")]
        indexes = [models.Index(fields=["environment", "flag"], name="flag_environment_place")]
        triggers = make_revision_triggers(["flag_id", "environment_id", "enabled", "variants"], OF_FLAG)

    def __str__(self) -> str:
        return f"{self.flag} in {self.environment_id}"


class Dependency(models.Model):
    """``flag`` (the child) can be on only if ``parent`` is on, is off, or has one of ``variants``."""

    flag = models.ForeignKey(Flag, on_delete=models.CASCADE, related_name="parents")
    parent = models.ForeignKey(Flag, on_delete=models.RESTRICT, related_name="children")
    enabled = models.BooleanField(default=True)
    variants = models.JSONField(default=list, blank=True)

    class Meta:
        verbose_name_plural = "dependencies"
        constraints = [
            models.UniqueConstraint(fields=["flag", "parent"], name="dependency_once"),
            models.CheckConstraint(condition=~Q(flag=F("parent")), name="dependency_not_on_itself"),
        ]
        triggers = make_revision_triggers(["flag_id", "parent_id", "enabled", "variants"], OF_FLAG)

    def __str__(self) -> str:
        return f"{self.flag} needs {self.parent}"


class FlagLastSeen(models.Model):
    """When metrics last reported a flag in an environment.

    This is a separate table so that usage changes no revision. Usage advances the flag's lifecycle stage
    (``projects.models.flags``).
    """

    flag = models.ForeignKey(Flag, on_delete=models.CASCADE, related_name="last_seen")
    environment = models.TextField()
    seen_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "flags last seen"
        constraints = [models.UniqueConstraint(fields=["flag", "environment"], name="flag_last_seen_once")]
        triggers = make_lifecycle_triggers()

    def __str__(self) -> str:
        return f"{self.flag} in {self.environment}"


class FlagTag(models.Model):
    flag = models.ForeignKey(Flag, on_delete=models.CASCADE, related_name="tags")
    tag_type = models.ForeignKey("TagType", on_delete=models.RESTRICT, related_name="tags")
    value = models.CharField(max_length=50)

    class Meta:
        ordering = ["tag_type", "value"]
        constraints = [
            models.UniqueConstraint(fields=["flag", "tag_type", "value"], name="flag_tag_once"),
            models.CheckConstraint(condition=Q(value__length__gte=2), name="flag_tag_value_length"),
        ]
        indexes = [models.Index(fields=["value", "tag_type"], name="flag_tag_value")]

    def __str__(self) -> str:
        return f"{self.tag_type_id}:{self.value}"


class FlagLink(models.Model):
    """A URL attached to a flag, such as its ticket or design."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    flag = models.ForeignKey(Flag, on_delete=models.CASCADE, related_name="links")
    url = models.TextField()
    title = models.TextField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return self.title or self.url


class LifecycleStage(models.Model):
    """A lifecycle stage of a flag, and when the flag entered it.

    The current stage is the flag's last one, in the order below.
    """

    class Stage(models.TextChoices):
        INITIAL = "initial"
        PRE_LIVE = "pre-live"
        LIVE = "live"
        COMPLETED = "completed"
        ARCHIVED = "archived"

    flag = models.ForeignKey(Flag, on_delete=models.CASCADE, related_name="lifecycle")
    stage = models.CharField(max_length=16, choices=Stage.choices)
    entered_at = models.DateTimeField()
    status = models.CharField(max_length=16, null=True, help_text="Of a completed flag: kept or discarded.")
    status_value = models.CharField(max_length=255, null=True, help_text="The variant that was kept.")

    class Meta:
        ordering = ["entered_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["flag", "stage"], name="lifecycle_stage_once"),
            models.CheckConstraint(
                condition=Q(stage__in=["initial", "pre-live", "live", "completed", "archived"]),
                name="lifecycle_stage_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.flag}: {self.stage}"

    @property
    def beginning(self) -> str:
        """Describes the event at ``entered_at``: the usage stages begin with an evaluation, on or off."""
        evaluated = {self.Stage.PRE_LIVE: "first evaluated", self.Stage.LIVE: "first evaluated in production"}
        return evaluated.get(self.Stage(self.stage), "since")


class FlagView(models.Model):
    """What a person searches, filters and sorts by in the list of all flags, under a name. Only they see it."""

    user = models.ForeignKey("groups.User", on_delete=models.CASCADE, related_name="flag_views")
    name = models.CharField(max_length=60)
    query = models.TextField()

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("user", "name"), name="flag_view_once"),)

    def __str__(self) -> str:
        return self.name


class FavoriteFlag(models.Model):
    user = models.ForeignKey("groups.User", on_delete=models.CASCADE, related_name="favorite_flags")
    flag = models.ForeignKey(Flag, on_delete=models.CASCADE, related_name="favorites")

    class Meta:
        db_table = "projects_favouriteflag"  # the spelling of earlier versions
        constraints = [models.UniqueConstraint(fields=["user", "flag"], name="favourite_flag_once")]

    def __str__(self) -> str:
        return f"{self.flag} of {self.user}"


class FavoriteProject(models.Model):
    user = models.ForeignKey("groups.User", on_delete=models.CASCADE, related_name="favorite_projects")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="favorites")

    class Meta:
        db_table = "projects_favouriteproject"  # the spelling of earlier versions
        constraints = [models.UniqueConstraint(fields=["user", "project"], name="favourite_project_once")]

    def __str__(self) -> str:
        return f"{self.project_id} of {self.user}"


class CodeReport(models.Model):
    """The last report about a repository. ``link`` is the URL of a place: ``{path}``, ``{line}`` and ``{revision}``."""

    repository = models.CharField(max_length=200, unique=True)
    revision = models.CharField(max_length=100, blank=True)
    link = models.CharField(max_length=500, blank=True)
    reported_at = models.DateTimeField()
    reported_by = models.CharField(max_length=255)

    class Meta:
        ordering = ["repository"]

    def __str__(self) -> str:
        return self.repository


class CodeReference(models.Model):
    """A flag in a repository: the first ``places`` as ``[[path, line], …]``, and the total number."""

    report = models.ForeignKey(CodeReport, on_delete=models.CASCADE, related_name="references")
    flag = models.ForeignKey("projects.Flag", on_delete=models.CASCADE, related_name="references")
    count = models.PositiveIntegerField()
    places: Any = models.JSONField()

    class Meta:
        ordering = ["report", "flag"]
        constraints = [models.UniqueConstraint(fields=["report", "flag"], name="code_reference_once")]

    def __str__(self) -> str:
        return f"{self.flag} in {self.report}"


class PayloadSchema(models.Model):
    """The schema of all JSON payloads of a flag's variants. All stored ones satisfy it."""

    flag = models.OneToOneField(
        Flag, primary_key=True, on_delete=models.CASCADE, related_name="payload_schema"
    )
    schema = models.JSONField()

    def __str__(self) -> str:
        return f"payload schema of {self.flag.name}"
