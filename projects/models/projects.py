"""Models of projects, their environments and their revision.

Environments: their types and their order.

Tag types and tags. The tags of flags are in ``projects.models.flags``.

Querysets of the models whose rows belong to a project.
"""

from typing import Self, TypeVar

import pgtrigger
from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Length

from flagadmin.core.db.commits import notify_trigger
from flagadmin.core.document import Document
from groups.access import Caller
from projects.applications.usage_triggers import make_environment_usage_triggers
from projects.revision import make_outside_triggers, make_project_triggers

M = TypeVar("M", bound=Model)


class ArchivableQuerySet(QuerySet[M]):
    def active(self) -> Self:
        return self.archived(False)

    def archived(self, is_archived: bool = True) -> Self:
        """The archived rows; with False, the active ones."""
        return self.filter(archived_at__isnull=not is_archived)


class SharedQuerySet(QuerySet[M]):
    """Rows that are global or belong to one project."""

    def readable_by(self, caller: Caller) -> Self:
        """Global rows, and rows of projects that the caller may read."""
        readable = caller.match_readable("project_id")
        return self.filter(Q(project=None) | readable) if readable else self.all()

    def usable_in(self, *project_ids: str) -> Self:
        """Global rows, and rows of these projects."""
        return self.filter(Q(project=None) | Q(project_id__in=project_ids))


class EnvironmentQuerySet(models.QuerySet["Environment"]):
    def production(self) -> Self:
        return self.filter(type=Environment.PRODUCTION)

    def names(self) -> list[str]:
        """Their names, production first."""
        first = self.alias(first=Q(type=Environment.PRODUCTION)).order_by("-first", "sort_order", "name")
        return list(first.values_list("name", flat=True))


class Environment(models.Model):
    """An environment, such as development or production. The name is the primary key and never changes."""

    PRODUCTION = "production"  # a type: the environment may have any name

    name = models.CharField(max_length=100, primary_key=True)
    type = models.CharField(max_length=100, default=PRODUCTION)
    enabled = models.BooleanField(default=True)
    sort_order = models.IntegerField(default=9999)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = EnvironmentQuerySet.as_manager()

    class Meta:
        ordering = ["sort_order", "name"]
        constraints = [models.CheckConstraint(condition=~Q(name=""), name="environment_name_not_empty")]
        triggers = make_environment_usage_triggers()

    def __str__(self) -> str:
        return self.name

    @property
    def is_production(self) -> bool:
        return self.type == self.PRODUCTION


# A deleted project keeps its row: what is stored about it stays private. Only a change of an existing project's mode
# removes it, and another project with the id begins as a private one.
_PRIVACY = pgtrigger.Trigger(
    name="privacy",
    level=pgtrigger.Row,
    when=pgtrigger.After,
    operation=pgtrigger.Insert | pgtrigger.UpdateOf("mode"),
    func="IF NEW.mode = 'private' THEN INSERT INTO groups_privateproject (project_id) VALUES (NEW.id)"
    " ON CONFLICT DO NOTHING; ELSIF TG_OP = 'UPDATE' THEN IF OLD.mode = 'private' THEN"
    " DELETE FROM groups_privateproject WHERE project_id = NEW.id; END IF; END IF; RETURN NULL;",
)
_STAYS_PRIVATE = pgtrigger.Trigger(
    name="stays_private",
    level=pgtrigger.Row,
    when=pgtrigger.Before,
    operation=pgtrigger.Insert,
    func="IF EXISTS (SELECT FROM groups_privateproject WHERE project_id = NEW.id) THEN NEW.mode = 'private'; END IF;"
    " RETURN NEW;",
)


class ProjectQuerySet(ArchivableQuerySet["Project"]):
    def readable_by(self, caller: Caller) -> Self:
        """The projects that the caller may read, archived ones included."""
        return self.filter(caller.match_readable("id"))

    def with_checks(self) -> Self:
        """Projects with ``needs_requests``: whether one of their environments only accepts changes by request.

        ``has_schemas``: whether one of their flags has a payload schema.
        """
        links = ProjectEnvironment.objects.needing_requests().filter(project=models.OuterRef("pk"))
        schemas = apps.get_model("projects", "PayloadSchema")._default_manager.filter(
            flag__project=models.OuterRef("pk")
        )
        return self.annotate(needs_requests=models.Exists(links), has_schemas=models.Exists(schemas))


