"""Activation strategies of flags, and strategy types.

Segments: named lists of constraints that strategies share.

The URL that the list of a segment is kept in step with.

Context fields: the possible contents of a context.
"""

import secrets
import time
import uuid
from collections.abc import Collection
from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.expressions import RawSQL

from flagadmin.core.document import Document
from flagadmin.core.encryption import make_fernet
from flagadmin.core.http.responses import iso
from playground.engine.definitions import SegmentDefinition
from playground.engine.strategy_types import STRATEGY_TYPES
from projects.models.flags import Flag
from projects.models.projects import Environment, Project, SharedQuerySet
from projects.revision import OF_FLAG, OF_SEGMENT, OF_STRATEGY, make_revision_triggers
from projects.states.document import SegmentState
from projects.strategies.fields import COLUMNS


class StrategyType(models.Model):
    """A strategy type. The server evaluates built-in types; only SDKs can evaluate custom ones."""

    name = models.CharField(max_length=255, primary_key=True)
    title = models.CharField(max_length=255, blank=True)
    description = models.TextField(blank=True)
    parameters = models.JSONField(default=list, blank=True)
    built_in = models.BooleanField(default=False)
    deprecated = models.BooleanField(default=False)
    sort_order = models.IntegerField(default=9999)

    class Meta:
        ordering = ["sort_order", "name"]

    def __str__(self) -> str:
        return self.name

    def document(self) -> Document:
        """For API responses and audit events. Users set the ``title`` of custom types; built-in types have none."""
        return {
            "name": self.name,
            "title": None if self.built_in else self.title or None,
            "displayName": self.title or None,
            "description": self.description or None,
            "editable": not self.built_in,
            "deprecated": self.deprecated,
            "parameters": self.parameters,
        }


def make_time_ordered_id() -> uuid.UUID:
    """A version 7 UUID (RFC 9562). It increases with time, which sorts equal sort orders by creation."""
    milliseconds = time.time_ns() // 1_000_000
    return uuid.UUID(
        int=milliseconds << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)
    )


_NAMES = ", ".join(f"'{kind.name}'" for kind in STRATEGY_TYPES.values() if kind.percentage == "percentage")


def _make_number_sql(text: str, above: str) -> str:
    """``StrategyType.share`` in SQL. ``above``: the value for a percentage above 100."""
    number = f"CASE WHEN {text}::numeric > 100 THEN {above} ELSE {text}::numeric END"
    return f"CASE WHEN {text} ~ '^[+]?[0-9]{{1,18}}$' THEN {number} ELSE 0 END"


_PERCENTAGE = "(parameters ->> 'percentage')"
_ABOVE = "CASE WHEN name = 'gradualRolloutRandom' THEN 100 ELSE 0 END"  # it has no group
SHARE = f"""CASE WHEN name = 'default' THEN 100
     WHEN name = 'flexibleRollout' THEN {_make_number_sql("(parameters ->> 'rollout')", "0")}
     WHEN name IN ({_NAMES}) THEN {_make_number_sql(_PERCENTAGE, _ABOVE)} END"""


