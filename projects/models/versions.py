"""Versions: the periods in which rows that decide an answer were valid.

Triggers maintain them, so no writer can forget them: a statement closes the versions of the rows that it changes or
deletes, and opens others. All changes of a transaction have the time of its audit events (``audit_moment()``); if it
changes a row several times, only the last state counts. The versions of a row never overlap and none is lost: after the
clock was set back, or if transactions overtook each other, a version ends a microsecond after it began.

A version has the columns of its row, ``valid_from`` (included) and ``valid_to`` (excluded). There are no foreign
keys: it outlives all rows.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

import pgtrigger
from django.db import models

from projects.models.flags import Dependency, Flag, FlagEnvironment
from projects.models.projects import ProjectEnvironment
from projects.models.strategies import ContextField, Segment, Strategy, StrategySegment

NEVER = datetime.max.replace(tzinfo=UTC)
"""The end of a version that is still valid. Python cannot read PostgreSQL's infinity, and indexes find null slowly."""
BEGINNING = datetime.min.replace(tzinfo=UTC)
"""The start of states from before versions were kept, unless more is known."""


class Version(models.Model):
    """``id`` is the key of the row. At most one of its versions is still valid, which the primary key ensures."""

    pk = models.CompositePrimaryKey("id", "valid_to")
    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(db_default=NEVER)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.pk[0]}, {self.valid_from} to {self.valid_to}"


def _index(name: str, *columns: str) -> models.Index:
    """An index for versions, for example of a flag, that were valid after a moment."""
    return models.Index(fields=[*columns, "valid_to"], name=f"{name}_{columns[0]}")


def _changes(name: str) -> list[models.Index]:
    """Indexes for the changes since a moment."""
    ended = models.Index(fields=["valid_to"], name=f"{name}_ended", condition=models.Q(valid_to__lt=NEVER))
    return [models.Index(fields=["valid_from"], name=f"{name}_began"), ended]


class FlagVersion(Version):
    id = models.BigIntegerField()
    name = models.TextField()
    project_id = models.TextField()
    type = models.TextField()
    description = models.TextField(null=True)
    stale = models.BooleanField()
    impression_data = models.BooleanField()
    created_at = models.DateTimeField()
    archived_at = models.DateTimeField(null=True)
    owner_user_id = models.BigIntegerField(null=True)
    owner_group_id = models.BigIntegerField(null=True)

    class Meta:
        indexes = [
            _index("flag_version", "name"),
            _index("flag_version", "project_id"),
            *_changes("flag_version"),
        ]


class FlagEnvironmentVersion(Version):
    id = models.BigIntegerField()
    flag_id = models.BigIntegerField()
    environment_id = models.TextField()
    enabled = models.BooleanField()
    variants = models.JSONField()

    class Meta:
        indexes = [_index("place_version", "flag_id", "environment_id"), *_changes("place_version")]


class StrategyVersion(Version):
    id = models.UUIDField()
    flag_id = models.BigIntegerField()
    environment_id = models.TextField()
    name = models.TextField()
    title = models.TextField(null=True)
    disabled = models.BooleanField()
    sort_order = models.IntegerField()
    parameters = models.JSONField()
    constraints = models.JSONField()
    variants = models.JSONField()

    class Meta:
        indexes = [_index("strategy_version", "flag_id", "environment_id"), *_changes("strategy_version")]


class StrategySegmentVersion(Version):
    id = models.BigIntegerField()
    strategy_id = models.UUIDField()
    segment_id = models.BigIntegerField()

    class Meta:
        indexes = [_index("link_version", "strategy_id"), *_changes("link_version")]


class DependencyVersion(Version):
    id = models.BigIntegerField()
    flag_id = models.BigIntegerField()
    parent_id = models.BigIntegerField()
    enabled = models.BooleanField()
    variants = models.JSONField()

    class Meta:
        indexes = [_index("dependency_version", "flag_id"), *_changes("dependency_version")]


class SegmentVersion(Version):
    id = models.BigIntegerField()
    name = models.TextField()
    description = models.TextField(null=True)
    constraints = models.JSONField()
    project_id = models.TextField(null=True)

    class Meta:
        indexes = _changes("segment_version")


class ProjectEnvironmentVersion(Version):
    """The environments that a project uses, with the strategy of flags without one there."""

    id = models.BigIntegerField()
    project_id = models.TextField()
    environment_id = models.TextField()
    default_strategy = models.JSONField(null=True)

    class Meta:
        indexes = [_index("use_version", "project_id")]


class ContextFieldVersion(Version):
    pk = models.CompositePrimaryKey("name", "valid_to")
    name = models.TextField()
    stickiness = models.BooleanField()
    project_id = models.TextField(null=True)