class Project(models.Model):
    """A set of flags with its own settings, members and tokens.

    The id is chosen at creation and never changes.
    """

    class Mode(models.TextChoices):
        """Who can see the project and propose changes, besides its members and admins."""

        OPEN = "open", "Everyone with a root role can see it and propose changes"
        PROTECTED = "protected", "Everyone with a root role can see it, but only members can propose changes"
        PRIVATE = "private", "Only members can see it and propose changes"

    id = models.CharField(max_length=100, primary_key=True)
    name = models.CharField(max_length=255)
    description = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    mode = models.CharField(max_length=20, choices=Mode.choices, default=Mode.OPEN, db_default=Mode.OPEN)
    default_stickiness = models.CharField(max_length=100, default="default")
    flag_limit = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="The most flags it may have at once.",
    )
    naming_pattern = models.TextField(
        blank=True, help_text="A regular expression that names of new flags match as a whole."
    )
    naming_example = models.TextField(blank=True)
    naming_description = models.TextField(blank=True)
    refuse_broken_expectations = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Refuse changes that break an expectation of a saved context.",
    )
    comment_links = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        help_text='Parts of comments that become links: [{"pattern": …, "url": "https://…/{match}"}].',
    )
    link_templates = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        help_text='Links that new flags get: [{"title": …, "urlTemplate": "https://…/{{feature}}"}].',
    )
    environments = models.ManyToManyField(Environment, through="ProjectEnvironment", related_name="projects")

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(condition=~Q(id=""), name="project_id_not_empty"),
            models.CheckConstraint(
                condition=Q(mode__in=["open", "protected", "private"]), name="project_mode_known"
            ),
        ]
        triggers = [*make_project_triggers(), _PRIVACY, _STAYS_PRIVATE]

    def __str__(self) -> str:
        return self.id


class ProjectEnvironmentQuerySet(models.QuerySet["ProjectEnvironment"]):
    def needing_requests(self) -> Self:
        """Environments that only accept changes by change request."""
        return self.exclude(required_approvals=None)


class ProjectEnvironment(models.Model):
    """An environment enabled in a project, with the default strategy for flags that have none there.

    `required_approvals`: changes of its results need a change request with this many approvals. None: no request.
    `approval_rules`: other numbers, depending on the effect (`projects/projects/required_comments.py`).
    `approver_groups`: ids of the groups whose members may approve; [] for everyone with the permission. The id of a
    deleted group stays, so that its deletion does not allow others to approve.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="environment_links")
    environment = models.ForeignKey(Environment, on_delete=models.RESTRICT, related_name="project_links")
    default_strategy = models.JSONField(null=True, blank=True)
    comment_required = models.BooleanField(
        default=False, db_default=False, help_text="Whether changes in it need a comment."
    )
    required_approvals = models.PositiveSmallIntegerField(null=True, blank=True)
    approval_rules = models.JSONField(default=list, db_default=[], blank=True)
    approver_groups = models.JSONField(default=list, db_default=[], blank=True)

    objects = ProjectEnvironmentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "environment"], name="project_environment_once"),
            models.CheckConstraint(
                condition=models.Q(required_approvals=None) | models.Q(required_approvals__lte=10),
                name="project_environment_approvals",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.project_id} / {self.environment_id}"


class ProjectRevision(models.Model):
    """The number of the project's last change that can affect an evaluation.

    Written by database triggers only. There is no foreign key, because the delete trigger of the project
    removes the row.
    """

    project_id = models.CharField(max_length=100, primary_key=True)
    revision = models.BigIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["project_id"], include=["revision"], name="project_revision_covering")
        ]
        triggers = [
            *make_outside_triggers(),
            notify_trigger(pgtrigger.Insert | pgtrigger.Update | pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"{self.project_id} at {self.revision}"


class ChangedFlags(models.Model):
    """The flags whose definitions a revision of a project changed. Kept for the latest revisions only.

    ``names`` is null if they were too many to list. Written by ``projects_touch``.
    """

    pk = models.CompositePrimaryKey("project_id", "revision")
    project_id = models.CharField(max_length=100)
    revision = models.BigIntegerField()
    names = ArrayField(models.TextField(), null=True)

    def __str__(self) -> str:
        return f"{self.project_id} at {self.revision}"


class OutsideChange(models.Model):
    """A transaction that changed flags of a project without an audit event, for example in plain SQL.

    Written by a database trigger only. There is no foreign key: it outlives the project.
    """

    project_id = models.CharField(max_length=100)
    noticed_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["project_id", "noticed_at"], name="outside_change_project")]

    def __str__(self) -> str:
        return f"{self.project_id}, {self.noticed_at}"


models.CharField.register_lookup(Length)


class TagType(models.Model):
    name = models.CharField(max_length=50, primary_key=True)
    description = models.TextField(blank=True)
    icon = models.CharField(max_length=255, null=True, blank=True)
    color = models.CharField(max_length=7, null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.CheckConstraint(condition=Q(name__length__gte=2), name="tag_type_name_length")]

    def __str__(self) -> str:
        return self.name

    def document(self) -> Document:
        """For API responses and audit events."""
        return {
            "name": self.name,
            "description": self.description,
            "icon": self.icon,
            "color": self.color,
        }


class Tag(models.Model):
    """A tag that was created separately, to be offered in forms. A flag's own tags are ``FlagTag`` rows."""

    tag_type = models.ForeignKey(TagType, on_delete=models.CASCADE, related_name="+")
    value = models.CharField(max_length=50)

    class Meta:
        ordering = ["tag_type", "value"]
        constraints = [
            models.UniqueConstraint(fields=["tag_type", "value"], name="tag_once"),
            models.CheckConstraint(condition=Q(value__length__gte=2), name="tag_value_length"),
        ]

    def __str__(self) -> str:
        return f"{self.tag_type_id}:{self.value}"