class TimeOrderedIDField(models.UUIDField):
    """A UUID whose default is ``make_time_ordered_id``. Migrations see a plain UUID: the database has no default."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, default=make_time_ordered_id, **kwargs)

    def deconstruct(self) -> tuple[str, str, list, dict]:
        name, _, args, kwargs = super().deconstruct()
        del kwargs["default"]
        return name, "django.db.models.UUIDField", list(args), dict(kwargs)


class Strategy(models.Model):
    """An activation strategy of a flag in an environment. Evaluated in order of ``sort_order``, then id.

    ``share``: the percentage of requests for which it is on if its conditions hold. Null if it names users or
    addresses, or is custom. Stored, so that lists of many flags sort and filter by it from an index.
    """

    id = TimeOrderedIDField(primary_key=True)
    # The indexes below begin with the flag and with the environment.
    flag = models.ForeignKey(Flag, on_delete=models.CASCADE, related_name="strategies", db_index=False)
    environment = models.ForeignKey(Environment, on_delete=models.RESTRICT, related_name="+", db_index=False)
    name = models.CharField("strategy type", max_length=255)
    title = models.TextField(null=True, blank=True)
    disabled = models.BooleanField(default=False)
    sort_order = models.IntegerField(default=0)
    parameters = models.JSONField(default=dict, blank=True)
    constraints = models.JSONField(default=list, blank=True)
    variants = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    share = models.GeneratedField(
        expression=RawSQL(SHARE, []),  # noqa: S611 - constants
        output_field=models.SmallIntegerField(null=True),
        db_persist=True,
    )
    segments: models.ManyToManyField = models.ManyToManyField(
        "Segment", through="StrategySegment", related_name="strategies", blank=True
    )

    class Meta:
        ordering = ["sort_order", "id"]
        verbose_name_plural = "strategies"
        indexes = [
            models.Index(fields=["flag", "environment", "sort_order"], name="strategy_place"),
            models.Index(fields=["environment", "flag", "disabled", "share"], name="strategy_share"),
        ]
        triggers = make_revision_triggers(
            ["id", "flag_id", "environment_id", *COLUMNS],
            OF_FLAG,
        )

    def __str__(self) -> str:
        return f"{self.name} of {self.flag} in {self.environment_id}"


class StrategySegment(models.Model):
    strategy = models.ForeignKey(Strategy, on_delete=models.CASCADE, related_name="segment_links")
    segment = models.ForeignKey("Segment", on_delete=models.RESTRICT, related_name="strategy_links")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["strategy", "segment"], name="strategy_segment_once")]
        triggers = make_revision_triggers(["strategy_id", "segment_id"], OF_STRATEGY)

    def __str__(self) -> str:
        return f"{self.segment} on {self.strategy_id}"


class SegmentQuerySet(SharedQuerySet["Segment"]):
    def names(self, ids: Collection[int]) -> dict[int, str]:
        return dict(self.filter(pk__in=ids).values_list("pk", "name"))


class Segment(models.Model):
    """A named list of constraints that strategies share.

    Global without a project, otherwise for that project only.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=255, unique=True)
    description = models.TextField(null=True, blank=True)
    constraints = models.JSONField(default=list, blank=True)
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="segments"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=255, blank=True)

    objects = SegmentQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.CheckConstraint(condition=~Q(name=""), name="segment_name_not_empty")]
        # Only the update trigger: a new segment is unused, and only unused segments can be deleted.
        triggers = make_revision_triggers(["id", "name", "constraints"], OF_SEGMENT)[2:]

    def __str__(self) -> str:
        return self.name

    @property
    def definition(self) -> SegmentDefinition:
        return {"id": self.pk, "name": self.name, "constraints": self.constraints}

    def document(self) -> SegmentState:
        """For API responses and audit events."""
        document: SegmentState = {
            **self.definition,
            "description": self.description,
            "createdBy": self.created_by,
            "createdAt": iso(self.created_at),
        }
        if self.project_id:
            document["project"] = self.project_id
        return document


_PURPOSE = "list source"


class ListSource(models.Model):
    """``problem``: why the last fetch changed nothing; "" if it succeeded, and ``result`` says what it did.

    ``etag`` counts while the list has the fingerprint ``fetched_hash``: somebody may have changed it since.
    """

    class Format(models.TextChoices):
        LINES = "lines", "One value per line"
        CSV = "csv", "A column of a CSV file"
        JSON = "json", "A JSON list"

    segment = models.OneToOneField(
        Segment, on_delete=models.CASCADE, primary_key=True, related_name="list_source"
    )
    encrypted_url = models.TextField()  # its query may have a secret
    format = models.CharField(max_length=10, choices=Format.choices, default=Format.LINES)
    column = models.CharField(max_length=255, blank=True)
    minutes = models.PositiveIntegerField(default=60)
    set_by = models.ForeignKey("groups.User", models.SET_NULL, null=True, blank=True, related_name="+")
    set_by_name = models.CharField(max_length=255)
    set_at = models.DateTimeField()
    due_at = models.DateTimeField()
    checked_at = models.DateTimeField(null=True, blank=True)
    result = models.TextField(blank=True)
    problem = models.TextField(blank=True)
    etag = models.CharField(max_length=500, blank=True)
    fetched_hash = models.CharField(max_length=32, blank=True)

    def __str__(self) -> str:
        return f"source of segment {self.segment_id}"

    @property
    def url(self) -> str:
        """Raises cryptography.fernet.InvalidToken if it was encrypted with a lost SECRET_KEY."""
        return make_fernet(_PURPOSE).decrypt(self.encrypted_url).decode()

    @url.setter
    def url(self, text: str) -> None:
        self.encrypted_url = make_fernet(_PURPOSE).encrypt(text.encode()).decode()


class ContextField(models.Model):
    """A field of the evaluation context: for constraints and, if ``stickiness`` is set, for stickiness."""

    name = models.CharField(max_length=255, primary_key=True)
    description = models.TextField(null=True, blank=True)
    stickiness = models.BooleanField(default=False)
    sort_order = models.IntegerField(default=10)
    legal_values = models.JSONField(default=list, blank=True, help_text='[{"value": …, "description": …}]')
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="context_fields"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SharedQuerySet["ContextField"].as_manager()

    class Meta:
        ordering = ["sort_order", "name"]
        constraints = [models.CheckConstraint(condition=~Q(name=""), name="context_field_name_not_empty")]

    def __str__(self) -> str:
        return self.name

    def document(self) -> Document:
        """For API responses and audit events."""
        document = {
            "name": self.name,
            "description": self.description,
            "stickiness": self.stickiness,
            "sortOrder": self.sort_order,
            "legalValues": self.legal_values,
            "createdAt": iso(self.created_at),
        }
        return document | ({"project": self.project_id} if self.project_id else {})