class VersionsSince(models.Model):
    """From when versions are complete, if changes were made before this installation kept them.

    Triggers keep versions from ``kept_since`` on, and `backfill_versions` moves ``since`` back. Without a row, versions
    are complete from the beginning.
    """

    since = models.DateTimeField()
    kept_since = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.since}"


class UsersChanged(models.Model):
    """How many generated users a change of a flag changed, by environment: stored when it is first computed.

    ``began`` is the moment before the change, ``at`` that of its last transaction. ``places`` are documents of
    ``playground.comparison.versions.ChangedPlace``; ``more``: the environments that were not compared.
    """

    pk = models.CompositePrimaryKey("feature", "at", "began")
    feature = models.TextField()
    began = models.DateTimeField()
    at = models.DateTimeField()
    places = models.JSONField()
    more = models.IntegerField()

    def __str__(self) -> str:
        return f"{self.feature}, {self.began} to {self.at}"


VERSIONS: dict[type[models.Model], type[Version]] = {
    Flag: FlagVersion,
    FlagEnvironment: FlagEnvironmentVersion,
    Strategy: StrategyVersion,
    StrategySegment: StrategySegmentVersion,
    Dependency: DependencyVersion,
    Segment: SegmentVersion,
    ProjectEnvironment: ProjectEnvironmentVersion,
    ContextField: ContextFieldVersion,
}

_OPENED = """
    INSERT INTO {versions} ({columns}, valid_from)
    SELECT {columns}, greatest(moment, (SELECT max(v.valid_to) FROM {versions} v WHERE v.{key} = opened.{key}))
      FROM new_rows AS opened"""
# Deletes versions of this same transaction, which no moment shows. By key, so that PostgreSQL uses the index even
# without statistics, or with those of a table that was empty.
_CLOSED = """
    moment := audit_moment();
    DELETE FROM {versions} WHERE {key} = ANY(closed) AND valid_to = '{never}' AND valid_from = moment;
    UPDATE {versions} SET valid_to = greatest(moment, valid_from + interval '1 microsecond')
     WHERE {key} = ANY(closed) AND valid_to = '{never}';"""
_INSERTED = f"{_OPENED};\nRETURN NULL;"
_UPDATED = f"""
closed := ARRAY(SELECT {{key}} FROM old_rows o FULL JOIN new_rows n USING ({{key}})
                 WHERE ({{old}}) IS DISTINCT FROM ({{new}}));
IF cardinality(closed) > 0 THEN{_CLOSED}{_OPENED}
     WHERE {{key}} IN (SELECT unnest(closed));
END IF;
RETURN NULL;"""  # noqa: S608 - names of our own
_DELETED = f"""
closed := ARRAY(SELECT {{key}} FROM old_rows);
IF cardinality(closed) > 0 THEN{_CLOSED}
END IF;
RETURN NULL;"""  # noqa: S608 - names of our own
_KEYS = {"BigIntegerField": "bigint", "UUIDField": "uuid", "TextField": "text"}


def _make_triggers(versions: type[Version]) -> Iterator[pgtrigger.Trigger]:
    """One for each operation, because PostgreSQL has transition tables only for a single one."""
    columns = [str(field.column) for field in versions._meta.concrete_fields]
    columns = [name for name in columns if name not in ("valid_from", "valid_to")]
    key = versions._meta.pk_fields[0]
    words = {
        "versions": versions._meta.db_table,
        "key": key.column,
        "columns": ", ".join(columns),
        "old": ", ".join(f"o.{name}" for name in columns),
        "new": ", ".join(f"n.{name}" for name in columns),
        "never": NEVER.isoformat(sep=" "),
    }
    now = [("moment", "timestamptz := audit_moment()")]
    later = [("moment", "timestamptz"), ("closed", f"{_KEYS[key.get_internal_type()]}[]")]
    for operation, rows, declare, statement in (
        (pgtrigger.Insert, {"new": "new_rows"}, now, _INSERTED),
        (pgtrigger.Update, {"old": "old_rows", "new": "new_rows"}, later, _UPDATED),
        (pgtrigger.Delete, {"old": "old_rows"}, later, _DELETED),
    ):
        yield pgtrigger.Trigger(
            name=f"version_{str(operation).lower()}",
            level=pgtrigger.Statement,
            when=pgtrigger.After,
            operation=operation,
            referencing=pgtrigger.Referencing(**rows),
            declare=declare,
            func=statement.format(**words),
        )


for source, versions in VERSIONS.items():
    pgtrigger.register(*_make_triggers(versions))(source)
